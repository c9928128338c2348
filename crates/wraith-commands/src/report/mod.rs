//! Reports the events of the transfer engine as text for people and events for programs.

mod clocks;
mod names;
mod not_arrived;
mod skipped;
mod summary;

use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use wraith::json::{self, EventConverter};
use wraith::state::{ContactName, OmittedCounts, ReceivedListRecorder};
use wraith::{
    Addr, Durability, Error, Event, FileStatus, Node, NodeId, Receipt, ReceiveReport, Role,
    SendReport,
};
use wraith_command_text::units::{Bytes, Files};
use wraith_files::Change;
use wraith_transfer::{Event as TransferEvent, Offer};

use crate::output::Reporter;

pub use clocks::{about, clocks_differ, compare_clocks, utc};
pub use names::{decision_id, name_of, short_id, shown};
use skipped::SkippedNames;
use summary::Summary;

/// Reports the events of one side's transfer, over all its connections.
#[derive(Debug)]
pub struct Narrator {
    role: Role,
    node: Node,
    reporter: Arc<Reporter>,
    converter: EventConverter,
    is_only: bool,
    state: Mutex<NarratorState>,
}

#[derive(Debug, Default)]
struct NarratorState {
    /// Number of the receiver, if there are several.
    number: Option<u64>,
    /// The other side, once it is connected.
    peer: Option<NodeId>,
    /// Time when the offer was accepted on this connection. Both sides know this moment, whichever
    /// started first.
    accepted: Option<Instant>,
    left_out: SkippedNames,
    /// Files that moved on the last connection, files that were there before, and the bytes of
    /// both.
    moved: u64,
    already_here: u64,
    here_bytes: u64,
}

impl Narrator {
    pub fn new(role: Role, node: &Node, reporter: &Arc<Reporter>) -> Self {
        let (node, reporter) = (node.clone(), Arc::clone(reporter));
        let converter = EventConverter::new(&node);
        Self { role, node, reporter, converter, is_only: false, state: Mutex::default() }
    }

    /// Marks this as the only transfer of the command.
    pub fn only(self) -> Self {
        Self { is_only: true, ..self }
    }

    /// Sets the number of the receiver for all later reports, if there are several.
    pub fn number(&self, number: Option<u64>) {
        self.lock().number = number;
    }

    /// Reports that one of several receivers failed. The others continue.
    pub fn receiver_failed(&self, event: &Event, error: &Error) {
        self.json(self.converter.event(event));
        self.status(format!("Not sent: {error}"));
    }

    fn json(&self, event: Option<json::Event>) {
        self.reporter.transfer_event(self.lock().number, event.as_ref());
    }

    fn status(&self, text: impl std::fmt::Display) {
        match self.lock().number {
            Some(number) => self.reporter.status(format!("[{number}] {text}")),
            None => self.reporter.status(text.to_string()),
        }
    }

    /// Reports one event of the engine.
    pub fn transfer_event(&self, event: &TransferEvent<'_>) {
        if self.reporter.is_json() {
            return self.json(self.converter.transfer_event(event));
        }
        match event {
            TransferEvent::Connected { peer, remote, .. } => self.connected(*peer, remote),
            TransferEvent::Offer(offer) => self.offer(offer),
            TransferEvent::Accepted => self.lock().accepted = Some(Instant::now()),
            TransferEvent::File { path, status, bytes, change, .. } => {
                self.file(path, *status, *bytes, *change);
            }
            TransferEvent::Note { path, what } => self.reporter.warn(format!("{path}: {what}")),
            TransferEvent::LeftOut { path, what, special } => {
                let line =
                    self.lock().left_out.line(&path.to_string(), &what.to_string(), *special);
                line.into_iter().for_each(|line| self.reporter.warn(line));
            }
            // The report at the end of the transfer contains the receipt. Other events come from a
            // newer engine.
            _ => {}
        }
    }

    fn connected(&self, node_id: NodeId, remote: &Addr) {
        let (peer, address) = (node_id.to_string(), self.node.shown(remote));
        let route = self.node.route(remote);
        let name = name_of(node_id);
        self.lock().peer = Some(node_id);
        let shown = name.as_ref().map_or(short_id(&peer), ContactName::as_str);
        self.status(format!("Connected to {shown} at {address} ({route})."));
    }

    /// Reports a new path, or why the path stays on the relay.
    pub fn path(&self, event: &Event) {
        self.json(self.converter.event(event));
        let Event::Path { remote, route, why, .. } = event else { return };
        match why {
            Some(why) => self.status(format!("Still on the relay: {why}.")),
            None => self.status(format!("Now at {} ({route}).", self.node.shown(remote))),
        }
    }

    fn offer(&self, offer: &Offer) {
        let mut state = self.lock();
        // Each connection walks the tree again.
        state.left_out = SkippedNames::default();
        (state.moved, state.already_here, state.here_bytes) = (0, 0, 0);
        drop(state);
        if self.role == Role::Sender {
            let (files, bytes) = (Files(offer.files), Bytes(offer.bytes));
            let what = match offer.stream {
                Some(true) => "a stream".to_owned(),
                _ => format!("{files}, {bytes}"),
            };
            let who = self.lock().peer.map_or_else(|| "the receiver".to_owned(), shown);
            self.status(format!("Offered {what}. Waiting for {who} to accept."));
        }
    }

    fn file(&self, path: &dyn Display, status: FileStatus, bytes: u64, change: Option<Change>) {
        let mut state = self.lock();
        state.moved += u64::from(status == FileStatus::Done);
        state.already_here += u64::from(status == FileStatus::AlreadyHere);
        if !status.is_failure() && status != FileStatus::Skipped {
            state.here_bytes = state.here_bytes.saturating_add(bytes);
        }
        drop(state);
        if let Some(reason) = not_arrived::reason(self.role, status, change) {
            self.reporter.warn(format!("{path}: {reason}"));
        }
    }

    /// Reports the complete transfer of the sender.
    pub fn sent(&self, event: &Event, report: &SendReport) {
        if self.reporter.is_json() {
            return self.last_json(self.converter.event(event));
        }
        if let Some(line) = self.lock().left_out.special_line(report.special) {
            self.reporter.warn(line);
        }
        let receipt = &report.receipt;
        // Only the receiver knows the result of each file.
        let already_here = self.lock().already_here.min(receipt.verified);
        let summary = self.summary(receipt, report.bytes_moved, report.failed);
        let moved = receipt.verified - already_here;
        let (bytes, kept) = (receipt.bytes, receipt.kept);
        self.status(Summary { moved, already_here, bytes, kept, ..summary }.line());
    }

    /// Reports the complete transfer of the receiver.
    pub fn received(&self, report: &ReceiveReport) {
        if self.reporter.is_json() {
            self.last_json(Some(self.converter.received(report)));
        } else {
            let summary = self.summary(&report.receipt, report.bytes_moved, report.failed);
            self.status(Summary { kept: report.skipped, ..summary }.line());
        }
        if !report.confirmed {
            let message = "everything is here, but the sender has not confirmed the receipt";
            self.reporter.note("", message);
        }
    }

    fn last_json(&self, event: Option<json::Event>) {
        match event {
            Some(event) if self.is_only => self.reporter.last_event(&event),
            event => self.json(event),
        }
    }

    /// Returns the figures of this side.
    fn summary(&self, receipt: &Receipt, bytes_moved: u64, failed: u64) -> Summary {
        let NarratorState { accepted, moved, already_here, here_bytes, .. } = *self.lock();
        Summary {
            role: self.role,
            moved,
            already_here,
            bytes: here_bytes,
            kept: 0,
            failed,
            bytes_moved,
            not_yet_on_disk: matches!(receipt.durability(), None | Some(Durability::NotAwaited)),
            seconds: accepted.map_or(0.0, |at| at.elapsed().as_secs_f64()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, NarratorState> {
        // It holds plain figures, so a panic elsewhere leaves them valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores the received list of a finished transfer. A failure is only a notice.
pub fn store_received_list(
    recorder: &ReceivedListRecorder,
    report: &ReceiveReport,
    node: &Node,
    reporter: &Reporter,
) {
    let message = match recorder.finish(&report.receipt, report.sender, node.identity()) {
        Ok(rest) if rest.is_empty() => return,
        Ok(rest) => format!(
            "the list for wraith verify is full: {} came later and will not be checked; --record-max allows more",
            Unlisted(rest)
        ),
        Err(why) => {
            format!("no list was saved, so wraith verify cannot check this transfer: {why}")
        }
    };
    reporter.note("", &message);
}

/// The entries missing from a list: `7 files`, `1 file and 2 folders or links`.
#[derive(Clone, Copy, Debug)]
pub struct Unlisted(pub OmittedCounts);

impl std::fmt::Display for Unlisted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", Files(self.0.files))?;
        match self.0.others {
            0 => Ok(()),
            1 => f.write_str(" and a folder or link"),
            n => write!(f, " and {n} folders or links"),
        }
    }
}
