//! What a sender measures on a path: round trips, delivery rates, and the packets that were lost.
//!
//! Loss recovery takes the measurements and congestion control reads them, so they belong to neither. Nothing here imports
//! from [`crate::recovery`] or [`crate::congestion`].

mod lost_packet;
mod rate_sample;
mod rtt;

pub use lost_packet::LostPacket;
pub use rate_sample::RateSample;
pub(crate) use rate_sample::{RateSampler, Snapshot};
pub use rtt::Rtt;
