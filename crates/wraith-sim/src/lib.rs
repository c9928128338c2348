//! A simulated network for the wraith core.
//!
//! [`link`] has the boxes a path is made of: sans-IO, seeded, usable without the rest.
#![forbid(unsafe_code)]

pub mod link;
mod rng;

pub use rng::Rng;
