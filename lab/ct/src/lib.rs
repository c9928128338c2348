//! Constant-time tests of code with secrets, in the manner of dudect (Reparaz, Balasch,
//! Verbauwhede: "dude, is my code constant time?", 2017). They time two classes of inputs in random
//! order and compare the times with Welch's t-test.
//!
//! - [`measure`]: one operation, its inputs and the clock.
//! - [`statistics`]: whether two classes of times differ.
//! - [`targets`]: the functions of our crates that must run in constant time, each with its two
//!   classes.
//! - [`controls`]: code that leaks, with the kinds of leaks that real programs had. Each must be
//!   found.
//! - [`run`]: the whole test, in a small and a full form, and the criteria of failure; [`report`]:
//!   the tables.
//!
//! All inputs follow from a seed. Times do not.
//!
//! [`count`] counts instructions instead of time.
#![deny(unsafe_code)]

pub mod controls;
pub mod count;
pub mod measure;
pub mod report;
pub mod run;
pub mod statistics;
pub mod targets;
