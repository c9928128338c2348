//! The sender as the receiver sees it: its connection, what it was asked for and owes, and how much
//! of its offer may be taken.
//!
//! A peer has no part in where content goes. It hands records to the [`super::assembly`], under its
//! number.

use std::sync::Mutex;

use wraith_files::RelPath;

use super::incoming::{Incoming, PeerId};
use super::outstanding::OutstandingFiles;
use super::pushes::Pushes;
use super::shown::Shown;
use crate::control::ControlWriter;
use crate::error::TransferError;
use crate::limits::EXCEPTIONS_MAX;
use crate::lock::lock;
use crate::message::{DiskBusy, Excepted, Exceptions, Message, Offer};
use crate::session::Session;

/// One sender; see the module documentation.
pub(crate) struct Peer<'a> {
    pub(super) id: PeerId,
    pub(super) session: &'a Session,
    pub(super) offer: &'a Offer,
    /// The accepted part of its offer, if it was not accepted completely.
    pub(super) accepted: Option<Shown>,
    /// The files that it owes.
    pub(super) owed: OutstandingFiles<Incoming>,
    pub(super) pushes: Pushes,
    pub(super) writer: Mutex<ControlWriter>,
}

impl Peer<'_> {
    /// Sends a message; waits while the peer does not read.
    pub(super) fn send(&self, message: &Message) -> Result<(), TransferError> {
        lock(&self.writer).send(self.session, message)
    }

    /// Reports entries that it sent but this side lacks.
    pub(super) fn send_exceptions(&self, excepted: &[Excepted]) -> Result<(), TransferError> {
        for some in excepted.chunks(EXCEPTIONS_MAX) {
            let entries = some.to_vec();
            self.send(&Message::Exceptions(Exceptions { entries }))?;
        }
        Ok(())
    }

    /// Returns true if it owes data. Called when nothing has moved for a while. If this side is
    /// busy with its disk, reports that to the waiting peer.
    pub(super) fn is_due(&self) -> bool {
        // A thread that holds the writer is sending a message already. The stall check must not
        // wait for a peer that does not read.
        if self.session.is_not_reading()
            && let Ok(mut writer) = self.writer.try_lock()
        {
            let told = writer.send_if_room(self.session, &Message::DiskBusy(DiskBusy {}));
            self.session.run_or_fail(|| told);
        }
        self.owed.is_due()
    }

    /// Returns true if the accepted offer covers this entry. Only top-level names are checked.
    pub(super) fn is_accepted(&self, offered: &RelPath) -> bool {
        let accepted = self.accepted.as_ref();
        offered.depth() > 1 || accepted.is_none_or(|shown| shown.covers_name(offered))
    }
}
