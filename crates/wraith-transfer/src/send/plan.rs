//! Remaining work of the sender: announced entries, received Wants, and the next job.
//!
//! Want messages decide entries in order: each entry becomes *wanted* or is dropped. A wanted entry
//! leaves the plan when a worker takes it. The undecided and the wanted entries together are
//! bounded: while the plan is full, the manifest waits ([`Plan::has_room`]). A Want that names an
//! entry twice, out of order, or before it was announced is rejected. So a receiver can request
//! each entry at most once.

use std::collections::VecDeque;

use wraith_files::{Root, Tree, chunk_count};

use crate::exception::Exception;
use crate::limits::{KEPT_ENTRIES_MAX, KEPT_PATH_BYTES_MAX};
use crate::message::Want;
use crate::wanted::{WantDecision, WantReader, Wanted};

/// Properties of an entry that the plan needs.
pub(crate) trait Planned {
    /// Returns the size in bytes if it is a file.
    fn file_bytes(&self) -> Option<u64>;
    /// Returns the hash tree of its root, if it is a file.
    fn tree(&self) -> Tree;
    /// Returns the length of its path in bytes.
    fn path_bytes(&self) -> usize;
}

/// A wanted file.
#[derive(Debug)]
pub(crate) struct Job<T> {
    pub(crate) entry: u32,
    pub(crate) item: T,
    pub(crate) wanted: Wanted,
    /// True if the receiver has an old copy, so that only its missing bytes are sent (SPEC §10.11).
    pub(crate) delta: bool,
}

/// A decided entry that is not wanted: a file, with the reason, or another entry.
#[derive(Debug)]
pub(crate) struct Passed<T> {
    pub(crate) entry: u32,
    pub(crate) item: T,
    pub(crate) exception: Option<Exception>,
}

/// Decisions of a Want that need no worker.
#[derive(Debug)]
pub(crate) struct Decisions<T> {
    pub(crate) passed: Vec<Passed<T>>,
    /// Pushed files that are wanted as a whole, with their roots.
    pub(crate) pushed: Vec<(u32, T, Root)>,
}

/// The plan; see the module documentation.
#[derive(Debug)]
pub(crate) struct Plan<T> {
    /// Announced, undecided entries; the first has number `decided`.
    undecided: VecDeque<T>,
    decided: u64,
    wanted: VecDeque<Job<T>>,
    /// Path bytes in `undecided` and `wanted`.
    path_bytes: usize,
}

impl<T: Planned> Plan<T> {
    pub(crate) fn new() -> Self {
        Self { undecided: VecDeque::new(), decided: 0, wanted: VecDeque::new(), path_bytes: 0 }
    }

    /// Returns false while too many entries are kept: no more may be announced then.
    pub(crate) fn has_room(&self) -> bool {
        self.undecided.len() + self.wanted.len() < KEPT_ENTRIES_MAX
            && self.path_bytes < KEPT_PATH_BYTES_MAX
    }

    /// Adds entries, before the manifest stream carries them.
    pub(crate) fn announce(&mut self, entries: Vec<T>) {
        self.path_bytes += entries.iter().map(Planned::path_bytes).sum::<usize>();
        self.undecided.extend(entries);
    }

    /// Applies a Want. Returns the entries that are not wanted or, according to `root_of_pushed`,
    /// were pushed. An error describes the violation of SPEC §10.5; after an error, no decision is
    /// applied.
    pub(crate) fn decide(
        &mut self,
        want: &Want,
        root_of_pushed: impl Fn(u32) -> Option<Root>,
    ) -> Result<Decisions<T>, &'static str> {
        let announced = self.decided + self.undecided.len() as u64;
        if want.upto < self.decided || want.upto > announced {
            return Err("it decides entries that were not announced");
        }
        let mut named = WantReader::new(want)?;
        let first = self.decided;
        let mut all = Vec::new();
        // Two passes: check, then apply.
        for (entry, item) in (first..want.upto).zip(&self.undecided) {
            let decided = named.take(entry)?;
            match (&decided, item.file_bytes()) {
                (Some(WantDecision::Wanted { wanted, delta }), Some(bytes)) => {
                    check_wanted(wanted, *delta, bytes, item.tree())?;
                }
                (Some(WantDecision::Excepted(_)), Some(_)) | (None, None) => {}
                (Some(_), None) => return Err("it wants an entry that is not a file"),
                (None, Some(_)) => return Err("it leaves a file undecided"),
            }
            all.push((u32::try_from(entry).map_err(|_| "too many entries")?, decided));
        }
        if !named.is_exhausted() {
            return Err("it wants an entry twice, out of order, or never announced");
        }
        let (mut passed, mut pushed) = (Vec::new(), Vec::new());
        for (entry, decided) in all {
            let item = self.undecided.pop_front().expect("upto is at most what was announced");
            let exception = match decided {
                Some(WantDecision::Wanted { wanted, delta }) => {
                    let root = root_of_pushed(entry).filter(|_| wanted == Wanted::Whole && !delta);
                    if let Some(root) = root {
                        self.path_bytes -= item.path_bytes();
                        pushed.push((entry, item, root));
                        continue;
                    }
                    self.wanted.push_back(Job { entry, item, wanted, delta });
                    continue;
                }
                Some(WantDecision::Excepted(exception)) => Some(exception),
                None => None,
            };
            self.path_bytes -= item.path_bytes();
            passed.push(Passed { entry, item, exception });
        }
        self.decided = want.upto;
        Ok(Decisions { passed, pushed })
    }

    /// Takes jobs from the front: the first one unconditionally, then more while `more` returns
    /// true.
    pub(crate) fn take(&mut self, mut more: impl FnMut(&Job<T>) -> bool) -> Vec<Job<T>> {
        let mut jobs = Vec::new();
        while let Some(job) = self.wanted.pop_front_if(|job| jobs.is_empty() | more(job)) {
            self.path_bytes -= job.item.path_bytes();
            jobs.push(job);
        }
        jobs
    }

    /// Puts a job back in front of all others.
    pub(crate) fn put_back(&mut self, job: Job<T>) {
        self.path_bytes += job.item.path_bytes();
        self.wanted.push_front(job);
    }

    /// Returns true if a job can be taken.
    pub(crate) fn has_work(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Returns true if every announced entry is decided and every wanted one was taken.
    pub(crate) fn is_resolved(&self) -> bool {
        self.undecided.is_empty() && self.wanted.is_empty()
    }
}

/// Checks the wanted part of a file against its size and tree.
fn check_wanted(wanted: &Wanted, delta: bool, bytes: u64, tree: Tree) -> Result<(), &'static str> {
    if let Wanted::Chunks(chunks) = wanted {
        let count = chunk_count(bytes);
        if count < 2 || chunks.last().is_some_and(|range| range.end > count) {
            return Err("it wants chunks that the file does not have");
        }
    }
    if delta && !crate::delta::suits(bytes, tree) {
        return Err("it requests a delta of an unsuitable file");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wraith_files::IntervalSet;

    use crate::message::{Compare, Part, Span};

    const CHUNK: u64 = wraith_files::CHUNK_BYTES as u64;

    /// A file of this many bytes, or another entry.
    #[derive(Debug, Clone, Copy)]
    struct Item(Option<u64>);

    impl Planned for Item {
        fn file_bytes(&self) -> Option<u64> {
            self.0
        }
        fn tree(&self) -> Tree {
            Tree::Blake3
        }
        fn path_bytes(&self) -> usize {
            10
        }
    }

    fn plan(sizes: &[Option<u64>]) -> Plan<Item> {
        let mut plan = Plan::new();
        plan.announce(sizes.iter().map(|&size| Item(size)).collect());
        plan
    }

    fn span(first: u64, count: u64) -> Span {
        Span { first, count }
    }

    /// Wants chunks of `entry`, and the next one unless it has a root.
    fn part_and_compare(entry: u64) -> Want {
        let parts = vec![Part { entry, chunks: vec![span(1, 2)] }];
        let compare = vec![Compare { entry: entry + 1, root: [9; 32] }];
        Want { parts, compare, ..Want::default() }
    }

    fn taken(plan: &mut Plan<Item>) -> Vec<(u32, Wanted, bool)> {
        let jobs = plan.take(|_| true).into_iter();
        jobs.map(|job| (job.entry, job.wanted, job.delta)).collect()
    }

    #[test]
    fn wanted_entries_come_out_in_order_and_the_others_are_dropped() {
        let mut plan = plan(&[Some(1), None, Some(2), Some(3 * CHUNK), Some(4), Some(5)]);
        let whole = vec![span(0, 1), span(2, 1)];
        let want = Want { upto: 5, whole, ..part_and_compare(3) };
        let passed = plan.decide(&want, |_| None).unwrap().passed;
        assert!(matches!(passed[..], [Passed { entry: 1, exception: None, .. }]), "{passed:?}");
        let chunks: IntervalSet = std::iter::once(1..3).collect();
        let expected = [
            (0, Wanted::Whole, false),
            (2, Wanted::Whole, false),
            (3, Wanted::Chunks(chunks), false),
            (4, Wanted::Unless([9; 32]), false),
        ];
        assert_eq!(taken(&mut plan), expected);
        let skipped = vec![span(5, 1)];
        let passed =
            plan.decide(&Want { upto: 6, skipped, ..Want::default() }, |_| None).unwrap().passed;
        let exception = passed.iter().map(|passed| (passed.entry, passed.exception));
        assert_eq!(exception.collect::<Vec<_>>(), [(5, Some(Exception::Skipped))]);
        assert!(plan.is_resolved());
        assert_eq!(plan.path_bytes, 0);
    }

    #[test]
    fn a_pushed_file_is_skipped_only_if_it_is_wanted_whole() {
        let mut plan = plan(&[Some(1), Some(2), Some(3), Some(4)]);
        let want = Want {
            upto: 4,
            whole: vec![span(0, 2)],
            compare: vec![Compare { entry: 2, root: [9; 32] }],
            skipped: vec![span(3, 1)],
            ..Want::default()
        };
        let decisions = plan.decide(&want, |entry| (entry != 1).then_some([entry as u8; 32]));
        let Decisions { passed, pushed } = decisions.unwrap();
        assert!(matches!(passed[..], [Passed { entry: 3, .. }]), "{passed:?}");
        assert!(matches!(pushed[..], [(0, _, root)] if root == [0; 32]), "{pushed:?}");
        assert_eq!(
            taken(&mut plan),
            [(1, Wanted::Whole, false), (2, Wanted::Unless([9; 32]), false)]
        );
        assert_eq!(plan.path_bytes, 0);
    }

    #[test]
    fn a_want_that_lies_is_refused_and_changes_nothing() {
        let size = Some(3 * CHUNK);
        let part = |entry, chunks: &[Span]| Part { entry, chunks: chunks.to_vec() };
        let compare = |entry| Compare { entry, root: [0; 32] };
        let want = |upto, whole: &[Span], parts: &[Part], compare: &[Compare]| Want {
            upto,
            whole: whole.to_vec(),
            parts: parts.to_vec(),
            compare: compare.to_vec(),
            ..Want::default()
        };
        let except = |skipped: &[Span], blocked: &[Span]| Want {
            skipped: skipped.to_vec(),
            blocked: blocked.to_vec(),
            ..want(3, &[span(0, 1)], &[], &[])
        };
        for lie in [
            // A file without a decision, files decided twice, and decisions about entries that are
            // not files.
            want(3, &[], &[], &[]),
            want(3, &[span(0, 1)], &[], &[]),
            except(&[span(2, 1)], &[span(2, 1)]),
            except(&[span(0, 1), span(2, 1)], &[]),
            except(&[span(1, 2)], &[]),
            except(&[], &[span(2, 2)]),
            except(&[], &[span(2, 0)]),
            want(4, &[], &[], &[]),
            want(u64::MAX, &[span(0, u64::MAX)], &[], &[]),
            want(2, &[span(2, 1)], &[], &[]),
            want(2, &[span(0, 3)], &[], &[]),
            want(3, &[span(0, 0)], &[], &[]),
            want(3, &[span(1, 1), span(0, 1)], &[], &[]),
            want(3, &[span(0, 1), span(0, 1)], &[], &[]),
            want(3, &[span(u64::MAX, 2)], &[], &[]),
            want(3, &[span(1, 1)], &[], &[]),
            want(3, &[span(0, 1)], &[part(0, &[])], &[]),
            want(3, &[], &[part(0, &[])], &[compare(0)]),
            want(3, &[], &[part(0, &[span(3, 1)])], &[]),
            want(3, &[], &[part(0, &[span(0, 2), span(1, 1)])], &[]),
            want(3, &[], &[], &[compare(2), compare(0)]),
            want(3, &[], &[part(7, &[])], &[]),
        ] {
            let mut plan = plan(&[size, None, size]);
            assert!(plan.decide(&lie, |_| None).is_err(), "{lie:?}");
            plan.decide(&want(3, &[span(0, 1), span(2, 1)], &[], &[]), |_| None).unwrap();
            assert_eq!(taken(&mut plan), [(0, Wanted::Whole, false), (2, Wanted::Whole, false)]);
        }
        let mut small = plan(&[Some(CHUNK)]);
        assert!(small.decide(&want(1, &[], &[part(0, &[])], &[]), |_| None).is_err());
    }

    #[test]
    fn a_file_with_an_old_copy_is_wanted_as_a_delta() {
        let size = Some(crate::limits::DELTA_BYTES_MIN);
        let mut plan = plan(&[size, size, size, size]);
        let (whole, delta) = (vec![span(0, 2)], vec![1, 2, 3]);
        let want = Want { upto: 4, whole, delta, ..part_and_compare(2) };
        plan.decide(&want, |_| None).unwrap();
        let chunks: IntervalSet = std::iter::once(1..3).collect();
        let expected = [
            (0, Wanted::Whole, false),
            (1, Wanted::Whole, true),
            (2, Wanted::Chunks(chunks), true),
            (3, Wanted::Unless([9; 32]), true),
        ];
        assert_eq!(taken(&mut plan), expected);
    }

    #[test]
    fn an_old_copy_of_an_unwanted_file_is_a_violation() {
        let size = Some(crate::limits::DELTA_BYTES_MIN);
        for delta in [vec![1], vec![0, 0], vec![2, 0], vec![3], vec![9], vec![u64::MAX]] {
            let mut plan = plan(&[size, size, Some(5), None]);
            let whole = vec![span(0, 1), span(2, 1)];
            assert!(
                plan.decide(&Want { upto: 4, whole, delta, ..Want::default() }, |_| None).is_err()
            );
        }
        let mut plan = plan(&[Some(5)]);
        let want = Want { upto: 1, whole: vec![span(0, 1)], delta: vec![0], ..Want::default() };
        assert!(plan.decide(&want, |_| None).is_err());
    }

    #[test]
    fn an_entry_cannot_be_wanted_again() {
        let mut plan = plan(&[Some(1), Some(1)]);
        let want = Want { upto: 1, whole: vec![span(0, 1)], ..Want::default() };
        plan.decide(&want, |_| None).unwrap();
        assert!(plan.decide(&want, |_| None).is_err());
        assert!(plan.decide(&Want { upto: 0, ..Want::default() }, |_| None).is_err());
    }

    #[test]
    fn a_receiver_that_decides_nothing_fills_the_plan() {
        let mut plan = plan(&vec![Some(1); KEPT_ENTRIES_MAX]);
        assert!(!plan.has_room() && !plan.has_work());
        let whole = vec![span(0, 1)];
        plan.decide(&Want { upto: 1, whole, ..Want::default() }, |_| None).unwrap();
        assert!(!plan.has_room(), "a wanted entry is kept until it is taken");
        plan.take(|_| true);
        assert!(plan.has_room());
    }
}
