//! What was received: a record of each finished transfer, kept in the home folder so that `wraith verify` can check the tree
//! again later.
//!
//! Invariants: a record appears whole or not at all; only its owner can read it; the newest few are kept, the oldest are
//! removed; and a record that cannot be written costs a warning, never the transfer.

mod record;
mod recorder;
mod shelf;

pub use record::{Fault, Head, Line, Lines, What};
pub use recorder::Recorder;
pub use shelf::{Shelf, Shelved};
