//! Exclusive claims of one thread on chunks of a part file. Detection of foreign writers is
//! suspended during a claim.
//!
//! A change of the part during a claim that writes is attributed to the claim
//! ([`crate::only_writer`]). A claim is therefore held for one write and its journal entry, and
//! never during a computation.

use std::ops::Range;
use std::sync::MutexGuard;

use crate::error::{Context, Error, Result};
use crate::journal::JournalEntry;
use crate::part_file::{PartFile, PartState};
use crate::path::shown;

/// Maximum number of separate ranges of received chunks. Without it, a peer that skips every other
/// chunk could grow the bookkeeping without limit. A sender that works in order leaves a handful.
const RANGES_MAX: usize = 65_536;

/// Chunks that only this thread may write. If dropped without a journal entry, they may be claimed
/// again.
pub(crate) struct Claim<'a> {
    part: &'a PartFile,
    range: Range<u64>,
    /// True if the range was never written before and reads as zeros.
    pub(crate) is_first: bool,
    /// True if this claim may have written to the range. Set before the write.
    pub(crate) has_written: bool,
    is_over: bool,
}

impl PartFile {
    /// Claims chunks for writing. Returns `None` if all of them are already verified.
    pub(crate) fn claim(&self, range: Range<u64>) -> Result<Option<Claim<'_>>> {
        let mut state = self.lock();
        if state.journal.is_none() {
            return Err(self.misuse("it is finished already"));
        }
        if state.writing.iter().any(|other| other.start < range.end && range.start < other.end) {
            return Err(self.misuse("two threads write the same chunk"));
        }
        if state.have.intersects(&range) {
            if state.have.contains_range(&range) {
                return Ok(None);
            }
            return Err(self.misuse("a hole covers chunks that are there already"));
        }
        if state.have.range_count() >= RANGES_MAX {
            return Err(Error::TooManyPieces { path: shown(self.path.as_bytes()) });
        }
        if state.writing.is_empty() {
            state.writer.before_write(self.fd());
        }
        state.writing.push(range.clone());
        let is_first = state.ever_claimed.as_mut().is_some_and(|ever_claimed| {
            let is_first = !ever_claimed.intersects(&range);
            ever_claimed.insert(range.clone());
            is_first
        });
        Ok(Some(Claim { part: self, range, is_first, has_written: false, is_over: false }))
    }
}

impl<'a> Claim<'a> {
    /// Appends the journal entry; the chunks are now received and the claim ends. Returns the lock,
    /// under which the caller enters their hashes.
    pub(crate) fn record(mut self, record: &JournalEntry) -> Result<MutexGuard<'a, PartState>> {
        let part = self.part;
        let mut state = part.lock();
        let journal = state.journal.as_mut().ok_or_else(|| part.misuse("it is finished"))?;
        journal.append(record).context(part.path.as_bytes(), "write its journal")?;
        state.have.insert(self.range.clone());
        self.end(&mut state);
        Ok(state)
    }

    fn end(&mut self, state: &mut PartState) {
        self.is_over = true;
        if let Some(at) = state.writing.iter().position(|range| *range == self.range) {
            state.writing.swap_remove(at);
        }
        if self.has_written {
            state.writer.wrote();
        }
        if state.writing.is_empty() {
            state.writer.after_write(self.part.fd());
        }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            let part = self.part;
            self.end(&mut part.lock());
        }
    }
}
