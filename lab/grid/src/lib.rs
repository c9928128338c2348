//! The scenario grid: measures how well each transport uses each kind of link, in simulated time.
//!
//! - [`host`]: the interface of a transport: a sans-IO endpoint that sends or receives one stream.
//! - [`wraith`], [`quinn`] and [`model_cubic`]: the transports; [`contender`] names them.
//! - [`network`]: hosts, the two directions of a link between them, and the loop that advances
//!   time.
//! - [`cell`]: a link and a rule for the amount of data to send over it; [`cells`] lists all cells.
//! - [`run`]: one contender in one cell, and its figures; [`repeat`]: close cells again, with other
//!   seeds.
//! - [`report`]: the figures as text and CSV; [`compare`]: ours beside the baseline; [`heat_map`]:
//!   all cells as a picture; [`floors`]: minimum results of the small cells.
//!
//! Invariant: all results follow from a seed; the same seed gives the same figures on any machine.
//! Received bytes are always compared with those sent.
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
