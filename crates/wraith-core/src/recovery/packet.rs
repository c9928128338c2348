//! The records of a packet: as it leaves, while it is outstanding, and after it was settled.
//!
//! Recovery stores and returns the packet's content (`F`) and never inspects it: the connection
//! handles the frames.

use crate::Time;
use crate::measure::Snapshot;

/// A packet that leaves.
#[derive(Clone, Copy, Debug)]
pub struct SentPacket<F> {
    /// UDP payload size in bytes, including header and tag.
    pub size: u32,
    /// True if it contains a frame other than ACK, PADDING and CLOSE. Only such packets count as in
    /// flight, are retransmitted by their owner, and arm timers.
    pub ack_eliciting: bool,
    /// True for an MTU probe, whose loss does not indicate congestion.
    pub mtu_probe: bool,
    /// True if the packet is marked ECT(0); see
    /// [`Recovery::marks_ecn`](super::Recovery::marks_ecn).
    pub ect0: bool,
    /// The owner's data, returned when the packet is acknowledged or lost.
    pub frames: F,
}

/// A packet returned to its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettledPacket<F> {
    /// Packet number.
    pub pn: u64,
    /// UDP payload size in bytes.
    pub size: u32,
    /// As sent.
    pub mtu_probe: bool,
    /// As sent.
    pub frames: F,
}

/// The packets settled by one call. The caller owns and reuses it, so that the steady state does
/// not allocate.
#[derive(Clone, Debug)]
pub struct Settled<F> {
    /// Newly acknowledged packets, in ascending order.
    pub acked: Vec<SettledPacket<F>>,
    /// Packets newly declared lost, in ascending order; only ack-eliciting ones.
    pub lost: Vec<SettledPacket<F>>,
    /// Number of packets declared lost earlier that were now acknowledged.
    pub spurious: u32,
    /// The losses establish persistent congestion (RFC 9002 §7.6).
    pub persistent_congestion: bool,
}

impl<F> Default for Settled<F> {
    fn default() -> Self {
        Self { acked: Vec::new(), lost: Vec::new(), spurious: 0, persistent_congestion: false }
    }
}

impl<F> Settled<F> {
    /// Clears all fields and keeps the memory.
    pub fn clear(&mut self) {
        self.acked.clear();
        self.lost.clear();
        self.spurious = 0;
        self.persistent_congestion = false;
    }
}

/// A packet sent and not yet settled.
#[derive(Debug)]
pub(super) struct Outstanding<F> {
    pub(super) sent_at: Time,
    /// Generation of the path that the packet was sent on.
    pub(super) generation: u32,
    pub(super) snapshot: Snapshot,
    pub(super) packet: SentPacket<F>,
}

impl<F> Outstanding<F> {
    pub(super) fn settle(self, pn: u64) -> SettledPacket<F> {
        let SentPacket { size, mtu_probe, frames, .. } = self.packet;
        SettledPacket { pn, size, mtu_probe, frames }
    }
}
