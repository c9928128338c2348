//! The commands `crypto` and `speed` of the `wraith` program: the algorithms of wraith for files
//! and pipes, and their speed. The crate `wraith-p2p-commands` runs them.
//!
//! A command gets its arguments and a [`Reporter`]. It reads files, standard input and the
//! terminal, and writes its result to a file or to standard output. All other output goes through
//! the [`Reporter`], so that the program has one writer for text and events.

#![forbid(unsafe_code)]

pub mod crypto;
mod examples;
mod failure;
mod foreign;
mod report;
pub mod speed;

pub use examples::EXAMPLES;
pub use failure::{Exit, Failure};
pub use foreign::{FOREIGN_COMMANDS, FOREIGN_OPTIONS};
pub use report::{Event, Reporter};
