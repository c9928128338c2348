//! Small files that come along with the offer, before they are asked for (SPEC §10.6): who has said yes beforehand has them a round trip
//! earlier.
//!
//! Invariant: nothing of a pushed file is used before it was decided that it is wanted as a whole, and no more of them is kept than
//! Fetch has asked for.

use std::collections::HashMap;
use std::sync::Mutex;

use wraith_files::Root;

use super::Receiving;
use crate::error::TransferError;
use crate::lock::lock;
use crate::record::WHOLE_HEADER_BYTES;

/// What was pushed on a connection.
#[derive(Debug)]
pub(super) struct Pushes(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Bytes of records that may still come.
    left: u64,
    /// Entries below are decided.
    decided: u64,
    /// Those that are not.
    waiting: HashMap<u32, Pushed>,
}

/// A file that came before it was decided about.
#[derive(Debug)]
pub(super) struct Pushed {
    root: Root,
    bytes: Vec<u8>,
}

impl Pushes {
    /// With records of so many bytes at most.
    pub(super) fn new(bytes: u64) -> Self {
        Self(Mutex::new(State { left: bytes, decided: 0, waiting: HashMap::new() }))
    }

    /// A pushed file is here. It is kept if nobody has decided about it yet, and dropped if it is not wanted.
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

    /// The entries below `upto` are decided; `insert` makes the wanted ones known. Which of them are here.
    pub(super) fn decide(&self, upto: u64, insert: impl FnOnce()) -> Vec<(u32, Pushed)> {
        let mut state = lock(&self.0);
        insert();
        state.decided = upto;
        state.waiting.extract_if(|&entry, _| u64::from(entry) < upto).collect()
    }
}

impl Pushed {
    /// Gives the file its place, if it is wanted.
    pub(super) fn place(&self, receiving: &Receiving<'_>, entry: u32) -> Result<(), TransferError> {
        place(receiving, entry, &self.root, &[&self.bytes])
    }
}

/// What is wanted in part, or only if it differs from what is here, the sender answers for itself.
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
