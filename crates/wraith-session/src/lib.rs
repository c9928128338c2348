#![forbid(unsafe_code)]
#![warn(missing_docs)]
//! Encrypted sessions over any transport. No I/O, no clock; randomness is passed in.

pub mod ratchet;
