//! Losses count for the phase that sent the packets.
//!
//! - The draft: a loss counts in the round in which it is noticed, and is compared with what was in flight.
//! - Ours: what was lost of a probe or of Startup counts for it only. It is compared with everything that was acknowledged or
//!   lost since the packet left, where that is more.
//! - Why: a loss is known a millisecond after the round trip at the earliest. Where round trips are shorter, several flights
//!   have passed by then: the cruise would pay for the probe, and every probe would fail.
//! - Grid: 10 Gbit/s × 0.2 ms with 2 % of loss: shallow 80.0 → 94.4 %, bdp 81.9 → 95.6 %, deep 91.8 → 96.6 %; with 10 %:
//!   32 → 87 %.

use crate::congestion::controller::Lost;
use crate::measure::LostPacket;

/// Which packets were sent to probe.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct ProbeLosses {
    /// Packets sent before this much was delivered.
    probed_until: u64,
}

impl ProbeLosses {
    /// A phase that probes ended when `delivered` bytes were delivered.
    pub(in super::super) fn end_probe(&mut self, delivered: u64) {
        self.probed_until = delivered;
    }

    /// Bytes of `lost` that were not sent to probe.
    pub(in super::super) fn cruising_bytes(&self, lost: &Lost<'_>) -> u64 {
        let until = self.probed_until;
        let cruising = lost.packets.iter().filter(|packet| packet.delivered_at_send >= until);
        cruising.map(|packet| u64::from(packet.size)).sum()
    }
}

/// Bytes that the losses since the sending of `packet` are a part of.
pub(in super::super) fn passed_since(packet: &LostPacket) -> u64 {
    packet.in_flight_at_send.max(packet.settled_since_send)
}
