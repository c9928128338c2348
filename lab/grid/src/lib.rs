//! The scenario grid: how well each transport uses each kind of link, in simulated time.
//!
//! - [`host`]: what a transport looks like from outside: a sans-IO endpoint that sends or receives one stream.
//! - [`wraith`], [`quinn`] and [`model_cubic`]: the transports; [`contender`] names them.
//! - [`network`]: hosts, the two directions of a link between them, and the loop that moves time.
//! - [`cell`]: one square of the grid: a link and a rule for how much to send over it; [`cells`] lists them all.
//! - [`run`]: one contender in one cell, and the figures that come out of it; [`repeat`]: close cells again, with other seeds.
//! - [`report`]: those figures as text and CSV; [`compare`]: ours beside the baseline; [`heat_map`]: all of it as a picture;
//!   [`floors`]: what the small cells must reach.
//!
//! Everything follows from a seed: the same seed gives the same figures, on any machine. Received bytes are compared
//! with those sent, always.
#![forbid(unsafe_code)]

pub mod cell;
pub mod cells;
pub mod compare;
pub mod contender;
pub mod floors;
pub mod heat_map;
pub mod host;
pub mod model_cubic;
pub mod network;
pub mod quinn;
pub mod repeat;
pub mod report;
pub mod run;
pub mod wraith;
