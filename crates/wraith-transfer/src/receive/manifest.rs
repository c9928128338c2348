//! The manifest at the receiver: every entry is checked, compared with the disk, and decided (SPEC
//! §10.4, §10.5).
//!
//! The [`Intake`] decides each entry. Decisions are sent whenever the stream has nothing more to
//! read. The first file is thus requested while the sender still walks.

use std::sync::Arc;

use super::assembly::Assembly;
use super::data::receive_whole;
use super::entries::{Entries, ManifestEnd, ParseResult};
use super::incoming::Incoming;
use super::intake::{Decided, Intake, make_link};
use super::peer::Peer;
use super::placement::Placed;
use super::pushes::Pushed;
use crate::error::TransferError;
use crate::limits::EXCEPTIONS_MAX;
use crate::message::Message;
use crate::wanted::WantWriter;

/// Reads the manifest to its end and sends every Want. Returns the links that are still to be
/// created, and the content of the trailer.
pub(super) fn receive(
    peer: &Peer<'_>,
    assembly: &Assembly<'_>,
    mut entries: Entries,
) -> Result<(Vec<(u32, Placed)>, ManifestEnd), TransferError> {
    let session = peer.session;
    let (wants, wanted) = (WantWriter::default(), Vec::new());
    let mut requests = Requests { peer, assembly, wants, wanted };
    let mut intake = Intake::new(assembly);
    // The limits of the manifest keep it below 2^32.
    let mut number = 0;
    let end = loop {
        if session.is_over() {
            return Err(session.stopped());
        }
        match entries.next(session)? {
            ParseResult::Entry(entry) => {
                let is_accepted = peer.is_accepted(&entry.path);
                let decided = intake.decide((number, entry), is_accepted, || requests.send())?;
                requests.add(number, decided);
                number += 1;
                if requests.wants.is_full() {
                    requests.send()?;
                }
            }
            ParseResult::End(end) => break end,
            // The decisions are sent before the first wait.
            ParseResult::NeedsMoreBytes => {
                requests.send()?;
                let read = session.wait(entries.stream().read_chunk());
                let read = read.map_err(|error| session.read_failed(error))?;
                entries.push(session, read)?;
            }
        }
    };
    requests.send()?;
    peer.owed.manifest_ended();
    entries.read_to_end(session)?;
    Ok((intake.into_links(), end))
}

/// Creates the links and gives the folders their modes and times, once all files are in place.
pub(super) fn finish_tree(
    peer: &Peer<'_>,
    assembly: &Assembly<'_>,
    links: &[(u32, Placed)],
) -> Result<(), TransferError> {
    for link in links {
        make_link(assembly, link)?;
        peer.send_exceptions(&assembly.take_exceptions(EXCEPTIONS_MAX))?;
    }
    assembly.target.finish_dirs().map_err(|error| assembly.disk(&error))
}

/// The decisions that are not sent yet.
struct Requests<'a> {
    peer: &'a Peer<'a>,
    assembly: &'a Assembly<'a>,
    wants: WantWriter,
    /// The files in `wants`.
    wanted: Vec<(u32, Arc<Incoming>)>,
}

impl Requests<'_> {
    fn add(&mut self, number: u32, decided: Decided) {
        match decided {
            Decided::Pass => self.wants.pass(number),
            Decided::Except(exception) => self.wants.except(number, exception),
            Decided::Want(file) => {
                self.wants.add(number, file.wanted(), file.old().is_some());
                file.ask(self.peer.id, 0..u64::MAX);
                self.wanted.push((number, file));
            }
        }
    }

    /// Sends the decisions to the sender, then waits until there is room for more.
    fn send(&mut self) -> Result<(), TransferError> {
        let Some(want) = self.wants.take() else { return Ok(()) };
        let (peer, assembly) = (self.peer, self.assembly);
        let insert = || peer.owed.insert(self.wanted.drain(..));
        let pushed = peer.pushes.decide(&peer.owed, want.upto, insert);
        peer.send(&Message::Want(want))?;
        peer.send_exceptions(&assembly.take_exceptions(EXCEPTIONS_MAX))?;
        for (file, Pushed { root, bytes }) in pushed {
            receive_whole(peer, assembly, &file, &root, &[&bytes])?;
        }
        if peer.owed.wait_for_room() { Ok(()) } else { Err(peer.session.stopped()) }
    }
}
