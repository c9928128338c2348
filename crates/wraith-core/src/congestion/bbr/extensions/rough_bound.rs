//! Faster growth of the rough bound from a lossy Startup.
//!
//! - The draft: each probe raises the long-term bound by one packet in the first round, two in the
//!   second, and so on.
//! - Ours: the first probe after a Startup that ended with loss begins three rounds further on.
//! - Why: the bound that such a Startup leaves is its delivery during the loss. The path may carry
//!   much more.
//! - Grid: not measured alone.

/// Rounds of growth that this probe skips.
const ROUNDS_AHEAD: u32 = 3;

/// True if the bound is rough.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct RoughBound(bool);

impl RoughBound {
    /// Records that Startup ended with loss.
    pub(in super::super) fn set(&mut self) {
        self.0 = true;
    }

    /// Returns the rounds of growth that the next probe skips.
    pub(in super::super) fn take_rounds_ahead(&mut self) -> u32 {
        if std::mem::take(&mut self.0) { ROUNDS_AHEAD } else { 0 }
    }

    #[cfg(test)]
    pub(in super::super) fn is_set(self) -> bool {
        self.0
    }
}
