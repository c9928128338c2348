//! A file of more than one chunk while it is sent. Workers claim its chunks one by one; the worker
//! that resolves the last chunk ends the file.
//!
//! Every chunk, wanted or not, is read and hashed once, and the zeros of every hole are added to
//! the root. The final root therefore covers the whole file. A file that the receiver may already
//! have is first only hashed. If the sender's root differs from the receiver's, the file returns to
//! the plan, and all of it is wanted.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use wraith_files::{Root, RootBuilder, Run, RunCursor, SourceFile, Tree, chunk_count, chunk_len};

use super::announced::Announced;
use super::plan::{Job, Planned};

use crate::limits::HOLE_RUN_CHUNKS;
use crate::lock::lock;
use crate::progress::{FileProgress, Progress};
use crate::record::Ending;
use crate::wanted::Wanted;

/// Work to do for some chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Read, hash and send this chunk.
    Send(u64),
    /// Read and hash this chunk.
    Hash(u64),
    /// Enter zeros for `count` chunks from `first`; with `send`, report the hole to the receiver.
    Hole { first: u64, count: u64, send: bool },
}

impl Claim {
    /// Returns the number of chunks it covers.
    pub(crate) fn count(self) -> u64 {
        match self {
            Self::Send(_) | Self::Hash(_) => 1,
            Self::Hole { count, .. } => count,
        }
    }
}

/// Tracks the claimed and resolved chunks of a file.
#[derive(Debug)]
pub(crate) struct Claims {
    chunks: u64,
    wanted: Wanted,
    /// Maximum number of chunks of a hole claimed at once.
    hole_run: u64,
    state: Mutex<ClaimState>,
}

#[derive(Debug)]
struct ClaimState {
    /// Number of claimed chunks; they are claimed in order.
    claimed: u64,
    resolved: u64,
    /// The run of the next chunk, and the position after it. The extent map is read no further: a
    /// file may have millions of holes.
    run: Run,
    cursor: RunCursor,
}

impl Claims {
    /// Creates the claims for a file of `chunks` chunks with this tree. Its first run is at
    /// `cursor`.
    pub(crate) fn new(chunks: u64, tree: Tree, wanted: Wanted, cursor: RunCursor) -> Self {
        let hole_run = if tree.knows_zeros() { chunks } else { HOLE_RUN_CHUNKS };
        let state = ClaimState { claimed: 0, resolved: 0, run: Run::Data(0..0), cursor };
        Self { chunks, wanted, hole_run, state: Mutex::new(state) }
    }

    /// Claims the next chunks of `source`, in order. Returns `None` when all are claimed.
    pub(crate) fn next(&self, source: &SourceFile) -> Option<Claim> {
        let mut state = lock(&self.state);
        let first = state.claimed;
        if first >= self.chunks {
            return None;
        }
        let (send, alike_until) = match &self.wanted {
            Wanted::Whole => (true, self.chunks),
            Wanted::Chunks(chunks) => (chunks.contains(first), chunks.alike_until(first)),
            Wanted::Unless(_) | Wanted::Kept(_) => (false, self.chunks),
        };
        let claim = match state.hole_at(first, source) {
            Some(hole_end) => {
                let end = self.chunks.min(hole_end).min(alike_until).min(first + self.hole_run);
                Claim::Hole { first, count: end - first, send }
            }
            None if send => Claim::Send(first),
            None => Claim::Hash(first),
        };
        state.claimed += claim.count();
        Some(claim)
    }

    /// Settles a claim. Returns true for exactly one caller: the one that resolves the last claim.
    pub(crate) fn resolve(&self, claim: Claim) -> bool {
        let mut state = lock(&self.state);
        state.resolved += claim.count();
        state.resolved == self.chunks
    }
}

impl ClaimState {
    /// Returns the end of the hole that contains `chunk`; `None` if the chunk has data.
    fn hole_at(&mut self, chunk: u64, source: &SourceFile) -> Option<u64> {
        loop {
            match &self.run {
                Run::Data(run) if run.contains(&chunk) => return None,
                Run::Hole(run) if run.contains(&chunk) => return Some(run.end),
                // The chunk is in a later run, as chunks are claimed in order.
                _ => self.run = source.next_run(&mut self.cursor)?,
            }
        }
    }
}

/// A file of several chunks that is being sent.
pub(crate) struct LargeFile {
    pub(super) job: Mutex<Option<Job<Announced>>>,
    pub(super) entry: u32,
    pub(super) size: u64,
    pub(super) tree: Tree,
    pub(super) unless: Option<[u8; 32]>,
    pub(super) source: SourceFile,
    pub(super) claims: Claims,
    pub(super) progress: FileProgress,
    /// Number of chunks sent, as data or as holes.
    pub(super) sent: AtomicU64,
    pub(super) root: Mutex<RootBuilder>,
    /// Why the file cannot be completed, if it cannot.
    pub(super) broken: Mutex<Option<Ending>>,
}

/// A file whose chunks are being claimed.
pub(crate) type Active = Arc<LargeFile>;

impl LargeFile {
    pub(super) fn open(job: Job<Announced>) -> Result<Self, Box<(Job<Announced>, Ending)>> {
        let (size, tree) = (job.item.file_bytes().unwrap_or(0), job.item.tree());
        let source = match job.item.found.open() {
            Ok(source) => source,
            Err(error) => return Err(Box::new((job, ending_of(&error)))),
        };
        let cursor = if job.item.is_sparse() { source.cursor() } else { RunCursor::dense(size) };
        let unless = matching_root(&job.wanted);
        let claims = Claims::new(chunk_count(size), tree, job.wanted.clone(), cursor);
        Ok(Self {
            entry: job.entry,
            progress: FileProgress::new(job.entry),
            size,
            tree,
            unless,
            source,
            claims,
            sent: AtomicU64::new(0),
            root: Mutex::new(RootBuilder::of(tree)),
            broken: Mutex::new(None),
            job: Mutex::new(Some(job)),
        })
    }

    /// Claims the next chunks. Returns `None` when all are claimed.
    pub(super) fn next_claim(&self) -> Option<Claim> {
        self.claims.next(&self.source)
    }

    pub(super) fn name(&self) -> String {
        lock(&self.job).as_ref().map(|job| job.item.name()).unwrap_or_default()
    }

    /// Enters zeros in the root. Zeros that must be hashed are hashed outside the lock.
    pub(super) fn enter_zeros(&self, chunks: Range<u64>) {
        if self.tree.knows_zeros() {
            lock(&self.root).set_zeros(chunks, self.size);
            return;
        }
        for chunk in chunks {
            let cv = self.tree.zero_chunk_cv(chunk, chunk_len(self.size, chunk));
            lock(&self.root).set(chunk, cv);
        }
    }

    /// Stops sending the file if it has disappeared or changed.
    pub(super) fn check_change(&self) {
        let change = lock(&self.job).as_ref().and_then(|job| job.item.found.change());
        if change.is_some() {
            self.break_off(Ending::Changed);
        }
    }

    /// Counts bytes that are not sent: the receiver has them, or they are in a hole. A file that is
    /// only compared is counted at its end, since it may be sent after that.
    pub(super) fn count_unsent(&self, progress: &Progress, bytes: u64) {
        match self.unless {
            Some(_) => progress.show_bytes_of(self.entry, bytes),
            None => self.progress.add_found(progress, bytes),
        }
    }

    pub(super) fn break_off(&self, ending: Ending) {
        lock(&self.broken).get_or_insert(ending);
    }

    pub(super) fn is_broken(&self) -> bool {
        lock(&self.broken).is_some()
    }
}

/// Returns the root of the receiver's file, if that may be the same.
pub(super) fn matching_root(wanted: &Wanted) -> Option<Root> {
    match wanted {
        Wanted::Unless(root) | Wanted::Kept(root) => Some(*root),
        Wanted::Whole | Wanted::Chunks(_) => None,
    }
}

/// Returns the ending of a file that could not be read.
pub(super) fn ending_of(error: &wraith_files::Error) -> Ending {
    match error {
        wraith_files::Error::Changed { .. } => Ending::Changed,
        _ => Ending::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use wraith_files::{CHUNK_BYTES, Walk};

    use super::*;

    /// A file of `chunks` chunks, with data in some of them.
    fn file(chunks: u64, data: impl Iterator<Item = u64>) -> SourceFile {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let file = File::create(&path).unwrap();
        file.set_len(chunks * CHUNK_BYTES as u64).unwrap();
        data.for_each(|chunk| file.write_all_at(&[1], chunk * CHUNK_BYTES as u64).unwrap());
        file.sync_all().unwrap();
        let found = Walk::new(&[path]).unwrap().next().unwrap().unwrap();
        // The file stays open without its name.
        found.open().unwrap()
    }

    fn claims_of(source: &SourceFile, tree: Tree, wanted: Wanted) -> Claims {
        Claims::new(source.chunks(), tree, wanted, source.cursor())
    }

    fn all(claims: &Claims, source: &SourceFile) -> Vec<Claim> {
        std::iter::from_fn(|| claims.next(source)).collect()
    }

    const fn hole(first: u64, count: u64, send: bool) -> Claim {
        Claim::Hole { first, count, send }
    }

    #[test]
    fn every_chunk_is_claimed_once_and_one_caller_ends_the_file() {
        let source = file(9, [0, 1, 8].into_iter());
        let wanted = Wanted::Chunks([1..3, 6..9].into_iter().collect());
        let claims = claims_of(&source, Tree::Blake3, wanted);
        let all = all(&claims, &source);
        let expected = [
            Claim::Hash(0),
            Claim::Send(1),
            hole(2, 1, true),
            hole(3, 3, false),
            hole(6, 2, true),
            Claim::Send(8),
        ];
        assert_eq!(all, expected);
        let ends: Vec<bool> = all.into_iter().map(|claim| claims.resolve(claim)).collect();
        assert_eq!(ends, [false, false, false, false, false, true]);
    }

    #[test]
    fn a_hole_of_any_length_is_one_claim_where_zeros_are_known() {
        let chunks = 3 + 2 * HOLE_RUN_CHUNKS;
        let source = file(chunks, 0..3);
        let claims = |tree| all(&claims_of(&source, tree, Wanted::Whole), &source);
        let data = [Claim::Send(0), Claim::Send(1), Claim::Send(2)];
        let known = [&data[..], &[hole(3, chunks - 3, true)]].concat();
        assert_eq!(claims(Tree::PositionFree), known);
        let run = HOLE_RUN_CHUNKS;
        assert_eq!(claims(Tree::Blake3)[3..], [hole(3, run, true), hole(3 + run, run, true)]);
    }

    #[test]
    fn holes_without_number_are_claimed_one_after_the_other_and_none_is_kept() {
        let source = file(2000, (0..2000).step_by(2));
        let claims = claims_of(&source, Tree::PositionFree, Wanted::Whole);
        for (index, claim) in all(&claims, &source).into_iter().enumerate() {
            let index = index as u64;
            let is_data = index.is_multiple_of(2);
            assert_eq!(claim, if is_data { Claim::Send(index) } else { hole(index, 1, true) });
        }
        // The cursor uses no memory beyond its own.
        fn is_copied<T: Copy>(_: T) {}
        is_copied(source.cursor());
    }

    #[test]
    fn a_file_that_was_not_listed_as_sparse_has_no_holes() {
        let source = file(9, 0..1);
        let cursor = RunCursor::dense(source.size());
        let claims = Claims::new(9, Tree::Blake3, Wanted::Whole, cursor);
        assert_eq!(all(&claims, &source), (0..9).map(Claim::Send).collect::<Vec<_>>());
    }
}
