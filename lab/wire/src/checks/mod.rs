//! The tests. Each file has one concept: what it counts or keeps of the datagrams it is given, and the figures it makes of that.
//!
//! What is counted at places in a datagram is counted from both ends ([`position`]), because a field may stand at either.

pub mod bit_bias;
pub mod byte_frequency;
pub mod censor;
pub mod compression;
pub mod consecutive;
pub mod correlation;
pub mod elligator;
pub mod lengths;
pub mod ml_kem;
pub mod position;
pub mod repeats;
pub mod sample;
pub mod serial;
pub mod winnowing;

use crate::finding::{Figure, Finding};

/// A figure of a test, before it is said of which population it is.
#[derive(Clone, Debug)]
pub struct Figured {
    /// The test, as the tables name it.
    pub test: &'static str,
    /// Where in the datagrams.
    pub place: String,
    /// The figure.
    pub figure: Figure,
}

impl Figured {
    /// A figure of `test`.
    pub fn new(test: &'static str, place: impl Into<String>, figure: Figure) -> Self {
        Self { test, place: place.into(), figure }
    }

    /// The same of a population.
    pub fn of(self, population: &str) -> Finding {
        let Self { test, place, figure } = self;
        Finding { test, population: population.to_owned(), place, figure }
    }
}
