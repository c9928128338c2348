//! Tests of the language border, from the Rust side.

mod sessions;
mod transfers;
