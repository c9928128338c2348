//! Packet numbers that were left out on purpose, so that who acknowledges what it cannot have received is caught
//! (RFC 9000 §21.4): such a peer would make us send faster than the path carries.
//!
//! The last few are remembered beyond the time in which they lie between outstanding packets, because an ACK may name them at any
//! time, and an honest one never does.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

/// Numbers remembered. Older ones are named only by an ACK that repeats what earlier ones said.
const REMEMBERED_MAX: usize = 16;

/// The last numbers left out, ascending.
#[derive(Debug)]
pub(super) struct Skipped {
    numbers: VecDeque<u64>,
}

impl Default for Skipped {
    /// With all the room it will ever need: packets are sent without asking the allocator for anything.
    fn default() -> Self {
        Self { numbers: VecDeque::with_capacity(REMEMBERED_MAX) }
    }
}

/// Numbers from this place on lie above the ranges still to come.
#[derive(Debug)]
pub(super) struct SkippedWalk {
    above: usize,
}

impl Skipped {
    /// Remembers a number, which is above all before.
    #[cold]
    pub(super) fn push(&mut self, pn: u64) {
        if self.numbers.len() == REMEMBERED_MAX {
            self.numbers.pop_front();
        }
        self.numbers.push_back(pn);
    }

    /// Where a walk through descending ranges starts.
    pub(super) fn walk(&self) -> SkippedWalk {
        SkippedWalk { above: self.numbers.len() }
    }

    /// True if one of them is in `range`. The ranges of one walk descend.
    pub(super) fn is_hit(&self, walk: &mut SkippedWalk, range: &RangeInclusive<u64>) -> bool {
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
