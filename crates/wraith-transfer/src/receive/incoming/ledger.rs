//! Which chunks of one file are wanted, and which peer owes or has sent them: a state machine
//! without I/O. Its caller hashes and writes a chunk between the claim and [`ChunkLedger::written`].
//!
//! A wanted chunk is asked of one peer, which then owes it. The chunk is claimed when it arrives,
//! and counted once it is on disk.
//!
//! Invariants:
//!
//! - At most one peer owes a chunk. A peer can claim only chunks that it owes, once each, and at
//!   most as many as its end states.
//! - A chunk that a peer leaves, or sends with other bytes, is wanted again.
//! - The content is blamed on a peer only if no other peer contributed to it.

use std::ops::Range;

use smallvec::SmallVec;
use wraith_files::{IntervalSet, Root};

use crate::record::Ending;

/// Number of a peer of the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerId(pub(crate) u32);

/// A peer's end record of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileEnd {
    pub(super) ending: Ending,
    /// Number of chunks that the peer sent.
    pub(super) chunks: u64,
    pub(super) root: Root,
}

/// Progress of a peer's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// More is to come.
    Pending,
    /// The peer sent more chunks than its end states.
    Excess,
    /// The peer has ended, and all chunks that it sent are written.
    Ended(FileEnd),
}

/// The chunks of one file; see the module documentation.
#[derive(Debug, Default)]
pub(super) struct ChunkLedger {
    /// Wanted chunks that no peer owes.
    wanted: IntervalSet,
    /// One share for each peer that was asked.
    shares: SmallVec<[Share; 1]>,
}

#[derive(Debug)]
struct Share {
    peer: PeerId,
    owed: IntervalSet,
    claimed: u64,
    /// Number of claimed chunks that are on disk.
    written: u64,
    /// Number of chunks that its earlier ends state. It was asked again after them.
    stated: u64,
    /// Its end. The chunks include `stated`.
    end: Option<FileEnd>,
    has_left: bool,
    /// True once it sent other bytes than it announced.
    has_lied: bool,
}

impl Share {
    fn is_over(&self) -> bool {
        self.has_left || self.end.is_some()
    }
}

impl ChunkLedger {
    /// Wants these chunks, which are not there.
    pub(super) fn want(&mut self, chunks: impl IntoIterator<Item = Range<u64>>) {
        chunks.into_iter().for_each(|chunks| self.wanted.insert(chunks));
    }

    /// Asks `peer` for the wanted chunks of `within`, and returns them. From then on they are
    /// accepted from this peer only.
    pub(super) fn ask(&mut self, peer: PeerId, within: Range<u64>) -> IntervalSet {
        let mut asked = self.wanted.clone();
        asked.remove(0..within.start);
        asked.remove(within.end..u64::MAX);
        self.wanted.remove(within);
        let share = self.share_or_new(peer);
        share.stated = share.end.take().map_or(share.stated, |end| end.chunks);
        share.has_left = false;
        asked.iter().for_each(|chunks| share.owed.insert(chunks));
        asked
    }

    /// Claims chunks that arrive from `peer`. Returns false if the peer does not owe them.
    pub(super) fn claim(&mut self, peer: PeerId, chunks: Range<u64>) -> bool {
        let Some(share) = self.share_mut(peer) else { return false };
        let count = chunks.end - chunks.start;
        let is_expected = share.end.is_none_or(|end| share.claimed + count <= end.chunks);
        if !is_expected || !share.owed.contains_range(&chunks) {
            return false;
        }
        share.owed.remove(chunks);
        share.claimed += count;
        true
    }

    /// Counts `count` claimed chunks of `peer` that are now on disk.
    pub(super) fn written(&mut self, peer: PeerId, count: u64) {
        self.share_mut(peer).expect("a claim names a share").written += count;
    }

    /// Takes back a claim of chunks with other bytes than announced, and leaves the peer out: all
    /// that it owes is wanted again.
    pub(super) fn refuse(&mut self, peer: PeerId, chunks: Range<u64>) {
        let share = self.share_mut(peer).expect("a claim names a share");
        share.claimed -= chunks.end - chunks.start;
        share.has_lied = true;
        self.wanted.insert(chunks);
        self.leave(peer);
    }

    /// Leaves `peer` out: all that it owes is wanted again. Its claimed chunks are still written.
    pub(super) fn leave(&mut self, peer: PeerId) {
        let Some(share) = self.share_mut(peer) else { return };
        share.has_left = true;
        let left = std::mem::take(&mut share.owed);
        self.want(left.iter());
    }

    /// Records the end that `peer` states. A peer that was asked only to compare the file ends it
    /// without any chunk.
    pub(super) fn end(&mut self, peer: PeerId, end: FileEnd) {
        let share = self.share_or_new(peer);
        let chunks = share.stated.saturating_add(end.chunks);
        share.end = Some(FileEnd { chunks, ..end });
    }

    /// Returns true if `peer` has ended the file.
    pub(super) fn has_ended(&self, peer: PeerId) -> bool {
        self.share(peer).is_some_and(|share| share.end.is_some())
    }

    /// Returns the progress of the share of `peer`.
    pub(super) fn settled(&self, peer: PeerId) -> Settled {
        match self.share(peer) {
            Some(&Share { end: Some(end), claimed, .. }) if claimed > end.chunks => Settled::Excess,
            Some(&Share { end: Some(end), written, .. }) if written >= end.chunks => {
                Settled::Ended(end)
            }
            _ => Settled::Pending,
        }
    }

    /// Returns true once a chunk of `peer` was refused.
    pub(super) fn has_lied(&self, peer: PeerId) -> bool {
        self.share(peer).is_some_and(|share| share.has_lied)
    }

    /// Returns true if `peer` still owes chunks.
    pub(super) fn owes(&self, peer: PeerId) -> bool {
        self.share(peer).is_some_and(|share| !share.owed.is_empty())
    }

    /// Returns true if all wanted chunks are on disk, and every peer has ended or left.
    pub(super) fn is_complete(&self) -> bool {
        self.wanted.is_empty() && !self.is_awaited()
    }

    /// Returns true while some peer has neither ended nor left, or a claimed chunk is not written.
    pub(super) fn is_awaited(&self) -> bool {
        self.shares.iter().any(|share| !share.is_over() || share.written < share.claimed)
    }

    /// Returns the only peer that contributed chunks or a root.
    pub(super) fn only_peer(&self) -> Option<PeerId> {
        let mut peers = self.shares.iter().filter(|share| share.written > 0 || share.end.is_some());
        let first = peers.next()?.peer;
        peers.all(|share| share.peer == first).then_some(first)
    }

    fn share_or_new(&mut self, peer: PeerId) -> &mut Share {
        if self.share(peer).is_none() {
            self.shares.push(Share {
                peer,
                owed: IntervalSet::new(),
                claimed: 0,
                written: 0,
                stated: 0,
                end: None,
                has_left: false,
                has_lied: false,
            });
        }
        self.share_mut(peer).expect("it was just made")
    }

    fn share(&self, peer: PeerId) -> Option<&Share> {
        self.shares.iter().find(|share| share.peer == peer)
    }

    fn share_mut(&mut self, peer: PeerId) -> Option<&mut Share> {
        self.shares.iter_mut().find(|share| share.peer == peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PeerId = PeerId(3);
    const B: PeerId = PeerId(7);

    fn ledger(chunks: u64) -> ChunkLedger {
        let mut ledger = ChunkLedger::default();
        ledger.want(std::iter::once(0..chunks));
        ledger
    }

    /// A ledger of four chunks that A owes, of which it sent three, and ended with `stated`.
    fn ended_by_a(stated: u64) -> ChunkLedger {
        let mut ledger = ledger(4);
        ledger.ask(A, 0..4);
        assert!(ledger.claim(A, 0..3));
        ledger.end(A, complete(stated));
        ledger
    }

    fn complete(chunks: u64) -> FileEnd {
        FileEnd { ending: Ending::Complete, chunks, root: [1; 32] }
    }

    fn set(range: Range<u64>) -> IntervalSet {
        std::iter::once(range).collect()
    }

    #[test]
    fn a_chunk_is_claimed_once_and_only_by_the_peer_that_owes_it() {
        let mut ledger = ledger(10);
        assert_eq!(ledger.ask(A, 0..6), set(0..6));
        assert_eq!(ledger.ask(B, 0..u64::MAX), set(6..10));
        assert!(!ledger.claim(B, 5..7) && !ledger.claim(A, 6..7) && !ledger.claim(A, 10..11));
        assert!(ledger.claim(A, 0..2) && !ledger.claim(A, 1..3) && ledger.claim(A, 2..3));
        assert!(!ledger.claim(PeerId(9), 3..4), "it was never asked");
        ledger.end(A, complete(3));
        assert!(!ledger.claim(A, 3..4), "its end states fewer chunks");
    }

    #[test]
    fn an_end_is_settled_once_its_chunks_are_written() {
        let mut ledger = ended_by_a(4);
        assert_eq!(ledger.settled(A), Settled::Pending);
        assert!(ledger.claim(A, 3..4));
        ledger.written(A, 3);
        assert_eq!((ledger.settled(A), ledger.is_complete()), (Settled::Pending, false));
        ledger.written(A, 1);
        assert_eq!(ledger.settled(A), Settled::Ended(complete(4)));
        assert!(ledger.is_complete() && !ledger.owes(A));
        assert_eq!(ledger.only_peer(), Some(A));
    }

    #[test]
    fn a_peer_that_sends_more_than_it_states_is_found_out() {
        assert_eq!(ended_by_a(2).settled(A), Settled::Excess);
    }

    #[test]
    fn what_a_peer_leaves_is_asked_of_another_that_may_have_ended_before() {
        let mut ledger = ledger(10);
        ledger.ask(A, 0..5);
        ledger.ask(B, 5..10);
        assert!(ledger.claim(A, 0..5) && ledger.claim(B, 5..7));
        ledger.written(A, 5);
        ledger.end(A, complete(5));
        assert_eq!(ledger.settled(A), Settled::Ended(complete(5)));
        ledger.leave(B);
        assert!(!ledger.claim(B, 7..8) && ledger.is_awaited(), "two chunks of B are not written");
        ledger.written(B, 2);
        assert!(!ledger.is_awaited() && !ledger.is_complete());
        assert_eq!(ledger.ask(A, 0..u64::MAX), set(7..10));
        assert!(ledger.claim(A, 7..10));
        ledger.written(A, 3);
        assert!(ledger.is_awaited(), "it was asked again, and has to end again");
        ledger.end(A, complete(3));
        assert!(ledger.is_complete() && ledger.settled(A) == Settled::Ended(complete(8)));
        assert_eq!(ledger.only_peer(), None, "both contributed");
    }

    #[test]
    fn a_refused_chunk_is_wanted_again_with_all_that_its_peer_owes() {
        let mut ledger = ledger(4);
        ledger.ask(A, 0..4);
        assert!(ledger.claim(A, 1..2));
        ledger.refuse(A, 1..2);
        assert!(!ledger.claim(A, 2..3) && ledger.has_lied(A));
        assert_eq!(ledger.ask(B, 0..4), set(0..4));
        assert_eq!(ledger.only_peer(), None, "nothing of it is used");
    }
}
