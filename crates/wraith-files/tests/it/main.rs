//! Behaviour of the crate on a real file system, one module per area.

mod common;

mod disk;
mod hostile;
mod kill;
mod other_writers;
mod part;
mod renewed_parts;
mod tree;
