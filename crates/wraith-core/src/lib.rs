//! The wraith protocol without I/O (docs/SPEC.md): packets, frames, loss recovery, congestion, streams, paths.
#![forbid(unsafe_code)]

mod block;
mod error;
mod range_set;
mod time;

pub use block::{BLOCK_BYTES, Block, BlockPool, Chunk};
pub use error::{CloseReason, StreamError, Violation, code};
pub use range_set::RangeSet;
pub use time::Time;
