//! Whether what works on secrets takes the same time whatever they are, measured as dudect does (Reparaz, Balasch, Verbauwhede: "dude, is
//! my code constant time?", 2017): the time of two classes of inputs, drawn in turn by chance, under Welch's t-test.
//!
//! - [`measure`]: one operation, its inputs and the clock.
//! - [`statistics`]: whether two classes of times differ.
//! - [`targets`]: the functions of our crates that are to take constant time, each with its two classes.
//! - [`controls`]: code that leaks, of the kinds that real programs had. Each must be found.
//! - [`run`]: all of it, in a small and a full form, and what counts as failed; [`report`]: the tables.
//!
//! All inputs follow from a seed. Times do not.
#![forbid(unsafe_code)]

pub mod controls;
pub mod measure;
pub mod report;
pub mod run;
pub mod statistics;
pub mod targets;
