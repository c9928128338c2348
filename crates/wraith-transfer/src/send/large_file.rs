//! A file of more than one chunk on its way out. Workers claim its chunks one by one; whoever settles the last one ends it.
//!
//! Every chunk is read and hashed once, wanted or not, and every hole entered, so the root at the end covers the whole file. A file the receiver
//! may already have is first only hashed; if its root differs it goes back into the plan as wanted from end to end.

use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use wraith_files::{IntervalSet, Root, RootBuilder, Run, SourceFile, Tree, chunk_count, chunk_len};

use super::manifest::Announced;
use super::plan::{Job, Planned};

use crate::limits::HOLE_RUN_CHUNKS;
use crate::lock::lock;
use crate::record::Ending;
use crate::wanted::Wanted;

/// What to do with some chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Read, hash, send this chunk.
    Send(u64),
    /// Read and hash this chunk.
    Hash(u64),
    /// Enter zeros for `count` chunks from `first`; tell the receiver about the hole if `send`.
    Hole { first: u64, count: u64, send: bool },
}

impl Claim {
    /// Chunks it covers.
    pub(crate) fn count(self) -> u64 {
        match self {
            Self::Send(_) | Self::Hash(_) => 1,
            Self::Hole { count, .. } => count,
        }
    }
}

/// Which chunks are claimed and settled.
#[derive(Debug)]
pub(crate) struct Claims {
    chunks: u64,
    wanted: Wanted,
    holes: IntervalSet,
    /// Chunks of a hole that are claimed at once.
    hole_run: u64,
    progress: Mutex<(u64, u64)>,
}

impl Claims {
    /// For a file of `chunks` chunks with this tree, of which `holes` hold nothing but zeros on disk.
    pub(crate) fn new(chunks: u64, tree: Tree, wanted: Wanted, holes: IntervalSet) -> Self {
        let hole_run = if tree.knows_zeros() { chunks } else { HOLE_RUN_CHUNKS };
        Self { chunks, wanted, holes, hole_run, progress: Mutex::new((0, 0)) }
    }

    /// The next chunks to do, in order. `None` when all are claimed.
    pub(crate) fn next(&self) -> Option<Claim> {
        let mut progress = lock(&self.progress);
        let first = progress.0;
        if first >= self.chunks {
            return None;
        }
        let (send, alike_until) = match &self.wanted {
            Wanted::Whole => (true, self.chunks),
            Wanted::Chunks(chunks) => (chunks.contains(first), chunks.alike_until(first)),
            Wanted::Unless(_) => (false, self.chunks),
        };
        let claim = if let Some(hole) = self.holes.range_of(first) {
            let end = self.chunks.min(hole.end).min(alike_until).min(first + self.hole_run);
            Claim::Hole { first, count: end - first, send }
        } else if send {
            Claim::Send(first)
        } else {
            Claim::Hash(first)
        };
        progress.0 += claim.count();
        Some(claim)
    }

    /// A claim was done. True for exactly one caller: the one after whom nothing is left.
    pub(crate) fn settle(&self, claim: Claim) -> bool {
        let mut progress = lock(&self.progress);
        progress.1 += claim.count();
        progress.1 == self.chunks
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
    /// Chunks sent, as data or as holes.
    pub(super) sent: AtomicU64,
    pub(super) root: Mutex<RootBuilder>,
    /// Why it cannot be completed, once known.
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
        let holes = if job.item.is_sparse() { holes(&source) } else { IntervalSet::new() };
        let unless = unless_of(&job.wanted);
        let claims = Claims::new(chunk_count(size), tree, job.wanted.clone(), holes);
        Ok(Self {
            entry: job.entry,
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

    pub(super) fn name(&self) -> String {
        lock(&self.job).as_ref().map(|job| job.item.name()).unwrap_or_default()
    }

    /// Enters zeros in the root. Those that have to be hashed are hashed outside the lock.
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

    pub(super) fn break_off(&self, ending: Ending) {
        lock(&self.broken).get_or_insert(ending);
    }

    pub(super) fn is_broken(&self) -> bool {
        lock(&self.broken).is_some()
    }
}

/// Chunks of `source` that lie in holes from end to end.
fn holes(source: &SourceFile) -> IntervalSet {
    let mut chunks = IntervalSet::new();
    for run in source.runs() {
        if let Run::Hole(hole) = run {
            chunks.insert(hole);
        }
    }
    chunks
}

/// The root that the receiver's file has, where it may be the same.
pub(super) fn unless_of(wanted: &Wanted) -> Option<Root> {
    match wanted {
        Wanted::Unless(root) => Some(*root),
        Wanted::Whole | Wanted::Chunks(_) => None,
    }
}

/// How a file ended that could not be read.
pub(super) fn ending_of(error: &wraith_files::Error) -> Ending {
    match error {
        wraith_files::Error::Changed { .. } => Ending::Changed,
        _ => Ending::Unreadable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_is_claimed_once_and_one_caller_ends_the_file() {
        let wanted = Wanted::Chunks([1..3, 6..9].into_iter().collect());
        let claims = Claims::new(9, Tree::Blake3, wanted, std::iter::once(2..8).collect());
        let all: Vec<Claim> = std::iter::from_fn(|| claims.next()).collect();
        let hole = |first, count, send| Claim::Hole { first, count, send };
        let expected = [
            Claim::Hash(0),
            Claim::Send(1),
            hole(2, 1, true),
            hole(3, 3, false),
            hole(6, 2, true),
            Claim::Send(8),
        ];
        assert_eq!(all, expected);
        let ends: Vec<bool> = all.into_iter().map(|claim| claims.settle(claim)).collect();
        assert_eq!(ends, [false, false, false, false, false, true]);
    }

    #[test]
    fn a_hole_of_any_length_is_one_claim_where_zeros_are_known() {
        let (chunks, end) = (1 << 40, 3 + HOLE_RUN_CHUNKS);
        let claim = |tree| {
            let claims =
                Claims::new(chunks, tree, Wanted::Whole, std::iter::once(3..chunks).collect());
            (0..3).for_each(|chunk| assert_eq!(claims.next(), Some(Claim::Send(chunk))));
            claims.next()
        };
        let hole = |end| Some(Claim::Hole { first: 3, count: end - 3, send: true });
        assert_eq!(claim(Tree::PositionFree), hole(chunks));
        assert_eq!(claim(Tree::Blake3), hole(end));
    }
}
