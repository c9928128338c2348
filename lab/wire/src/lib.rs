//! Tests that wraith's bytes on the wire are noise to an observer without the keys.
//!
//! - [`driver`]: two endpoints of the core, and their datagrams; [`others`]: datagrams outside
//!   connections.
//! - [`checks`]: the tests, one concept per file, and the state that each keeps of a population of
//!   datagrams.
//! - [`suite`]: the tests of each population; [`finding`]: their figures, and the criteria of
//!   failure.
//! - [`controls`]: recorded datagrams with one mistake each, of kinds that real protocols made.
//!   Each must fail the suite.
//! - [`distributions`]: probabilities of figures by chance; [`curve`]: Curve25519 as an observer
//!   computes with it, slow and obvious.
//! - [`run`]: the whole test, in a small and a full form; [`report`]: the tables.
//!
//! All results follow from a seed, except for records of the DHT. These draw from the system and
//! are part of the full form only.
#![forbid(unsafe_code)]

pub mod checks;
pub mod controls;
pub mod curve;
pub mod distributions;
pub mod driver;
pub mod finding;
pub mod others;
pub mod outcome;
pub mod outside;
pub mod report;
pub mod run;
pub mod suite;
