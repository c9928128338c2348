//! What the peers of a memory-to-memory race share: the bytes they move and compare, the socket they move them over, the
//! second process, and the line they report in.
//!
//! The bytes, the size of a write and the comparison are those of `wraith-transport`'s `throughput` example, so that the
//! cost of making and checking bytes is the same for everybody and inside every figure.

#![forbid(unsafe_code)]

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

/// Reads a number of GiB, such as `0.5`, as bytes.
///
/// # Errors
/// It is not a number above zero.
pub fn parse_gib(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(gib) if gib > 0.0 && gib < 1e6 => Ok((gib * GIB) as u64),
        _ => Err("a number of GiB above 0 is needed".into()),
    }
}
