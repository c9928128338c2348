//! Streams of a connection (SPEC §6).

mod id;

pub use id::{Role, StreamId};
