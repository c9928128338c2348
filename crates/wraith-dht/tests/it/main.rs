//! The client against hostile nodes and against nodes of another implementation, on loopback.

mod hostile;
mod meeting;
mod records;
mod support;
