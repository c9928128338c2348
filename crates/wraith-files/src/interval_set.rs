//! A set of numbers stored as ranges, such as the chunks that are on disk, wanted, not received
//! yet, or in holes.
//!
//! Invariant: ranges are disjoint, not empty and not adjacent. Every operation is O(log n) in the
//! number of ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Sorted, disjoint, half-open ranges of numbers, such as chunk indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IntervalSet {
    /// Start to end.
    ranges: BTreeMap<u64, u64>,
    count: u64,
}

impl IntervalSet {
    /// Returns the empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns how many numbers the set contains.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of ranges.
    pub fn range_count(&self) -> usize {
        self.ranges.len()
    }

    /// Returns true if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Iterates over the ranges in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ranges.iter().map(|(&start, &end)| start..end)
    }

    /// Iterates over the ranges of `0..count` that are not in the set, in ascending order.
    pub fn missing(&self, count: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let starts = std::iter::once(0).chain(self.ranges.values().copied());
        let ends = self.ranges.keys().copied().chain(std::iter::once(count));
        starts
            .zip(ends)
            .map(move |(start, end)| start..end.min(count))
            .filter(|gap| !gap.is_empty())
    }

    /// Iterates over the ranges of `within` that are not in the set, in ascending order.
    pub fn gaps(&self, within: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut at = within.start;
        std::iter::from_fn(move || {
            while at < within.end {
                let alike = at..within.end.min(self.alike_until(at));
                at = alike.end;
                if !self.contains(alike.start) {
                    return Some(alike);
                }
            }
            None
        })
    }

    /// Returns true if `number` is in the set.
    pub fn contains(&self, number: u64) -> bool {
        self.ranges.range(..=number).next_back().is_some_and(|(_, &end)| number < end)
    }

    /// Returns the range that contains `number`.
    pub fn range_of(&self, number: u64) -> Option<Range<u64>> {
        let (&start, &end) = self.ranges.range(..=number).next_back()?;
        (number < end).then_some(start..end)
    }

    /// Returns the first number after `number` at which membership in the set changes; `u64::MAX`
    /// if there is none.
    pub fn alike_until(&self, number: u64) -> u64 {
        let behind = || self.ranges.range(number..).next().map_or(u64::MAX, |(&start, _)| start);
        self.range_of(number).map_or_else(behind, |range| range.end)
    }

    /// Returns true if the set contains every number of `range`. True for an empty range.
    pub fn contains_range(&self, range: &Range<u64>) -> bool {
        let found = || self.ranges.range(..=range.start).next_back();
        range.is_empty() || found().is_some_and(|(_, &end)| range.end <= end)
    }

    /// Returns the highest range.
    pub fn last(&self) -> Option<Range<u64>> {
        self.ranges.last_key_value().map(|(&start, &end)| start..end)
    }

    /// Returns true if the set contains any number of `range`.
    pub fn intersects(&self, range: &Range<u64>) -> bool {
        !range.is_empty()
            && self.ranges.range(..range.end).next_back().is_some_and(|(_, &end)| end > range.start)
    }

    /// Adds all numbers of `range`.
    pub fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let (mut start, mut end) = (range.start, range.end);
        // Merge every range that overlaps or touches, from the last one that starts at or before
        // `end`.
        while let Some((&s, &e)) = self.ranges.range(..=end).next_back() {
            if e < start {
                break;
            }
            self.ranges.remove(&s);
            self.count -= e - s;
            (start, end) = (start.min(s), end.max(e));
        }
        self.ranges.insert(start, end);
        self.count += end - start;
    }

    /// Removes all numbers of `range`.
    pub fn remove(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        while let Some((&s, &e)) = self.ranges.range(..range.end).next_back() {
            if e <= range.start {
                break;
            }
            self.ranges.remove(&s);
            self.count -= e.min(range.end) - s.max(range.start);
            if s < range.start {
                self.ranges.insert(s, range.start);
            }
            if e > range.end {
                self.ranges.insert(range.end, e);
            }
        }
    }
}

impl FromIterator<Range<u64>> for IntervalSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Self {
        let mut set = Self::new();
        ranges.into_iter().for_each(|range| set.insert(range));
        set
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_behaves_like_a_plain_set(steps in proptest::collection::vec(
            (any::<bool>(), 0u64..60, 0u64..12), 0..40), probe in 0u64..60, len in 0u64..10) {
            let (mut ranges, mut naive) = (IntervalSet::new(), BTreeSet::new());
            for (add, start, len) in steps {
                let range = start..start + len;
                if add {
                    ranges.insert(range.clone());
                    naive.extend(range);
                } else {
                    ranges.remove(range.clone());
                    range.for_each(|chunk| { naive.remove(&chunk); });
                }
            }
            prop_assert_eq!(ranges.iter().flatten().collect::<Vec<_>>(), naive.iter().copied().collect::<Vec<_>>());
            prop_assert_eq!(ranges.count(), naive.len() as u64);
            let gaps: Vec<u64> = ranges.missing(50).flatten().collect();
            prop_assert_eq!(gaps, (0..50).filter(|chunk| !naive.contains(chunk)).collect::<Vec<_>>());
            prop_assert_eq!(ranges.contains(probe), naive.contains(&probe));
            prop_assert_eq!(ranges.range_of(probe).is_some(), naive.contains(&probe));
            prop_assert!(ranges.range_of(probe).is_none_or(|range| ranges.iter().any(|r| r == range)));
            let alike = |chunk: &u64| naive.contains(chunk) == naive.contains(&probe);
            let until = (probe..80).take_while(alike).count() as u64 + probe;
            prop_assert_eq!(ranges.alike_until(probe).min(80), until);
            let window = probe..probe + len;
            let outside: Vec<u64> = ranges.gaps(window.clone()).flatten().collect();
            prop_assert_eq!(outside, window.clone().filter(|n| !naive.contains(n)).collect::<Vec<_>>());
            prop_assert_eq!(ranges.intersects(&window), naive.range(window.clone()).next().is_some());
            prop_assert_eq!(ranges.contains_range(&window), window.clone().all(|n| naive.contains(&n)));
            prop_assert_eq!(ranges.last().map(|range| range.end - 1), naive.last().copied());
            let list: Vec<_> = ranges.iter().collect();
            prop_assert_eq!(&list.iter().cloned().collect::<IntervalSet>(), &ranges);
            prop_assert!(list.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }
}
