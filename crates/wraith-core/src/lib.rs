//! The wraith protocol without I/O (docs/SPEC.md): packets, frames, loss recovery, congestion, streams, paths.
#![forbid(unsafe_code)]

mod block;
pub mod congestion;
mod error;
pub mod frame;
pub mod mtud;
mod range_set;
pub mod recovery;
pub mod streams;
mod time;
pub mod varint;

pub use block::{BLOCK_BYTES, Block, BlockPool, Chunk};
pub use error::{CloseReason, StreamError, Violation, code};
pub use range_set::RangeSet;
pub use streams::{Read, Role, StreamConfig, StreamEvent, StreamId, Streams};
pub use time::Time;
