//! What was received: a record of each finished transfer, kept in the home folder so that `wraith verify` can check the tree
//! again later.
//!
//! Invariants: a record appears whole or not at all; only its owner can read it; none has more bytes than the user
//! allows, and all together have a bound, beyond which the oldest are removed; and a record that cannot be written costs a warning, never the transfer.

mod record;
mod recorder;
mod shelf;

pub use record::{Fault, Head, Line, Lines, Rest, What};
pub use recorder::Recorder;
pub use shelf::{Shelf, Shelved};
