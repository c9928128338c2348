//! Decisions about manifest entries on their way into Want messages (SPEC §10.5).

use wraith_core::RangeSet;

use crate::limits::{WANT_ENTRIES_MAX, WANT_RANGES_MAX};
use crate::message::{Compare, Part, Span, Want};

/// Collects decisions in entry order until they are worth a message.
#[derive(Debug, Default)]
pub(crate) struct Wants {
    want: Want,
    spans: usize,
    entries: usize,
}

impl Wants {
    /// `entry` is not wanted.
    pub(crate) fn pass(&mut self, entry: u32) {
        self.want.upto = u64::from(entry) + 1;
        self.entries += 1;
    }

    /// All of `entry` is wanted.
    pub(crate) fn whole(&mut self, entry: u32) {
        self.pass(entry);
        let first = u64::from(entry);
        match self.want.whole.last_mut() {
            Some(last) if last.first + last.count == first => last.count += 1,
            _ => {
                self.want.whole.push(Span { first, count: 1 });
                self.spans += 1;
            }
        }
    }

    /// `chunks` of `entry` are wanted, at most [`WANT_RANGES_MAX`] / 2 ranges ([`coarse`]).
    pub(crate) fn part(&mut self, entry: u32, chunks: &RangeSet) {
        self.pass(entry);
        let chunks: Vec<Span> =
            chunks.iter().map(|r| Span { first: r.start, count: r.end - r.start }).collect();
        self.spans += chunks.len() + 1;
        self.want.parts.push(Part { entry: u64::from(entry), chunks });
    }

    /// `entry` is wanted unless it has this root.
    pub(crate) fn compare(&mut self, entry: u32, root: [u8; 32]) {
        self.pass(entry);
        self.spans += 1;
        self.want.compare.push(Compare { entry: u64::from(entry), root });
    }

    /// There is an old copy of the entry that was wanted last.
    pub(crate) fn delta(&mut self) {
        if let Some(entry) = self.want.upto.checked_sub(1) {
            self.want.delta.push(entry);
        }
    }

    /// True if it should be sent now, even if there is more to decide.
    pub(crate) fn is_full(&self) -> bool {
        self.entries >= WANT_ENTRIES_MAX || self.spans >= WANT_RANGES_MAX / 2
    }

    /// What was decided since the last call, if anything.
    pub(crate) fn take(&mut self) -> Option<Want> {
        if self.entries == 0 {
            return None;
        }
        let upto = self.want.upto;
        let want = std::mem::replace(&mut self.want, Want { upto, ..Want::default() });
        (self.spans, self.entries) = (0, 0);
        Some(want)
    }
}

/// `missing` with its smallest gaps filled until it has at most half of [`WANT_RANGES_MAX`] ranges. Only a part file torn
/// into thousands of pieces has so many; a few chunks are then fetched again.
pub(crate) fn coarse(missing: RangeSet) -> RangeSet {
    coarse_to(missing, WANT_RANGES_MAX / 2)
}

fn coarse_to(mut missing: RangeSet, ranges_max: usize) -> RangeSet {
    let excess = missing.len().saturating_sub(ranges_max);
    if excess == 0 {
        return missing;
    }
    let ranges: Vec<_> = missing.iter().collect();
    let mut gaps: Vec<_> = ranges.windows(2).map(|pair| pair[0].end..pair[1].start).collect();
    gaps.sort_by_key(|gap| gap.end - gap.start);
    gaps.truncate(excess);
    gaps.into_iter().for_each(|gap| _ = missing.insert(gap));
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_span_and_nothing_is_said_twice() {
        let mut wants = Wants::default();
        assert_eq!(wants.take(), None);
        wants.whole(0);
        wants.whole(1);
        wants.pass(2);
        wants.whole(3);
        wants.compare(4, [1; 32]);
        wants.delta();
        let want = wants.take().unwrap();
        assert_eq!(want.upto, 5);
        assert_eq!(want.whole, [Span { first: 0, count: 2 }, Span { first: 3, count: 1 }]);
        assert_eq!(want.compare, [Compare { entry: 4, root: [1; 32] }]);
        assert_eq!(want.delta, [4]);
        assert_eq!(wants.take(), None);
    }

    #[test]
    fn a_shredded_part_file_is_fetched_in_coarser_pieces() {
        let mut missing = RangeSet::new();
        [0..1, 2..3, 10..11, 13..14].into_iter().for_each(|r| _ = missing.insert(r));
        let coarser = coarse_to(missing, 2);
        assert_eq!(coarser.iter().collect::<Vec<_>>(), [0..3, 10..14]);
    }
}
