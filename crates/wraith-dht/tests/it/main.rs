//! The client against nodes of another implementation, on loopback, and against hostile ones.

mod hostile;
mod meeting;
mod records;
mod support;
