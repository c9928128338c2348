//! A simulated network for the wraith core: the same endpoints that run on sockets, joined by
//! seeded links, under simulated time.
//!
//! - [`link`]: the boxes of a path. Sans-IO, usable without the rest.
//! - [`World`]: endpoints, links, and the loop that advances the time.
//! - [`internet`]: hosts behind NATs, relays, and the paths between them.
//! - [`Exchange`] and [`Application`]: the data that endpoints exchange. A [`Party`] of the caller
//!   takes the place of the application, to run another protocol.
//! - [`Scenario`]: a test as a list of boxes with a limit on its completion time.
//! - [`swarm`]: thousands of scenarios drawn from seeds.
#![forbid(unsafe_code)]

mod checks;
mod clock;
mod exchange;
mod flood;
mod forwarder;
mod hostile;
pub mod internet;
pub mod link;
mod party;
mod pattern;
mod rng;
mod scenario;
mod swarm;
mod world;

pub use exchange::{Application, Exchange, StreamCut, StreamPlan};
pub use forwarder::Forwarder;
pub use party::Party;
pub use pattern::Pattern;
pub use rng::Rng;
pub use scenario::{DONE_CODE, NAT_ADDRESS, Outcome, Scenario};
pub use swarm::{scenario_of, swarm};
pub use world::{Driver, NodeIndex, World};
