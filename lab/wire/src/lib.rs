//! Whether what wraith puts on the wire is noise to somebody without the keys.
//!
//! - [`driver`]: two endpoints of the core, and what they say to each other; [`others`]: the datagrams that are of no connection.
//! - [`checks`]: the tests, one concept a file, and what each knows about a population of datagrams.
//! - [`suite`]: which tests a population is given; [`finding`]: their figures, and which of them count as failed.
//! - [`controls`]: recorded datagrams with one mistake each, of the kind that real protocols made. Each must fail the suite.
//! - [`distributions`]: how likely a figure is by chance; [`curve`]: Curve25519 as an observer computes with it, slow and obvious.
//! - [`run`]: all of it, in a small and a full form; [`report`]: the tables.
//!
//! Everything follows from a seed, but records of the DHT, which draw from the system and are of the full form only.
#![forbid(unsafe_code)]

pub mod checks;
pub mod controls;
pub mod curve;
pub mod distributions;
pub mod driver;
pub mod finding;
pub mod others;
pub mod outside;
pub mod report;
pub mod run;
pub mod suite;
