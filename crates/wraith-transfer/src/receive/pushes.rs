//! Small files that arrive with the offer, before they are requested (SPEC §10.6). A receiver that
//! accepts in advance gets them one round trip earlier.
//!
//! Invariant: a pushed file is used only after the decision that it is wanted as a whole. No more
//! bytes are kept than Fetch requested.

use std::collections::HashMap;
use std::sync::Mutex;

use wraith_files::Root;

use super::Receiving;
use crate::error::TransferError;
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
    root: Root,
    bytes: Vec<u8>,
}

impl Pushes {
    /// Accepts records of at most `bytes` bytes.
    pub(super) fn new(bytes: u64) -> Self {
        Self(Mutex::new(PushDecisions { left: bytes, decided: 0, waiting: HashMap::new() }))
    }

    /// Handles a pushed file. Keeps it if it is undecided, and drops it if it is not wanted.
    pub(super) fn arrive(
        &self,
        receiving: &Receiving<'_>,
        entry: u32,
        root: &Root,
        body: &[&[u8]],
    ) -> Result<(), TransferError> {
        let len: usize = WHOLE_HEADER_BYTES + body.iter().map(|piece| piece.len()).sum::<usize>();
        let mut state = lock(&self.0);
        let Some(left) = state.left.checked_sub(len as u64) else {
            return Err(receiving.session.protocol("more files than it was asked to push"));
        };
        state.left = left;
        if u64::from(entry) < state.decided {
            drop(state);
            return place(receiving, entry, root, body);
        }
        let pushed = Pushed { root: *root, bytes: body.concat() };
        if state.waiting.insert(entry, pushed).is_some() {
            return Err(receiving.session.protocol("a file that it pushes twice"));
        }
        Ok(())
    }

    /// Marks the entries below `upto` as decided; `insert` registers the wanted ones. Returns the
    /// decided files that have arrived.
    pub(super) fn decide(&self, upto: u64, insert: impl FnOnce()) -> Vec<(u32, Pushed)> {
        let mut state = lock(&self.0);
        insert();
        state.decided = upto;
        state.waiting.extract_if(|&entry, _| u64::from(entry) < upto).collect()
    }
}

impl Pushed {
    /// Places the file, if it is wanted.
    pub(super) fn place(&self, receiving: &Receiving<'_>, entry: u32) -> Result<(), TransferError> {
        place(receiving, entry, &self.root, &[&self.bytes])
    }
}

/// Places the file if it is wanted as a whole. For any other Want, the sender answers separately.
fn place(
    receiving: &Receiving<'_>,
    entry: u32,
    root: &Root,
    body: &[&[u8]],
) -> Result<(), TransferError> {
    let table = &receiving.table;
    let wanted = table.get(entry).filter(|file| file.is_wanted_whole());
    let Some(file) = wanted.and_then(|_| table.take(entry)) else { return Ok(()) };
    file.receive_whole(receiving, body, root)?;
    table.settle();
    Ok(())
}
