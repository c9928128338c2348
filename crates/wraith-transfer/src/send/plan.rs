//! Remaining work of the sender: announced entries, received Wants, and the next job.
//!
//! Want messages decide entries in order: each entry becomes *wanted* or is dropped. A wanted entry
//! leaves the plan when a worker takes it. The undecided and the wanted entries together are
//! bounded: while the plan is full, the manifest waits ([`Plan::announce`]). A Want that names an
//! entry twice, out of order, or before it was announced is rejected. So a receiver can request
//! each entry at most once.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use wraith_files::{Root, Tree, chunk_count};

use crate::exception::Exception;
use crate::limits::{KEPT_ENTRIES_MAX, KEPT_PATH_BYTES_MAX};
use crate::lock::lock;
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

/// The shared plan; see the module documentation.
#[derive(Debug)]
pub(crate) struct Plan<T> {
    state: Mutex<PlanState<T>>,
    /// Signalled when there is new work or room, or the plan is stopped.
    changed: Condvar,
}

#[derive(Debug)]
struct PlanState<T> {
    /// Announced, undecided entries; the first has number `decided`.
    undecided: VecDeque<T>,
    decided: u64,
    wanted: VecDeque<Job<T>>,
    /// Path bytes in `undecided` and `wanted`.
    path_bytes: usize,
    stopped: bool,
}

impl<T: Planned> Plan<T> {
    pub(crate) fn new() -> Self {
        let state = PlanState {
            undecided: VecDeque::new(),
            decided: 0,
            wanted: VecDeque::new(),
            path_bytes: 0,
            stopped: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds entries, before the manifest stream carries them. Waits while too many are kept.
    /// Returns false once stopped.
    pub(crate) fn announce(&self, entries: Vec<T>) -> bool {
        let mut state = lock(&self.state);
        while !state.stopped && !state.has_room() {
            state = self.wait(state);
        }
        if state.stopped {
            return false;
        }
        state.path_bytes += entries.iter().map(Planned::path_bytes).sum::<usize>();
        state.undecided.extend(entries);
        true
    }

    /// Applies a Want. Returns the entries that are not wanted or, according to `root_of_pushed`,
    /// were pushed. An error describes the violation of SPEC §10.5; after an error, no decision is
    /// applied.
    pub(crate) fn decide(
        &self,
        want: &Want,
        root_of_pushed: impl Fn(u32) -> Option<Root>,
    ) -> Result<Decisions<T>, &'static str> {
        let mut state = lock(&self.state);
        let announced = state.decided + state.undecided.len() as u64;
        if want.upto < state.decided || want.upto > announced {
            return Err("it decides entries that were not announced");
        }
        let mut named = WantReader::new(want)?;
        let first = state.decided;
        let mut all = Vec::new();
        // Two passes: check, then apply.
        for (entry, item) in (first..want.upto).zip(&state.undecided) {
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
            let item = state.undecided.pop_front().expect("upto is at most what was announced");
            let exception = match decided {
                Some(WantDecision::Wanted { wanted, delta }) => {
                    let root = root_of_pushed(entry).filter(|_| wanted == Wanted::Whole && !delta);
                    if let Some(root) = root {
                        state.path_bytes -= item.path_bytes();
                        pushed.push((entry, item, root));
                        continue;
                    }
                    state.wanted.push_back(Job { entry, item, wanted, delta });
                    continue;
                }
                Some(WantDecision::Excepted(exception)) => Some(exception),
                None => None,
            };
            state.path_bytes -= item.path_bytes();
            passed.push(Passed { entry, item, exception });
        }
        state.decided = want.upto;
        drop(state);
        self.changed.notify_all();
        Ok(Decisions { passed, pushed })
    }

    /// Takes jobs from the front: the first one unconditionally, then more while `more` returns
    /// true. Waits for the first. Returns an empty list once the plan is stopped.
    pub(crate) fn take(&self, mut more: impl FnMut(&Job<T>) -> bool) -> Vec<Job<T>> {
        let mut state = lock(&self.state);
        while !state.stopped && state.wanted.is_empty() {
            state = self.wait(state);
        }
        let mut jobs = Vec::new();
        while !state.stopped {
            match state.wanted.front() {
                Some(job) if jobs.is_empty() | more(job) => {}
                _ => break,
            }
            let job = state.wanted.pop_front().expect("there is a front");
            state.path_bytes -= job.item.path_bytes();
            jobs.push(job);
        }
        drop(state);
        self.changed.notify_all();
        jobs
    }

    /// Puts a job back in front of all others.
    pub(crate) fn put_back(&self, job: Job<T>) {
        let mut state = lock(&self.state);
        state.path_bytes += job.item.path_bytes();
        state.wanted.push_front(job);
        drop(state);
        self.changed.notify_all();
    }

    /// Returns true if every announced entry is decided and every wanted one was taken.
    pub(crate) fn is_resolved(&self) -> bool {
        let state = lock(&self.state);
        state.undecided.is_empty() && state.wanted.is_empty()
    }

    /// Stops, and wakes all waiting threads; nothing more is announced or taken.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }

    fn wait<'a>(&self, state: MutexGuard<'a, PlanState<T>>) -> MutexGuard<'a, PlanState<T>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> PlanState<T> {
    fn has_room(&self) -> bool {
        self.undecided.len() + self.wanted.len() < KEPT_ENTRIES_MAX
            && self.path_bytes < KEPT_PATH_BYTES_MAX
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
        let plan = Plan::new();
        assert!(plan.announce(sizes.iter().map(|&size| Item(size)).collect()));
        plan
    }

    fn span(first: u64, count: u64) -> Span {
        Span { first, count }
    }

    fn taken(plan: &Plan<Item>) -> Vec<(u32, Wanted, bool)> {
        let jobs = plan.take(|_| true).into_iter();
        jobs.map(|job| (job.entry, job.wanted, job.delta)).collect()
    }

    #[test]
    fn wanted_entries_come_out_in_order_and_the_others_are_dropped() {
        let plan = plan(&[Some(1), None, Some(2), Some(3 * CHUNK), Some(4), Some(5)]);
        let want = Want {
            upto: 5,
            whole: vec![span(0, 1), span(2, 1)],
            parts: vec![Part { entry: 3, chunks: vec![span(1, 2)] }],
            compare: vec![Compare { entry: 4, root: [9; 32] }],
            ..Want::default()
        };
        let passed = plan.decide(&want, |_| None).unwrap().passed;
        assert!(matches!(passed[..], [Passed { entry: 1, exception: None, .. }]), "{passed:?}");
        let chunks: IntervalSet = std::iter::once(1..3).collect();
        let expected = [
            (0, Wanted::Whole, false),
            (2, Wanted::Whole, false),
            (3, Wanted::Chunks(chunks), false),
            (4, Wanted::Unless([9; 32]), false),
        ];
        assert_eq!(taken(&plan), expected);
        let skipped = vec![span(5, 1)];
        let passed =
            plan.decide(&Want { upto: 6, skipped, ..Want::default() }, |_| None).unwrap().passed;
        let exception = passed.iter().map(|passed| (passed.entry, passed.exception));
        assert_eq!(exception.collect::<Vec<_>>(), [(5, Some(Exception::Skipped))]);
        let state = lock(&plan.state);
        assert!(state.undecided.is_empty() && state.wanted.is_empty());
        assert_eq!(state.path_bytes, 0);
    }

    #[test]
    fn a_pushed_file_is_skipped_only_if_it_is_wanted_whole() {
        let plan = plan(&[Some(1), Some(2), Some(3), Some(4)]);
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
        assert_eq!(taken(&plan), [(1, Wanted::Whole, false), (2, Wanted::Unless([9; 32]), false)]);
        assert_eq!(lock(&plan.state).path_bytes, 0);
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
            let plan = plan(&[size, None, size]);
            assert!(plan.decide(&lie, |_| None).is_err(), "{lie:?}");
            plan.decide(&want(3, &[span(0, 1), span(2, 1)], &[], &[]), |_| None).unwrap();
            assert_eq!(taken(&plan), [(0, Wanted::Whole, false), (2, Wanted::Whole, false)]);
        }
        let small = plan(&[Some(CHUNK)]);
        assert!(small.decide(&want(1, &[], &[part(0, &[])], &[]), |_| None).is_err());
    }

    #[test]
    fn a_file_with_an_old_copy_is_wanted_as_a_delta() {
        let size = Some(crate::limits::DELTA_BYTES_MIN);
        let plan = plan(&[size, size, size, size]);
        let want = Want {
            upto: 4,
            whole: vec![span(0, 2)],
            parts: vec![Part { entry: 2, chunks: vec![span(1, 2)] }],
            compare: vec![Compare { entry: 3, root: [9; 32] }],
            delta: vec![1, 2, 3],
            ..Want::default()
        };
        plan.decide(&want, |_| None).unwrap();
        let chunks: IntervalSet = std::iter::once(1..3).collect();
        let expected = [
            (0, Wanted::Whole, false),
            (1, Wanted::Whole, true),
            (2, Wanted::Chunks(chunks), true),
            (3, Wanted::Unless([9; 32]), true),
        ];
        assert_eq!(taken(&plan), expected);
    }

    #[test]
    fn an_old_copy_of_an_unwanted_file_is_a_violation() {
        let size = Some(crate::limits::DELTA_BYTES_MIN);
        for delta in [vec![1], vec![0, 0], vec![2, 0], vec![3], vec![9], vec![u64::MAX]] {
            let plan = plan(&[size, size, Some(5), None]);
            let whole = vec![span(0, 1), span(2, 1)];
            assert!(
                plan.decide(&Want { upto: 4, whole, delta, ..Want::default() }, |_| None).is_err()
            );
        }
        let plan = plan(&[Some(5)]);
        let want = Want { upto: 1, whole: vec![span(0, 1)], delta: vec![0], ..Want::default() };
        assert!(plan.decide(&want, |_| None).is_err());
    }

    #[test]
    fn an_entry_cannot_be_wanted_again() {
        let plan = plan(&[Some(1), Some(1)]);
        let want = Want { upto: 1, whole: vec![span(0, 1)], ..Want::default() };
        plan.decide(&want, |_| None).unwrap();
        assert!(plan.decide(&want, |_| None).is_err());
        assert!(plan.decide(&Want { upto: 0, ..Want::default() }, |_| None).is_err());
    }

    #[test]
    fn a_receiver_that_decides_nothing_holds_the_manifest_back() {
        let plan = plan(&vec![Some(1); KEPT_ENTRIES_MAX]);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| plan.announce(vec![Item(None)]));
            plan.stop();
            assert!(!waiting.join().unwrap());
        });
        assert!(plan.take(|_| true).is_empty());
    }
}
