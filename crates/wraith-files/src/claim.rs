//! Chunks of a part file that one thread writes: nobody else does, and the look for other writers stands still.
//!
//! A change of the part in the time of a claim that writes is taken for its own ([`crate::only_writer`]). So a claim is held for one
//! write and the journal entry of it, and never while something is computed.

use std::ops::Range;
use std::sync::MutexGuard;

use crate::error::{Context, Error, Result};
use crate::journal::JournalEntry;
use crate::part_file::{PartFile, State};
use crate::path::shown;

/// Separate ranges of received chunks, so that a peer that skips every other chunk cannot make the bookkeeping grow. A
/// sender that works in order leaves a handful.
const RANGES_MAX: usize = 65_536;

/// Chunks that this thread may write. Dropped without a journal entry, they may be claimed again.
pub(crate) struct Claim<'a> {
    part: &'a PartFile,
    range: Range<u64>,
    /// Nothing was written there, and zeros are there.
    pub(crate) is_first: bool,
    /// Something may be written under this claim. Set before it is.
    pub(crate) has_written: bool,
    is_over: bool,
}

impl PartFile {
    /// Takes chunks for writing. `None` if they all count already.
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
    /// Appends the journal entry: now the chunks count, and the claim is over. Their hashes are entered under the lock that is
    /// returned.
    pub(crate) fn record(mut self, record: &JournalEntry) -> Result<MutexGuard<'a, State>> {
        let part = self.part;
        let mut state = part.lock();
        let journal = state.journal.as_mut().ok_or_else(|| part.misuse("it is finished"))?;
        journal.append(record).context(part.path.as_bytes(), "write its journal")?;
        state.have.insert(self.range.clone());
        self.end(&mut state);
        Ok(state)
    }

    fn end(&mut self, state: &mut State) {
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
