//! Skipped packet numbers (RFC 9000 §21.4). A peer may acknowledge packets that it cannot have
//! received, to drive the sender beyond the path's rate. An ACK of a skipped number exposes it.
//!
//! The last few stay in memory after the packets around them were settled. An ACK may name one at
//! any time, and an honest one never does.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// Maximum number of remembered numbers. Only an ACK that repeats earlier ranges names older ones.
const REMEMBERED_MAX: usize = 16;

/// The last skipped numbers, in ascending order.
#[derive(Debug)]
pub(super) struct Skipped {
    numbers: VecDeque<u64>,
}

impl Default for Skipped {
    /// Reserves the full capacity, so that sending never allocates.
    fn default() -> Self {
        Self { numbers: VecDeque::with_capacity(REMEMBERED_MAX) }
    }
}

/// A cursor: numbers from this position on lie above the remaining ranges.
#[derive(Debug)]
pub(super) struct SkippedCursor {
    above: usize,
}

impl Skipped {
    /// Adds a number; it must exceed all previous ones.
    #[cold]
    pub(super) fn push(&mut self, pn: u64) {
        if self.numbers.len() == REMEMBERED_MAX {
            self.numbers.pop_front();
        }
        self.numbers.push_back(pn);
    }

    /// Returns the start of a walk through descending ranges.
    pub(super) fn walk(&self) -> SkippedCursor {
        SkippedCursor { above: self.numbers.len() }
    }

    /// Returns true if a skipped number is in `range`. The ranges of one walk must descend.
    pub(super) fn is_hit(&self, walk: &mut SkippedCursor, range: &RangeInclusive<u64>) -> bool {
        while walk.above > 0 && self.numbers[walk.above - 1] > *range.end() {
            walk.above -= 1;
        }
        walk.above > 0 && self.numbers[walk.above - 1] >= *range.start()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_numbers_are_found_in_descending_ranges() {
        let mut skipped = Skipped::default();
        (0..40).for_each(|i| skipped.push(i * 10));
        let hit = |ranges: &[RangeInclusive<u64>]| {
            let mut walk = skipped.walk();
            ranges.iter().any(|range| skipped.is_hit(&mut walk, range))
        };
        assert!(!hit(&[391..=395, 381..=389, 241..=249, 0..=239]), "older ones are forgotten");
        for number in (240..400).step_by(10) {
            assert!(hit(&[396..=399, number..=number]) && hit(&[number - 3..=number + 3]));
        }
    }
}
