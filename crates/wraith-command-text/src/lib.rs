//! Text that all commands of the `wraith` program read and write in the same way: sizes, rates and
//! times as typed and shown, words quoted for a shell, lines of checksums, and the table of options
//! of other programs.
//!
//! The crate has no options and no output of its own. Each command passes its words in, and prints
//! the result.

#![forbid(unsafe_code)]

pub mod durations;
pub mod foreign;
mod shell_word;
mod sum_line;
pub mod units;

pub use shell_word::shell_word;
pub use sum_line::sum_line;

/// The README example, compiled as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
