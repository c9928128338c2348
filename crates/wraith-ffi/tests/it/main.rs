//! Tests of the interface for other languages, from the Rust side.

mod connections;
mod errors;
mod events;
mod foreign_threads;
mod keys;
mod sessions;
mod support;
mod transfers;
mod vaults;
