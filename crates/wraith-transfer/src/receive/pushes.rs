//! Small files that arrive with the offer, before they are requested (SPEC §10.6). A receiver that
//! accepts in advance gets them one round trip earlier.
//!
//! Invariant: a pushed file is used only after the decision that it is wanted as a whole. No more
//! bytes are kept than Fetch requested.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use wraith_files::Root;

use super::incoming::Incoming;
use super::outstanding::OutstandingFiles;
use crate::lock::lock;
use crate::record::WHOLE_HEADER_BYTES;

/// Pushed files of a connection.
#[derive(Debug)]
pub(super) struct Pushes(Mutex<PushDecisions>);

#[derive(Debug)]
struct PushDecisions {
    /// Bytes of records that may still arrive.
    left: u64,
    /// Entries below this number are decided.
    decided: u64,
    /// Pushed files that are not decided yet.
    waiting: HashMap<u32, Pushed>,
}

/// A file that arrived before the decision about it.
#[derive(Debug)]
pub(super) struct Pushed {
    pub(super) root: Root,
    pub(super) bytes: Vec<u8>,
}

impl Pushes {
    /// Accepts records of at most `bytes` bytes.
    pub(super) fn new(bytes: u64) -> Self {
        Self(Mutex::new(PushDecisions { left: bytes, decided: 0, waiting: HashMap::new() }))
    }

    /// Handles a pushed file. Returns it if it is wanted now; keeps it if it is undecided, and drops
    /// it if it is not wanted. An error describes the violation.
    pub(super) fn arrive(
        &self,
        table: &OutstandingFiles<Incoming>,
        (entry, root): (u32, &Root),
        body: &[&[u8]],
    ) -> Result<Option<Arc<Incoming>>, &'static str> {
        let len: usize = WHOLE_HEADER_BYTES + body.iter().map(|piece| piece.len()).sum::<usize>();
        let mut state = lock(&self.0);
        let left = state.left.checked_sub(len as u64);
        state.left = left.ok_or("more files than it was asked to push")?;
        if u64::from(entry) < state.decided {
            drop(state);
            return Ok(take(table, entry));
        }
        let pushed = Pushed { root: *root, bytes: body.concat() };
        match state.waiting.insert(entry, pushed) {
            Some(_) => Err("a file that it pushes twice"),
            None => Ok(None),
        }
    }

    /// Marks the entries below `upto` as decided; `insert` registers the wanted ones. Returns the
    /// decided files that have arrived and are wanted. They are taken out of the table before the
    /// sender gets the Want, so a second copy in answer to it is always a violation.
    pub(super) fn decide(
        &self,
        table: &OutstandingFiles<Incoming>,
        upto: u64,
        insert: impl FnOnce(),
    ) -> Vec<(Arc<Incoming>, Pushed)> {
        let mut state = lock(&self.0);
        insert();
        state.decided = upto;
        let decided = state.waiting.extract_if(|&entry, _| u64::from(entry) < upto);
        decided.filter_map(|(entry, pushed)| Some((take(table, entry)?, pushed))).collect()
    }
}

/// Takes the file out of the table if it is wanted as a whole. For any other Want, the sender
/// answers separately.
fn take(table: &OutstandingFiles<Incoming>, entry: u32) -> Option<Arc<Incoming>> {
    table.get(entry).filter(|file| file.is_wanted_whole())?;
    table.take(entry)
}
