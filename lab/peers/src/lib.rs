//! Shared parts of the peers of a memory-to-memory race: the bytes that they move and compare, the
//! socket, the second process, and the report line.
//!
//! The bytes, the size of a write and the comparison are those of `wraith-transport`'s `throughput`
//! example. So the cost of generating and checking bytes is the same for all peers and part of
//! every figure.

#![forbid(unsafe_code)]

pub mod identity;
mod pattern;
mod process;
mod report;
mod socket;

pub use pattern::{PIECE_BYTES, Pattern};
pub use process::{ServerProcess, cpu_time, pin_to};
pub use report::Report;
pub use socket::bind;

/// Bytes in a GiB, as a factor of fractions.
const GIB: f64 = (1_u64 << 30) as f64;

/// Parses a number of GiB, such as `0.5`, into bytes.
///
/// # Errors
/// The text is not a number above zero.
pub fn parse_gib(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(gib) if gib > 0.0 && gib < 1e6 => Ok((gib * GIB) as u64),
        _ => Err("a number of GiB above 0 is needed".into()),
    }
}
