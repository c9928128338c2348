//! The wanted content of each file of a manifest, and its encoding in Want messages (SPEC §10.5).
//! Both sides use this type; the receiver writes it and the sender reads it.

use std::ops::Range;

use wraith_files::{IntervalSet, Root};

use crate::exception::Exception;
use crate::limits::{WANT_ENTRIES_MAX, WANT_RANGES_MAX};
use crate::message::{Compare, Part, Span, Want};

/// How much of a file is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The whole file.
    Whole,
    /// These chunks and the root of the whole file; the receiver has the other chunks.
    Chunks(IntervalSet),
    /// The whole file, unless it has this root: the receiver has such a file.
    Unless(Root),
    /// Only the answer whether the file has this root: another file keeps its name.
    Kept(Root),
}

/// The receiver's side: collects decisions in entry order until a message is worth sending.
#[derive(Debug, Default)]
pub(crate) struct WantWriter {
    want: Want,
    spans: usize,
    entries: usize,
}

impl WantWriter {
    /// Records an `entry` that is not a file.
    pub(crate) fn pass(&mut self, entry: u32) {
        self.want.upto = u64::from(entry) + 1;
        self.entries += 1;
    }

    /// Records that the file `entry` is not wanted: another object keeps its name, or it cannot be
    /// placed.
    pub(crate) fn except(&mut self, entry: u32, exception: Exception) {
        self.pass(entry);
        let spans = match exception {
            Exception::Skipped => &mut self.want.skipped,
            _ => &mut self.want.blocked,
        };
        self.spans += extend(spans, entry.into());
    }

    /// Records that `entry` is wanted. Chunks must be at most [`WANT_RANGES_MAX`] / 2 ranges
    /// ([`coarse`]). With `delta`, the receiver has an old copy of it.
    pub(crate) fn add(&mut self, entry: u32, wanted: &Wanted, delta: bool) {
        self.pass(entry);
        let entry = u64::from(entry);
        match wanted {
            Wanted::Whole => self.spans += extend(&mut self.want.whole, entry),
            Wanted::Chunks(chunks) => {
                let chunks: Vec<Span> = chunks.iter().map(Span::of).collect();
                self.spans += chunks.len() + 1;
                self.want.parts.push(Part { entry, chunks });
            }
            Wanted::Unless(root) => {
                self.spans += 1;
                self.want.compare.push(Compare { entry, root: *root });
            }
            Wanted::Kept(root) => {
                self.spans += 1;
                self.want.kept.push(Compare { entry, root: *root });
            }
        }
        if delta {
            self.want.delta.push(entry);
        }
    }

    /// Returns true if the message should be sent now, even if more decisions follow.
    pub(crate) fn is_full(&self) -> bool {
        self.entries >= WANT_ENTRIES_MAX || self.spans >= WANT_RANGES_MAX / 2
    }

    /// Returns the decisions since the last call, if any.
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

/// Adds `entry`, the highest so far. Returns the number of added spans.
fn extend(spans: &mut Vec<Span>, entry: u64) -> usize {
    match spans.last_mut() {
        Some(last) if last.first + last.count == entry => {
            last.count += 1;
            0
        }
        _ => {
            spans.push(Span { first: entry, count: 1 });
            1
        }
    }
}

/// Fills the smallest gaps of `missing` until it has at most half of [`WANT_RANGES_MAX`] ranges.
/// Only a part file with thousands of gaps has more. Filling gaps means that a few chunks are
/// fetched again.
pub(crate) fn coarse(missing: IntervalSet) -> IntervalSet {
    coarse_to(missing, WANT_RANGES_MAX / 2)
}

fn coarse_to(mut missing: IntervalSet, ranges_max: usize) -> IntervalSet {
    let excess = missing.range_count().saturating_sub(ranges_max);
    if excess == 0 {
        return missing;
    }
    let ranges: Vec<_> = missing.iter().collect();
    let mut gaps: Vec<_> = ranges.windows(2).map(|pair| pair[0].end..pair[1].start).collect();
    gaps.sort_by_key(|gap| gap.end - gap.start);
    gaps.truncate(excess);
    gaps.into_iter().for_each(|gap| missing.insert(gap));
    missing
}

/// The sender's side: reads the entries of a Want from its lists in ascending order.
pub(crate) struct WantReader<'a> {
    whole: Spans<'a>,
    skipped: Spans<'a>,
    blocked: Spans<'a>,
    want: &'a Want,
    part: usize,
    compare: usize,
    kept: usize,
    delta: usize,
}

/// The receiver's decision about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WantDecision {
    /// The file is wanted. With `delta`, the receiver has an old copy of it.
    Wanted { wanted: Wanted, delta: bool },
    /// The file is not wanted, for this reason.
    Excepted(Exception),
}

/// Iterator over the entries of ascending spans.
struct Spans<'a> {
    spans: std::slice::Iter<'a, Span>,
    /// Remaining entries of the current span.
    current: Range<u64>,
}

impl<'a> Spans<'a> {
    fn new(spans: &'a [Span]) -> Result<Self, &'static str> {
        let mut spans = Self { spans: spans.iter(), current: 0..0 };
        spans.next_span()?;
        Ok(spans)
    }

    fn next_span(&mut self) -> Result<(), &'static str> {
        if let Some(span) = self.spans.next() {
            self.current = span.range().ok_or(NO_SPAN)?;
        }
        Ok(())
    }

    /// Returns true, and advances, if `entry` is the next one.
    fn take(&mut self, entry: u64) -> Result<bool, &'static str> {
        let is_next = self.current.start == entry && !self.current.is_empty();
        if is_next {
            self.current.start += 1;
            if self.current.is_empty() {
                self.next_span()?;
            }
        }
        Ok(is_next)
    }

    fn is_exhausted(&self) -> bool {
        self.current.is_empty() && self.spans.len() == 0
    }
}

impl<'a> WantReader<'a> {
    pub(crate) fn new(want: &'a Want) -> Result<Self, &'static str> {
        let whole = Spans::new(&want.whole)?;
        let (skipped, blocked) = (Spans::new(&want.skipped)?, Spans::new(&want.blocked)?);
        Ok(Self { whole, skipped, blocked, want, part: 0, compare: 0, kept: 0, delta: 0 })
    }

    /// Returns the decision about `entry`, if there is one. An error describes the violation of
    /// SPEC §10.5.
    pub(crate) fn take(&mut self, entry: u64) -> Result<Option<WantDecision>, &'static str> {
        let mut wanted = self.whole.take(entry)?.then_some(Wanted::Whole);
        if let Some(part) = self.want.parts.get(self.part).filter(|part| part.entry == entry) {
            self.part += 1;
            let chunks = ascending(&part.chunks)?;
            if wanted.replace(Wanted::Chunks(chunks)).is_some() {
                return Err("it wants an entry twice");
            }
        }
        if let Some(compare) = self.want.compare.get(self.compare).filter(|c| c.entry == entry) {
            self.compare += 1;
            if wanted.replace(Wanted::Unless(compare.root)).is_some() {
                return Err("it wants an entry twice");
            }
        }
        if let Some(kept) = self.want.kept.get(self.kept).filter(|kept| kept.entry == entry) {
            self.kept += 1;
            if wanted.replace(Wanted::Kept(kept.root)).is_some() {
                return Err("it wants an entry twice");
            }
        }
        let delta = self.want.delta.get(self.delta) == Some(&entry);
        self.delta += usize::from(delta);
        if delta && matches!(wanted, None | Some(Wanted::Kept(_))) {
            return Err("it requests a delta of an unwanted entry");
        }
        let mut decided = wanted.map(|wanted| WantDecision::Wanted { wanted, delta });
        for (spans, exception) in
            [(&mut self.skipped, Exception::Skipped), (&mut self.blocked, Exception::Blocked)]
        {
            if spans.take(entry)? && decided.replace(WantDecision::Excepted(exception)).is_some() {
                return Err("it decides an entry twice");
            }
        }
        Ok(decided)
    }

    /// Returns true if every named entry was taken.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.whole.is_exhausted()
            && self.skipped.is_exhausted()
            && self.blocked.is_exhausted()
            && self.part == self.want.parts.len()
            && self.compare == self.want.compare.len()
            && self.kept == self.want.kept.len()
            && self.delta == self.want.delta.len()
    }
}

const NO_SPAN: &str = "it sends an empty or endless span";

/// Converts spans to a set. Fails unless they ascend and do not overlap.
fn ascending(spans: &[Span]) -> Result<IntervalSet, &'static str> {
    let mut set = IntervalSet::new();
    let mut end = 0;
    for span in spans {
        let range = span.range().ok_or(NO_SPAN)?;
        if range.start < end {
            return Err("it wants chunks twice or out of order");
        }
        end = range.end;
        set.insert(range);
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_share_a_span_and_no_entry_is_repeated() {
        let mut writer = WantWriter::default();
        assert_eq!(writer.take(), None);
        writer.add(0, &Wanted::Whole, false);
        writer.add(1, &Wanted::Whole, false);
        writer.pass(2);
        writer.add(3, &Wanted::Whole, false);
        writer.add(4, &Wanted::Unless([1; 32]), true);
        let want = writer.take().unwrap();
        assert_eq!(want.upto, 5);
        assert_eq!(want.whole, [Span { first: 0, count: 2 }, Span { first: 3, count: 1 }]);
        assert_eq!(want.compare, [Compare { entry: 4, root: [1; 32] }]);
        assert_eq!(want.delta, [4]);
        assert_eq!(writer.take(), None);
    }

    #[test]
    fn decisions_survive_the_wire() {
        let chunks = [1..3, 7..8].into_iter().collect();
        let wanted = |wanted, delta| Some(WantDecision::Wanted { wanted, delta });
        let except = |exception| Some(WantDecision::Excepted(exception));
        let all = [
            wanted(Wanted::Whole, false),
            None,
            wanted(Wanted::Whole, true),
            except(Exception::Skipped),
            except(Exception::Skipped),
            except(Exception::Blocked),
            wanted(Wanted::Chunks(chunks), true),
            wanted(Wanted::Chunks(IntervalSet::new()), false),
            wanted(Wanted::Unless([5; 32]), false),
            except(Exception::Skipped),
            wanted(Wanted::Unless([6; 32]), true),
            wanted(Wanted::Kept([7; 32]), false),
        ];
        let mut writer = WantWriter::default();
        for (entry, decided) in (0..).zip(&all) {
            match decided {
                Some(WantDecision::Wanted { wanted, delta }) => writer.add(entry, wanted, *delta),
                Some(WantDecision::Excepted(exception)) => writer.except(entry, *exception),
                None => writer.pass(entry),
            }
        }
        let want = writer.take().unwrap();
        let mut reader = WantReader::new(&want).unwrap();
        for (entry, decided) in (0..).zip(all) {
            assert_eq!(reader.take(entry), Ok(decided));
        }
        assert!(reader.is_exhausted());
    }

    #[test]
    fn a_shredded_part_file_is_fetched_in_coarser_pieces() {
        let missing = [0..1, 2..3, 10..11, 13..14].into_iter().collect();
        let coarser = coarse_to(missing, 2);
        assert_eq!(coarser.iter().collect::<Vec<_>>(), [0..3, 10..14]);
    }
}
