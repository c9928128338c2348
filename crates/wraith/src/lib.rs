//! Sends files, folders and streams between two machines, encrypted and verified, without an account or a server that could
//! read them.
//!
//! [`state`] is what a machine remembers between two runs: its identity, the contacts, what is needed to continue, and what
//! was received.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod state;
