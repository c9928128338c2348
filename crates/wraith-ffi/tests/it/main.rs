//! Tests of what crosses the border, from the Rust side.

mod sessions;
mod transfers;
