//! Published vectors, and comparisons with independent implementations.

mod elligator;
mod ml_kem;
mod x25519;
