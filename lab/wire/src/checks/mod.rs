//! The tests, with one concept in each file: its counts or samples of the datagrams, and the
//! figures computed from them.
//!
//! Places in a datagram are counted from both of its ends ([`position`]), because a field may be
//! near the beginning or near the end.

pub mod bit_bias;
pub mod byte_frequency;
pub mod censor;
pub mod compression;
pub mod consecutive;
pub mod correlation;
pub mod early;
pub mod elligator;
pub mod lengths;
pub mod ml_kem;
pub mod position;
pub mod repeats;
pub mod sample;
pub mod serial;
pub mod winnowing;

use crate::finding::{Figure, Finding};

/// A figure of a test, before it is assigned to a population.
#[derive(Clone, Debug)]
pub struct CheckFigure {
    /// Name of the test in the tables.
    pub test: &'static str,
    /// Place in the datagrams.
    pub place: String,
    /// The figure.
    pub figure: Figure,
}

impl CheckFigure {
    /// Creates a figure of `test`.
    pub fn new(test: &'static str, place: impl Into<String>, figure: Figure) -> Self {
        Self { test, place: place.into(), figure }
    }

    /// Assigns the figure to a population.
    pub fn of(self, population: &str) -> Finding {
        let Self { test, place, figure } = self;
        Finding { test, population: population.to_owned(), place, figure }
    }
}
