//! The sender's pieces and chaining values of files that are assembled from old copies. The data
//! threads add to them; the comparing thread ([`super::delta`]) uses them.
//!
//! A file is in this table from its first piece until it is resolved. Input from a sender is
//! bounded:
//!
//! - Pieces have lengths within their limits, follow each other, and cover the requested ranges
//!   once.
//! - There is one chaining value per chunk.
//! - At most [`DELTAS_MAX`] files are in the table.
//!
//! [`Incoming`] tracks which chunks were requested and have arrived.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use wraith_files::{Cv, NewPiece, PieceSize, chunk_count};

use super::incoming::Incoming;
use crate::delta::{first_size, pieces_in, proofs_in};
use crate::limits::DELTAS_MAX;
use crate::lock::lock;

/// Delta files in progress; see the module documentation.
#[derive(Debug, Default)]
pub(crate) struct DeltaFiles {
    state: Mutex<DeltaState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct DeltaState {
    files: HashMap<u32, Sketch>,
    /// Files that the comparing thread has not started yet.
    fresh: VecDeque<Arc<Incoming>>,
    stopped: bool,
}

/// Part of the sender's description of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Description {
    /// Pieces from byte `at` on.
    Pieces { at: u64 },
    /// Chaining values of the chunks from `first` on.
    Proofs { first: u64 },
}

/// State of one file.
#[derive(Debug)]
struct Sketch {
    size: PieceSize,
    /// Ranges whose pieces are still to come, ascending.
    due: VecDeque<Range<u64>>,
    pieces: Vec<NewPiece>,
    chunks: u64,
    cvs: Vec<Cv>,
    /// Chunks below this number are present or requested.
    upto: u64,
    /// The requested bytes, by chunk.
    asked: BTreeMap<u64, Vec<Range<usize>>>,
}

impl Sketch {
    fn of(bytes: u64) -> Self {
        Self {
            size: first_size(bytes),
            due: std::iter::once(0..bytes).collect(),
            pieces: Vec::new(),
            chunks: chunk_count(bytes),
            cvs: Vec::new(),
            upto: 0,
            asked: BTreeMap::new(),
        }
    }

    fn add_pieces(&mut self, mut at: u64, body: &[u8]) -> Result<(), &'static str> {
        for piece in pieces_in(body).ok_or("pieces that are cut off")? {
            let due = self.due.front_mut().ok_or("pieces that were not asked for")?;
            let end = at.checked_add(piece.len.into()).ok_or("a piece with an invalid length")?;
            let is_last = end == due.end;
            let fits = at == due.start
                && end <= due.end
                && piece.len <= self.size.max()
                && (piece.len > self.size.min() || (is_last && piece.len > 0));
            if !fits {
                return Err("a piece at an invalid position");
            }
            self.pieces.push(NewPiece { at, piece });
            due.start = end;
            at = end;
            if is_last {
                self.due.pop_front();
                at = self.due.front().map_or(end, |next| next.start);
            }
        }
        Ok(())
    }

    fn add_proofs(&mut self, first: u64, body: &[u8]) -> Result<(), &'static str> {
        let proofs = proofs_in(body).ok_or("chaining values that are cut off")?;
        let local = self.cvs.len() as u64;
        if first != local || proofs.len() as u64 > self.chunks - local {
            return Err("chaining values for missing chunks");
        }
        self.cvs.extend_from_slice(proofs);
        Ok(())
    }

    fn is_complete(&self) -> bool {
        self.due.is_empty() && self.cvs.len() as u64 == self.chunks
    }
}

impl DeltaFiles {
    /// Adds to the description of `file`. An error describes the violation of SPEC §10.11.
    pub(crate) fn add(
        &self,
        file: &Arc<Incoming>,
        description: Description,
        body: &[u8],
    ) -> Result<(), &'static str> {
        let mut state = lock(&self.state);
        if !state.files.contains_key(&file.entry()) {
            if state.files.len() >= DELTAS_MAX {
                return Err("too many delta files at once");
            }
            state.files.insert(file.entry(), Sketch::of(file.bytes()));
            state.fresh.push_back(Arc::clone(file));
            self.changed.notify_all();
        }
        let sketch = state.files.get_mut(&file.entry()).expect("it was just put there");
        match description {
            Description::Pieces { at } => sketch.add_pieces(at, body)?,
            Description::Proofs { first } => sketch.add_proofs(first, body)?,
        }
        if sketch.is_complete() {
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Returns the next file whose pieces are arriving. `None` once stopped.
    pub(crate) fn next(&self) -> Option<Arc<Incoming>> {
        self.wait(|state| state.fresh.pop_front())
    }

    /// Returns the pieces of a file, once all requested pieces and chaining values have arrived.
    /// `None` if the file was resolved otherwise, or once stopped.
    pub(crate) fn pieces(&self, entry: u32) -> Option<Vec<NewPiece>> {
        self.wait(|state| match state.files.get_mut(&entry) {
            Some(sketch) if !sketch.is_complete() => None,
            Some(sketch) => Some(Some(std::mem::take(&mut sketch.pieces))),
            None => Some(None),
        })
        .flatten()
    }

    /// Expects the pieces of `spans`, of this size, from now on.
    pub(crate) fn expect(&self, entry: u32, size: PieceSize, spans: &[Range<u64>]) {
        if let Some(sketch) = lock(&self.state).files.get_mut(&entry) {
            sketch.size = size;
            sketch.due = spans.iter().cloned().collect();
        }
    }

    /// Returns the chaining value of a chunk.
    pub(crate) fn cv(&self, entry: u32, index: u64) -> Option<Cv> {
        lock(&self.state).files.get(&entry)?.cvs.get(usize::try_from(index).ok()?).copied()
    }

    /// Records that chunks below `upto` are present, or in `asked` with their missing bytes. Call
    /// it before the request is sent.
    pub(crate) fn add_requests(
        &self,
        entry: u32,
        upto: u64,
        asked: impl IntoIterator<Item = (u64, Vec<Range<usize>>)>,
    ) {
        if let Some(sketch) = lock(&self.state).files.get_mut(&entry) {
            sketch.upto = upto;
            sketch.asked.extend(asked);
        }
    }

    /// Returns the requested ranges of a claimed chunk, and its chaining value.
    pub(crate) fn take(&self, entry: u32, index: u64) -> Option<(Vec<Range<usize>>, Cv)> {
        let mut state = lock(&self.state);
        let sketch = state.files.get_mut(&entry)?;
        let cv = *sketch.cvs.get(usize::try_from(index).ok()?)?;
        Some((sketch.asked.remove(&index)?, cv))
    }

    /// Returns true if nothing more will be requested.
    pub(crate) fn is_decided(&self, entry: u32) -> bool {
        lock(&self.state).files.get(&entry).is_some_and(|sketch| sketch.upto == sketch.chunks)
    }

    /// Removes a resolved file.
    pub(crate) fn forget(&self, entry: u32) {
        lock(&self.state).files.remove(&entry);
        self.changed.notify_all();
    }

    /// Stops, and wakes all waiting threads.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }

    fn wait<T>(&self, mut ready: impl FnMut(&mut DeltaState) -> Option<T>) -> Option<T> {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return None;
            }
            if let Some(value) = ready(&mut state) {
                return Some(value);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use wraith_files::Piece;

    use super::*;
    use crate::delta::encode_piece;

    const BYTES: u64 = 1 << 20;

    fn body(lens: &[u32]) -> Vec<u8> {
        let mut body = Vec::new();
        lens.iter().for_each(|&len| encode_piece(&Piece { len, hash: [1; 8] }, &mut body));
        body
    }

    fn first() -> Sketch {
        Sketch::of(BYTES)
    }

    #[test]
    fn pieces_cover_the_file_once() {
        let mut sketch = first();
        let whole = vec![64 * 1024; 15];
        sketch.add_pieces(0, &body(&whole)).unwrap();
        assert!(!sketch.is_complete());
        sketch.add_pieces(15 * 64 * 1024, &body(&[60 * 1024, 4 * 1024])).unwrap();
        assert!(sketch.due.is_empty() && !sketch.is_complete());
        sketch.add_proofs(0, &[7; 32 * 3]).unwrap();
        sketch.add_proofs(3, &[7; 32]).unwrap();
        assert!(sketch.is_complete());
        assert!(sketch.add_pieces(BYTES, &body(&[64 * 1024])).is_err());
        assert!(sketch.add_proofs(4, &[7; 32]).is_err());
    }

    #[test]
    fn pieces_that_cannot_be_are_refused() {
        let (min, max) = (first().size.min(), first().size.max());
        for (at, lens) in [
            (1, vec![max]),
            (0, vec![min]),
            (0, vec![0]),
            (0, vec![max + 1]),
            (0, vec![u32::MAX]),
            (u64::MAX, vec![max]),
            (0, [vec![max; 7], vec![min + 1, max]].concat()),
        ] {
            assert!(first().add_pieces(at, &body(&lens)).is_err(), "{at} {lens:?}");
        }
        assert!(first().add_pieces(0, &body(&[max])[1..]).is_err());
        for (at, len) in [(1, 32), (0, 31), (0, 32 * 5)] {
            assert!(first().add_proofs(at, &vec![0; len]).is_err(), "{at} {len}");
        }
    }

    #[test]
    fn finer_pieces_are_of_the_stretches_that_were_asked_for() {
        let mut sketch = first();
        (sketch.size, sketch.due) =
            (PieceSize::new(1024).unwrap(), VecDeque::from([100..1300, 5000..5001]));
        sketch.add_pieces(100, &body(&[1000, 200, 1])).unwrap();
        assert!(sketch.due.is_empty());
        let places: Vec<u64> = sketch.pieces.iter().map(|piece| piece.at).collect();
        assert_eq!(places, [100, 1100, 5000]);
    }
}
