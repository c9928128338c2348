//! A file of more than one chunk on its way out. Workers claim its chunks one by one; whoever settles the last one ends it.
//!
//! Every chunk is read and hashed once, wanted or not, so the root at the end covers the whole file. A file the receiver
//! may already have is first only hashed; if its root differs it goes back into the plan as wanted from end to end.

use std::sync::Mutex;

use wraith_files::IntervalSet;

use crate::limits::HOLE_RUN_CHUNKS;
use crate::wanted::Wanted;

/// What to do with some chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Read, hash, send this chunk.
    Send(u64),
    /// Read and hash this chunk.
    Hash(u64),
    /// Hash zeros for `count` chunks from `first`; tell the receiver about the hole if `send`.
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
    progress: Mutex<(u64, u64)>,
}

impl Claims {
    /// For a file of `chunks` chunks, of which `holes` hold nothing but zeros on disk.
    pub(crate) fn new(chunks: u64, wanted: Wanted, holes: IntervalSet) -> Self {
        Self { chunks, wanted, holes, progress: Mutex::new((0, 0)) }
    }

    /// The next chunks to do, in order. `None` when all are claimed.
    pub(crate) fn next(&self) -> Option<Claim> {
        let mut progress = crate::session::lock(&self.progress);
        let first = progress.0;
        if first >= self.chunks {
            return None;
        }
        let send = |chunk| match &self.wanted {
            Wanted::Whole => true,
            Wanted::Chunks(chunks) => chunks.contains(chunk),
            Wanted::Unless(_) => false,
        };
        let claim = if self.holes.contains(first) {
            let end = self.chunks.min(first + HOLE_RUN_CHUNKS);
            let alike = |chunk: &u64| self.holes.contains(*chunk) && send(*chunk) == send(first);
            let count = (first..end).take_while(alike).count() as u64;
            Claim::Hole { first, count, send: send(first) }
        } else if send(first) {
            Claim::Send(first)
        } else {
            Claim::Hash(first)
        };
        progress.0 += claim.count();
        Some(claim)
    }

    /// A claim was done. True for exactly one caller: the one after whom nothing is left.
    pub(crate) fn settle(&self, claim: Claim) -> bool {
        let mut progress = crate::session::lock(&self.progress);
        progress.1 += claim.count();
        progress.1 == self.chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chunk_is_claimed_once_and_one_caller_ends_the_file() {
        let wanted = Wanted::Chunks([1..3, 6..9].into_iter().collect());
        let claims = Claims::new(9, wanted, std::iter::once(2..8).collect());
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
}
