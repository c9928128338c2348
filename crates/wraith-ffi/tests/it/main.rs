//! Tests of the interface for other languages, from the Rust side.

mod sessions;
mod transfers;
