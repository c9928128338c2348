//! What a peer can make us remember of packets sent: a window's worth, and little more.
//!
//! Packets that carry data are bounded by the congestion window. Everything else that keeps a packet number in memory is bounded
//! here, whatever the peer acknowledges or does not.

use super::Recovery;

/// Most packet numbers between the oldest outstanding packet and the newest: 380 MB of 1452-byte packets. Bounds
/// the memory of a window; beyond it the oldest packets are declared lost.
pub(super) const OUTSTANDING_MAX: usize = 1 << 18;
/// Of these, numbers that no window bounds: packets that only acknowledge, those acknowledged out of order (beside two windows),
/// and probes that nobody answers. A peer that acknowledges nothing, or what it likes, holds so many and no more.
pub(super) const UNBOUNDED_MAX: usize = 640;
/// Probe timeouts in a row after which packets are not waited for any more if they are more than [`UNBOUNDED_MAX`].
const UNANSWERED_MAX: u32 = 16;

impl<F> Recovery<F> {
    /// Packets that only acknowledge are nobody's loss: the oldest need not be remembered.
    #[cold]
    pub(super) fn forget_oldest_acks(&mut self) {
        while self.is_excessive()
            && self.sent.front().is_some_and(|(_, oldest)| !oldest.packet.ack_eliciting)
        {
            self.sent.pop_front();
        }
    }

    /// Nobody answers, and as much is remembered as may be. What is given up then makes no room for what is new: it would be
    /// given up in its turn, as fast as the pacer allows. Probes go on.
    pub(super) fn is_waiting_for_an_answer(&self) -> bool {
        self.pto_count > UNANSWERED_MAX && self.sent.len() >= UNBOUNDED_MAX && self.eliciting > 0
    }

    /// More is remembered than the window explains.
    pub(super) fn is_excessive(&self) -> bool {
        let len = self.sent.len();
        len > UNBOUNDED_MAX
            && (len as u64 - self.eliciting > UNBOUNDED_MAX as u64
                || len > OUTSTANDING_MAX
                || self.pto_count > UNANSWERED_MAX)
            && self.exceeds_window()
    }

    #[cold]
    fn exceeds_window(&self) -> bool {
        let len = self.sent.len();
        let others = len as u64 - self.eliciting;
        let unbounded = others.saturating_sub(UNBOUNDED_MAX as u64);
        len > OUTSTANDING_MAX
            || unbounded * self.path.mtu() > 2 * self.path.control.window
            || self.pto_count > UNANSWERED_MAX
    }
}
