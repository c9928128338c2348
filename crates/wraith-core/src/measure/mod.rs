//! Path measurements of a sender: round trips, delivery rates and lost packets.
//!
//! Loss recovery makes the measurements and congestion control reads them, so this module belongs
//! to neither. This module imports nothing from [`crate::recovery`] or [`crate::congestion`].

mod lost_packet;
mod rate_sample;
mod rtt;

pub use lost_packet::LostPacket;
pub use rate_sample::RateSample;
pub(crate) use rate_sample::{RateSampler, Snapshot};
pub use rtt::Rtt;
