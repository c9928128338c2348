//! Memory bounds of sent packets against a peer that acknowledges selectively or not at all.
//!
//! The congestion window bounds packets with data. This module bounds every other packet number
//! that is kept in memory, regardless of the peer's ACKs.

use super::Recovery;

/// Maximum number of packet numbers between the oldest outstanding packet and the newest: 380 MB of
/// 1452-byte packets. It bounds the memory of a window. Beyond it, the oldest packets are declared
/// lost.
pub(super) const OUTSTANDING_MAX: usize = 1 << 18;
/// Maximum number of packet numbers outside any window: ACK-only packets, packets acknowledged out
/// of order (beyond two windows), and unanswered probes. A peer that acknowledges selectively or
/// not at all cannot exceed it.
pub(super) const OUTSIDE_WINDOW_MAX: usize = 640;
/// Consecutive probe timeouts after which packets beyond [`OUTSIDE_WINDOW_MAX`] are abandoned.
const PTO_COUNT_MAX: u32 = 16;

impl<F> Recovery<F> {
    /// Drops the oldest ACK-only packets, whose loss has no effect.
    #[cold]
    pub(super) fn forget_oldest_acks(&mut self) {
        while self.exceeds_bounds()
            && self.sent.front().is_some_and(|(_, oldest)| !oldest.packet.ack_eliciting)
        {
            self.sent.pop_front();
        }
    }

    /// Returns true if the peer does not answer and the memory limit is reached. Abandoned packets
    /// must not make room for new ones: those would be abandoned in turn, as fast as the pacer
    /// allows. Probes continue.
    pub(super) fn is_waiting_for_an_answer(&self) -> bool {
        self.pto_count > PTO_COUNT_MAX
            && self.sent.len() >= OUTSIDE_WINDOW_MAX
            && self.eliciting > 0
    }

    /// Returns true if more packets are kept than the window accounts for.
    pub(super) fn exceeds_bounds(&self) -> bool {
        let len = self.sent.len();
        len > OUTSIDE_WINDOW_MAX
            && (len as u64 - self.eliciting > OUTSIDE_WINDOW_MAX as u64
                || len > OUTSTANDING_MAX
                || self.pto_count > PTO_COUNT_MAX)
            && self.exceeds_window()
    }

    #[cold]
    fn exceeds_window(&self) -> bool {
        let len = self.sent.len();
        let others = len as u64 - self.eliciting;
        let unbounded = others.saturating_sub(OUTSIDE_WINDOW_MAX as u64);
        len > OUTSTANDING_MAX
            || unbounded * self.path.mtu() > 2 * self.path.control.window
            || self.pto_count > PTO_COUNT_MAX
    }
}
