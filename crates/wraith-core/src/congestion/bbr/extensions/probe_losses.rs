//! Attribution of losses to the phase that sent the packets.
//!
//! - The draft: a loss belongs to the round in which it is detected, and is compared with the bytes
//!   in flight.
//! - Ours: losses of packets that a probe or Startup sent belong only to that phase. They are
//!   compared with all bytes acknowledged or lost since the packet left, if those are more than the
//!   bytes in flight.
//! - Why: a loss is detected a millisecond after the round trip at the earliest. On shorter round
//!   trips, several flights have passed by then. The cruise would pay for the probe, and every
//!   probe would fail.
//! - Grid: 10 Gbit/s × 0.2 ms with 2 % of loss: shallow 80.0 → 94.4 %, bdp 81.9 → 95.6 %, deep 91.8
//!   → 96.6 %; with 10 %: 32 → 87 %.

use crate::congestion::controller::Lost;
use crate::measure::LostPacket;

/// Boundary between packets of probes and later ones.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct ProbeLosses {
    /// Packets sent when less than this was delivered belong to a probe.
    probed_until: u64,
}

impl ProbeLosses {
    /// Ends a probing phase, with `delivered` bytes delivered.
    pub(in super::super) fn end_probe(&mut self, delivered: u64) {
        self.probed_until = delivered;
    }

    /// Returns the bytes of `lost` that do not belong to a probe.
    pub(in super::super) fn cruising_bytes(&self, lost: &Lost<'_>) -> u64 {
        let until = self.probed_until;
        let cruising = lost.packets.iter().filter(|packet| packet.delivered_at_send >= until);
        cruising.map(|packet| u64::from(packet.size)).sum()
    }
}

/// Returns the bytes with which the losses since the sending of `packet` are compared.
pub(in super::super) fn passed_since(packet: &LostPacket) -> u64 {
    packet.in_flight_at_send.max(packet.settled_since_send)
}
