//! The behaviour of the crate on a real file system, a module for each part of it.

mod common;

mod disk;
mod hostile;
mod kill;
mod other_writers;
mod part;
mod tree;
