//! A packet as it leaves, while it is outstanding, and as it comes back.
//!
//! What it carried (`F`) is moved through, never looked at: frames belong to whoever sent them.

use crate::Time;
use crate::measure::Snapshot;

/// A packet as it leaves.
#[derive(Clone, Copy, Debug)]
pub struct SentPacket<F> {
    /// UDP payload bytes, header and tag included.
    pub size: u32,
    /// Contains a frame other than ACK, PADDING and CLOSE. Only such packets count in flight, are retransmitted by
    /// their owner, and arm timers.
    pub ack_eliciting: bool,
    /// Probes a larger datagram size: its loss is no sign of congestion.
    pub mtu_probe: bool,
    /// Leaves marked ECT(0); see [`Recovery::marks_ecn`](super::Recovery::marks_ecn).
    pub ect0: bool,
    /// What to do when it is acknowledged or lost.
    pub frames: F,
}

/// A packet handed back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettledPacket<F> {
    /// Packet number.
    pub pn: u64,
    /// UDP payload bytes.
    pub size: u32,
    /// As sent.
    pub mtu_probe: bool,
    /// As sent.
    pub frames: F,
}

/// What one call settled. Owned by the caller and used again, so that the steady state does not allocate.
#[derive(Clone, Debug)]
pub struct Settled<F> {
    /// Newly acknowledged, ascending packet numbers.
    pub acked: Vec<SettledPacket<F>>,
    /// Newly declared lost, ascending packet numbers. Never contains packets that are not ack-eliciting.
    pub lost: Vec<SettledPacket<F>>,
    /// Packets declared lost earlier that were acknowledged after all.
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
    /// Empties it, keeping the memory.
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
    /// Path it was sent on.
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
