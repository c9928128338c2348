//! A simulated network for the wraith core: the same endpoints that run on sockets, joined by seeded links, in a time
//! that jumps.
//!
//! - [`link`]: the boxes a path is made of. Sans-IO, usable without the rest.
//! - [`World`]: endpoints, links, and the loop that moves time.
//! - [`internet`]: hosts behind NATs, relays, and the paths between.
//! - [`Exchange`] and [`Party`]: what the endpoints do with each other.
//! - [`Scenario`]: a test as a list of boxes with a ceiling on its completion time.
//! - [`swarm`]: scenarios drawn from a seed, by the thousand.
#![forbid(unsafe_code)]

mod checks;
mod exchange;
mod flood;
mod forwarder;
mod hostile;
pub mod internet;
pub mod link;
mod pattern;
mod rng;
mod scenario;
mod swarm;
mod world;

pub use exchange::{Cut, Exchange, Party, StreamPlan};
pub use forwarder::Forwarder;
pub use pattern::Pattern;
pub use rng::Rng;
pub use scenario::{DONE_CODE, NAT_ADDRESS, Outcome, Scenario};
pub use swarm::{scenario_of, swarm};
pub use world::{Driver, NodeIndex, World};
