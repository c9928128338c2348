//! A set of `u64`, kept as sorted, disjoint, non-adjacent half-open ranges.
//!
//! It holds received stream offsets, acknowledged and lost stream data, and received packet
//! numbers. These sets have few ranges and change mostly at their highest values. Invariant: for
//! neighbouring ranges `a` and `b`, `a.end < b.start`. Insertion and removal take O(log n) for the
//! search plus the shift of later ranges. Appending at the end is O(1).

use std::ops::Range;

/// Maximum number of entries for which an emptied queue of a stream keeps its memory.
const KEPT_ENTRIES_MAX: usize = 16;

/// Empties `queue`, and frees its memory if that is more than a small stream needs.
pub(crate) fn clear_deque<T>(queue: &mut std::collections::VecDeque<T>) {
    queue.clear();
    if queue.capacity() > KEPT_ENTRIES_MAX {
        *queue = std::collections::VecDeque::new();
    }
}

/// A set of `u64` as sorted, disjoint ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet {
    ranges: std::collections::VecDeque<Range<u64>>,
}

impl RangeSet {
    /// Returns the empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Removes everything. Keeps the memory of a few ranges for the next use.
    pub(crate) fn clear(&mut self) {
        clear_deque(&mut self.ranges);
    }

    /// Returns the number of ranges, not of members.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// Returns true if the set has no member.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the lowest range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.ranges.front().cloned()
    }

    /// Returns the highest range.
    pub fn last(&self) -> Option<Range<u64>> {
        self.ranges.back().cloned()
    }

    /// Iterates over the ranges in ascending order.
    pub fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = Range<u64>> + ExactSizeIterator + Clone + '_ {
        self.ranges.iter().cloned()
    }

    /// Iterates over the ranges in descending order.
    pub fn iter_rev(&self) -> impl Iterator<Item = Range<u64>> + Clone + '_ {
        self.ranges.iter().rev().cloned()
    }

    /// Removes and returns the lowest range.
    pub fn pop_first(&mut self) -> Option<Range<u64>> {
        self.ranges.pop_front()
    }

    /// Returns true if `value` is in the set.
    pub fn contains(&self, value: u64) -> bool {
        let i = self.ranges.partition_point(|r| r.end <= value);
        self.ranges.get(i).is_some_and(|r| r.start <= value)
    }

    /// Returns true if every number of `range` is in the set; true for an empty range.
    pub fn contains_range(&self, range: &Range<u64>) -> bool {
        if range.is_empty() {
            return true;
        }
        let i = self.ranges.partition_point(|r| r.end <= range.start);
        self.ranges.get(i).is_some_and(|r| r.start <= range.start && range.end <= r.end)
    }

    /// Returns true if `range` overlaps or adjoins a range of the set, so that inserting it adds no
    /// range.
    pub fn touches(&self, range: &Range<u64>) -> bool {
        let i = self.ranges.partition_point(|r| r.end < range.start);
        self.ranges.get(i).is_some_and(|r| r.start <= range.end)
    }

    /// Iterates over the parts of `range` that are not in the set, in ascending order.
    pub fn gaps(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let from = self.ranges.partition_point(|r| r.end <= range.start);
        let mut start = range.start;
        let mut covered = self.ranges.range(from..);
        std::iter::from_fn(move || {
            while start < range.end {
                let next = covered.next().cloned().unwrap_or(range.end..range.end);
                let gap = start..next.start.min(range.end);
                start = next.end.max(start);
                if !gap.is_empty() {
                    return Some(gap);
                }
            }
            None
        })
    }

    /// Adds every number of `range`. Returns true if at least one was new.
    pub fn insert(&mut self, range: Range<u64>) -> bool {
        if range.is_empty() {
            return false;
        }
        if let Some(last) = self.ranges.back_mut() {
            if last.end < range.start {
                self.ranges.push_back(range);
                return true;
            }
            if last.start <= range.start {
                let grew = range.end > last.end;
                last.end = last.end.max(range.end);
                return grew;
            }
        }
        // `low..high` are the ranges that touch or overlap the new one.
        let low = self.ranges.partition_point(|r| r.end < range.start);
        let high = self.ranges.partition_point(|r| r.start <= range.end);
        if low == high {
            self.ranges.insert(low, range);
            return true;
        }
        if high - low == 1 {
            let only = &mut self.ranges[low];
            let grew = range.start < only.start || range.end > only.end;
            only.start = only.start.min(range.start);
            only.end = only.end.max(range.end);
            return grew;
        }
        let end = self.ranges[high - 1].end.max(range.end);
        let first = &mut self.ranges[low];
        first.start = first.start.min(range.start);
        first.end = end;
        self.ranges.drain(low + 1..high);
        true
    }

    /// Removes every number of `range`. Returns how many were in the set.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        let mut removed = 0;
        if range.is_empty() {
            return removed;
        }
        let mut i = self.ranges.partition_point(|r| r.end <= range.start);
        while let Some(found) = self.ranges.get_mut(i) {
            if found.start >= range.end {
                break;
            }
            let old = found.clone();
            removed += old.end.min(range.end) - old.start.max(range.start);
            match (old.start < range.start, old.end > range.end) {
                (true, true) => {
                    found.end = range.start;
                    self.ranges.insert(i + 1, range.end..old.end);
                    break;
                }
                (true, false) => {
                    found.end = range.start;
                    i += 1;
                }
                (false, true) => {
                    found.start = range.end;
                    break;
                }
                (false, false) => {
                    self.ranges.remove(i);
                }
            }
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn touching_ranges_become_one() {
        let mut set = RangeSet::new();
        assert!(set.insert(0..3));
        assert!(set.insert(5..8));
        assert!(set.insert(3..5));
        assert!(!set.insert(1..7));
        assert_eq!(set.iter().collect::<Vec<_>>(), vec![0..8]);
    }

    proptest! {
        #[test]
        fn behaves_like_a_set_of_numbers(ops in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..12), 0..80)) {
            let mut set = RangeSet::new();
            let mut model = BTreeSet::new();
            for (add, start, len) in ops {
                let range = start..start + len;
                if add {
                    let grew = range.clone().any(|v| !model.contains(&v));
                    let (touches, before) = (set.touches(&range), set.len());
                    model.extend(range.clone());
                    prop_assert_eq!(set.insert(range.clone()), grew);
                    prop_assert!(range.is_empty() || touches != (set.len() > before));
                } else {
                    let before = model.len();
                    model.retain(|v| !range.contains(v));
                    prop_assert_eq!(set.remove(range), (before - model.len()) as u64);
                }
                let listed: Vec<u64> = set.iter().flatten().collect();
                prop_assert_eq!(&listed, &model.iter().copied().collect::<Vec<_>>());
                let ranges: Vec<_> = set.iter().collect();
                prop_assert!(ranges.windows(2).all(|w| w[0].end < w[1].start));
                prop_assert!((0..80).all(|v| set.contains(v) == model.contains(&v)));
                let gaps: Vec<u64> = set.gaps(start..60).flatten().collect();
                let missing: Vec<u64> = (start..60).filter(|v| !model.contains(v)).collect();
                prop_assert_eq!(gaps, missing);
                prop_assert!(set.gaps(start..60).all(|gap| !gap.is_empty()));
            }
        }
    }
}
