//! Small files that arrive with the offer, before they are requested (SPEC §10.6). A receiver that
//! accepts in advance gets them one round trip earlier.
//!
//! Invariant: a pushed file is used only after the decision that it is wanted as a whole. No more
//! bytes are kept than Fetch requested.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use wraith_files::Root;

use super::assembly::Assembly;
use super::incoming::Incoming;
use super::outstanding::OutstandingFiles;
use super::peer::Peer;
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
struct Pushed {
    root: Root,
    bytes: Vec<u8>,
}

/// A pushed file that is wanted and taken out of the table, but not placed yet.
pub(super) struct WantedPush {
    file: Arc<Incoming>,
    pushed: Pushed,
}

impl Pushes {
    /// Accepts records of at most `bytes` bytes.
    pub(super) fn new(bytes: u64) -> Self {
        Self(Mutex::new(PushDecisions { left: bytes, decided: 0, waiting: HashMap::new() }))
    }

    /// Marks the entries below `upto` as decided; `insert` registers the wanted ones. Returns the
    /// decided files that have arrived and are wanted. They are taken out of the table before the
    /// sender gets the Want, so a second copy in answer to it is always a violation.
    pub(super) fn decide(
        &self,
        table: &OutstandingFiles<Incoming>,
        upto: u64,
        insert: impl FnOnce(),
    ) -> Vec<WantedPush> {
        let mut state = lock(&self.0);
        insert();
        state.decided = upto;
        let decided = state.waiting.extract_if(|&entry, _| u64::from(entry) < upto);
        decided
            .filter_map(|(entry, pushed)| Some(WantedPush { file: take(table, entry)?, pushed }))
            .collect()
    }
}

impl WantedPush {
    /// Places the file.
    pub(super) fn place(
        &self,
        peer: &Peer<'_>,
        assembly: &Assembly<'_>,
    ) -> Result<(), TransferError> {
        place(peer, assembly, &self.file, &self.pushed.root, &[&self.pushed.bytes])
    }
}

/// Handles a pushed file. Keeps it if it is undecided, and drops it if it is not wanted.
pub(super) fn arrive(
    peer: &Peer<'_>,
    assembly: &Assembly<'_>,
    (entry, root): (u32, &Root),
    body: &[&[u8]],
) -> Result<(), TransferError> {
    let len: usize = WHOLE_HEADER_BYTES + body.iter().map(|piece| piece.len()).sum::<usize>();
    let mut state = lock(&peer.pushes.0);
    let Some(left) = state.left.checked_sub(len as u64) else {
        return Err(peer.session.protocol("more files than it was asked to push"));
    };
    state.left = left;
    if u64::from(entry) < state.decided {
        drop(state);
        return match take(&peer.owed, entry) {
            Some(file) => place(peer, assembly, &file, root, body),
            None => Ok(()),
        };
    }
    let pushed = Pushed { root: *root, bytes: body.concat() };
    if state.waiting.insert(entry, pushed).is_some() {
        return Err(peer.session.protocol("a file that it pushes twice"));
    }
    Ok(())
}

/// Takes the file out of the table if it is wanted as a whole. For any other Want, the sender
/// answers separately.
fn take(table: &OutstandingFiles<Incoming>, entry: u32) -> Option<Arc<Incoming>> {
    table.get(entry).filter(|file| file.is_wanted_whole())?;
    table.take(entry)
}

fn place(
    peer: &Peer<'_>,
    assembly: &Assembly<'_>,
    file: &Arc<Incoming>,
    root: &Root,
    body: &[&[u8]],
) -> Result<(), TransferError> {
    file.receive_whole(assembly, body, root)?;
    peer.owed.resolve();
    Ok(())
}
