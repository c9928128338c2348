//! The bound that a lossy Startup leaves behind is rough.
//!
//! - The draft: each probe raises the long-term bound by one packet in the first round, two in the second, and so on.
//! - Ours: the first probe after a Startup that ended with loss begins three rounds further on.
//! - Why: its bound is what Startup delivered while it lost, and the path may hold much more.
//! - Grid: not measured alone.

/// Rounds of growth by which that probe is ahead.
const ROUNDS_AHEAD: u32 = 3;

/// Whether the bound is rough.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct RoughBound(bool);

impl RoughBound {
    /// Startup ended with loss.
    pub(in super::super) fn set(&mut self) {
        self.0 = true;
    }

    /// Rounds of growth with which the next probe begins.
    pub(in super::super) fn take_rounds_ahead(&mut self) -> u32 {
        if std::mem::take(&mut self.0) { ROUNDS_AHEAD } else { 0 }
    }

    #[cfg(test)]
    pub(in super::super) fn is_set(self) -> bool {
        self.0
    }
}
