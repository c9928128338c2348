//! One wanted file while it arrives: expected and received chunks. [`records`] checks its records,
//! [`finish`] completes it.
//!
//! Chunks of a file may arrive on several streams and from several peers, handled by several
//! threads. A chunk is *claimed* under the lock (so it is accepted once), then hashed without the
//! lock, then written. The [`ledger`] counts the chunks. A file is complete when its end record has
//! arrived from every peer that was asked, and as many chunks are written as those records state.
//! The thread that resolves the last chunk then finishes the file.

mod finish;
mod ledger;
mod records;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::{Arc, Mutex};

use wraith_files::{Existing, IntervalSet, PartFile, RelPath, chunk_count};

use super::outstanding::Outstanding;
use super::placement::Placed;
use crate::error::TransferError;
use crate::lock::lock;
use crate::progress::FileProgress;
use crate::role::Role;
use crate::wanted::Wanted;
use ledger::ChunkLedger;
pub(crate) use ledger::PeerId;

/// The record type that carries a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carrier {
    /// A chunk or hole record of the file itself.
    Record,
    /// A patch with the bytes that an old copy lacks.
    Patch,
}

/// An old copy, from which a file is assembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OldCopy {
    /// The file that has the name now.
    Existing(Existing),
    /// The part of an interrupted transfer, with content of an earlier version.
    Part,
}

/// Local files that may help.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocalCopies {
    /// The old copy announced to the sender.
    pub(super) old: Option<OldCopy>,
    /// Path of the local file that the sender's file is compared with, if it is not at its own
    /// path.
    pub(super) copy: Option<RelPath>,
}

/// One wanted file; see the module documentation.
#[derive(Debug)]
pub(crate) struct Incoming {
    entry: u32,
    placed: Placed,
    wanted: Wanted,
    local: LocalCopies,
    pub(super) progress: FileProgress,
    body: Mutex<Body>,
}

/// Received content.
#[derive(Debug, Default)]
struct Body {
    /// Set from the first chunk on (or an end without any).
    part: Option<Arc<PartFile>>,
    /// Set once a peer is asked for chunks, or ends the file.
    ledger: Option<Box<ChunkLedger>>,
    resolved: bool,
}

impl Body {
    fn ledger(&mut self) -> &mut ChunkLedger {
        self.ledger.get_or_insert_default()
    }
}

impl Outstanding for Incoming {
    fn path_bytes(&self) -> usize {
        self.placed.entry.path.as_bytes().len() + self.placed.offered.as_bytes().len()
    }
}

impl Incoming {
    /// Creates the state of a wanted file. With an old copy, the file arrives as patches of the
    /// missing bytes (SPEC §10.11), and only requested chunks are accepted.
    pub(crate) fn new(entry: u32, placed: Placed, wanted: Wanted, local: LocalCopies) -> Self {
        let progress = FileProgress::new(entry);
        let file = Self { entry, placed, wanted, local, progress, body: Mutex::default() };
        // A smaller file arrives in one record. Patches are wanted once the missing bytes are
        // determined.
        if file.chunks() >= 2 && file.local.old.is_none() {
            match &file.wanted {
                Wanted::Chunks(chunks) => lock(&file.body).ledger().want(chunks.iter()),
                Wanted::Whole | Wanted::Unless(_) => {
                    lock(&file.body).ledger().want(std::iter::once(0..file.chunks()));
                }
                Wanted::Kept(_) => {}
            }
        }
        file
    }

    /// Asks `peer` for the wanted chunks of `within`, and returns them: all that no other peer owes.
    pub(crate) fn ask(&self, peer: PeerId, within: Range<u64>) -> IntervalSet {
        match &mut lock(&self.body).ledger {
            Some(ledger) => ledger.ask(peer, within),
            None => IntervalSet::new(),
        }
    }

    pub(crate) fn entry(&self) -> u32 {
        self.entry
    }

    /// Returns true if the whole file is wanted, unconditionally.
    pub(super) fn is_wanted_whole(&self) -> bool {
        self.wanted == Wanted::Whole && self.local.old.is_none()
    }

    pub(crate) fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    pub(crate) fn path(&self) -> &RelPath {
        &self.placed.entry.path
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.placed.entry.size()
    }

    pub(crate) fn old(&self) -> Option<&OldCopy> {
        self.local.old.as_ref()
    }

    pub(crate) fn is_resolved(&self) -> bool {
        lock(&self.body).resolved
    }

    /// Returns true if `peer` has ended the file.
    pub(super) fn has_ended(&self, peer: PeerId) -> bool {
        lock(&self.body).ledger.as_ref().is_some_and(|ledger| ledger.has_ended(peer))
    }

    fn chunks(&self) -> u64 {
        chunk_count(self.placed.entry.size())
    }

    /// Returns a protocol error that names the file.
    pub(super) fn violation(&self, what: &str) -> TransferError {
        let what = format!("{}: {what}", self.placed.entry.path.display());
        TransferError::Protocol { peer: Role::Sender, what }
    }

    /// Handles a sign of life from a sender that reads without sending.
    pub(crate) fn receive_pulse(&self, chunks: u64) -> Result<(), TransferError> {
        if chunks > self.chunks() {
            return Err(self.violation("an invalid progress record"));
        }
        Ok(())
    }

    /// Expects patches of these chunks from `peer` from now on. Returns false if the file is
    /// resolved, or if the peer has ended it.
    pub(super) fn expect_patches(&self, peer: PeerId, chunks: impl Iterator<Item = u64>) -> bool {
        let mut body = lock(&self.body);
        if body.part.is_none() || body.ledger().has_ended(peer) {
            return false;
        }
        let ledger = body.ledger();
        ledger.want(chunks.map(|chunk| chunk..chunk + 1));
        ledger.ask(peer, 0..u64::MAX);
        true
    }
}
