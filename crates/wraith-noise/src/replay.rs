//! Replay window: the packet numbers received so far (SPEC §4.4).

/// Size of the replay window: how far below the largest packet number a packet may still arrive. At
/// 10 Gbit/s of small datagrams this is 10 ms of reordering.
pub const REPLAY_WINDOW: u64 = 8192;

/// The replay window of a connection.
pub type ReplayWindow = Window<{ REPLAY_WINDOW as usize / 64 }>;

/// Set of the numbers received among the last `64 × WORDS` ([`REPLAY_WINDOW`] for packets). Every
/// older number is treated as received.
///
/// Invariant: for every `n` in `next − 64 × WORDS .. next`, bit `n mod (64 × WORDS)` is set if `n`
/// was inserted. Constant size; constant time unless the numbers jump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window<const WORDS: usize> {
    /// One more than the largest number inserted.
    next: u64,
    bits: [u64; WORDS],
}

impl<const WORDS: usize> Window<WORDS> {
    /// How far below the largest number another number may still arrive.
    pub const NUMBERS: u64 = 64 * WORDS as u64;

    /// Creates an empty window.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: 0, bits: [0; WORDS] }
    }

    /// Restores a window from the values of [`Self::next`] and [`Self::bits`]. Inconsistent values
    /// give a window that rejects too much or too little, with no worse effect.
    #[must_use]
    pub const fn from_parts(next: u64, bits: [u64; WORDS]) -> Self {
        Self { next, bits }
    }

    /// Returns the bitmap: for each number in the window, at its remainder, whether it was
    /// received.
    #[must_use]
    pub const fn bits(&self) -> &[u64; WORDS] {
        &self.bits
    }

    /// Returns one more than the largest packet number received, or 0 if there is none.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Returns whether `pn` is neither received yet nor older than the window.
    #[must_use]
    pub const fn is_new(&self, pn: u64) -> bool {
        if pn >= self.next {
            return true;
        }
        self.next - pn <= Self::NUMBERS && self.bits[Self::word(pn)] & bit(pn) == 0
    }

    /// Records that `pn` was received. Returns whether it was new. Numbers that leave the window
    /// are forgotten.
    pub fn insert(&mut self, pn: u64) -> bool {
        if !self.is_new(pn) {
            return false;
        }
        if pn >= self.next {
            self.forget(self.next, pn - self.next);
            self.next = pn.saturating_add(1);
        }
        self.bits[Self::word(pn)] |= bit(pn);
        true
    }

    const fn word(pn: u64) -> usize {
        (pn % Self::NUMBERS / 64) as usize
    }

    /// Clears the bits of the numbers `from..=from + count`, which still stand for numbers that
    /// have left the window.
    fn forget(&mut self, from: u64, count: u64) {
        if count >= Self::NUMBERS {
            self.bits = [0; WORDS];
            return;
        }
        let end = from + count + 1;
        let mut pn = from;
        while pn < end {
            let word_end = (pn | 63) + 1;
            let stop = word_end.min(end);
            let below_stop = if stop == word_end { u64::MAX } else { bit(stop) - 1 };
            let from_pn = !(bit(pn) - 1);
            self.bits[Self::word(pn)] &= !(from_pn & below_stop);
            pn = stop;
        }
    }
}

impl<const WORDS: usize> Default for Window<WORDS> {
    fn default() -> Self {
        Self::new()
    }
}

const fn bit(pn: u64) -> u64 {
    1 << (pn % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// Reference implementation that remembers every number.
    #[derive(Default)]
    struct Model {
        seen: HashSet<u64>,
        next: u64,
    }

    impl Model {
        fn insert(&mut self, pn: u64) -> bool {
            let new = pn + REPLAY_WINDOW >= self.next && self.seen.insert(pn);
            self.next = self.next.max(pn + 1);
            new
        }
    }

    #[test]
    fn numbers_in_order_are_new_once() {
        let mut window = ReplayWindow::new();
        for pn in 0..3 * REPLAY_WINDOW {
            assert!(window.is_new(pn));
            assert!(window.insert(pn));
            assert!(!window.is_new(pn));
            assert!(!window.insert(pn));
        }
    }

    #[test]
    fn the_window_is_exactly_as_long_as_specified() {
        let mut window = ReplayWindow::new();
        window.insert(20_000);
        assert!(window.is_new(20_001 - REPLAY_WINDOW));
        assert!(!window.is_new(20_000 - REPLAY_WINDOW));
    }

    #[test]
    fn a_jump_far_ahead_forgets_everything() {
        let mut window = ReplayWindow::new();
        for pn in 0..REPLAY_WINDOW {
            window.insert(pn);
        }
        assert!(window.insert(1 << 61));
        assert!(!window.is_new(REPLAY_WINDOW - 1));
        for back in 1..REPLAY_WINDOW {
            assert!(window.insert((1 << 61) - back));
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let mut window = ReplayWindow::new();
        assert!(window.insert(u64::MAX - 1));
        assert!(!window.insert(u64::MAX - 1));
        assert!(window.insert(u64::MAX - 2));
    }

    proptest! {
        #[test]
        fn the_window_agrees_with_a_model_that_remembers_everything(
            steps in prop::collection::vec(
                (prop_oneof![Just(0..4u64), Just(0..200), Just(0..20_000)], any::<prop::sample::Index>(), any::<bool>()),
                1..400,
            ),
        ) {
            let (mut window, mut model) = (ReplayWindow::new(), Model::default());
            for (range, index, back) in steps {
                let distance = range.start + index.index((range.end - range.start) as usize) as u64;
                let pn = if back {
                    model.next.saturating_sub(distance)
                } else {
                    model.next + distance
                };
                prop_assert_eq!(window.insert(pn), model.insert(pn), "packet number {}", pn);
                prop_assert_eq!(window.next(), model.next);
            }
        }
    }
}
