//! Reports the events of the transfer engine as text for people and events for programs.

mod clocks;
mod names;
mod not_arrived;
mod skipped;
mod summary;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use data_encoding::BASE32_NOPAD;
use wraith::state::{ContactName, OmittedCounts, ReceivedListRecorder};
use wraith::{
    Addr, Durability, FileStatus, Node, NodeId, Receipt, ReceiveReport, Role, Route, SendReport,
};
use wraith_command_text::units::{Bytes, Files};
use wraith_files::{Change, Root, Tree};
use wraith_transfer::{Event as TransferEvent, Offer};
use wraith_transport::{KEY_AGREEMENT, Suite};

use crate::failure::Exit;
use crate::output::{Event, Reporter};

pub use clocks::{about, clocks_differ, compare_clocks, utc};
pub use names::{decision_id, found_at, name_of, short_id, shown};
use skipped::SkippedNames;
use summary::Summary;

/// Reports the events of one side's transfer, over all its connections.
#[derive(Debug)]
pub struct Narrator {
    role: Role,
    node: Node,
    reporter: Arc<Reporter>,
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
    files: u64,
    bytes: u64,
    left_out: SkippedNames,
    /// Files that moved on the last connection, files that were there before, and the bytes of
    /// both.
    moved: u64,
    already_here: u64,
    here_bytes: u64,
}

/// The figures of a finished transfer.
#[derive(Clone, Copy, Debug)]
struct Totals<'a> {
    /// Files that the receiver has now.
    files: u64,
    /// Bytes that moved on the last connection.
    bytes_moved: u64,
    wire_bytes: u64,
    connections: u64,
    already_here: u64,
    skipped: u64,
    failed: u64,
    left_out: u64,
    receipt: &'a Receipt,
}

impl Narrator {
    pub fn new(role: Role, node: &Node, reporter: &Arc<Reporter>) -> Self {
        let (node, state) = (node.clone(), Mutex::default());
        Self { role, node, reporter: Arc::clone(reporter), is_only: false, state }
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
    pub fn receiver_failed(&self, exit: Exit, message: &str) {
        self.event(&Event::ReceiverFailed { code: exit.name(), message });
        self.status(format!("Not sent: {message}"));
    }

    fn event(&self, event: &Event<'_>) {
        let number = self.lock().number;
        self.reporter.event_of(number, event);
    }

    fn status(&self, text: impl std::fmt::Display) {
        match self.lock().number {
            Some(number) => self.reporter.status(format!("[{number}] {text}")),
            None => self.reporter.status(text.to_string()),
        }
    }

    /// Reports one event of the engine.
    pub fn transfer_event(&self, event: &TransferEvent<'_>) {
        match event {
            TransferEvent::Connected { peer, remote, suite, .. } => {
                self.connected(*peer, remote, *suite);
            }
            TransferEvent::Offer(offer) => self.offer(offer),
            TransferEvent::Accepted => {
                let mut state = self.lock();
                state.accepted = Some(Instant::now());
                let (files, bytes) = (state.files, state.bytes);
                drop(state);
                self.event(&Event::Accept { files, bytes });
            }
            TransferEvent::File { path, status, bytes, root, change } => {
                let path = path.to_string();
                self.file(&path, *status, *bytes, *root, *change);
            }
            TransferEvent::Note { path, what } => {
                let (path, message) = (path.to_string(), what.to_string());
                self.event(&Event::Note { path: &path, message: &message });
                self.reporter.warn(format!("{path}: {message}"));
            }
            TransferEvent::LeftOut { path, what, special } => {
                let (path, message) = (path.to_string(), what.to_string());
                self.event(&Event::Note { path: &path, message: &message });
                let line = self.lock().left_out.line(&path, &message, *special);
                line.into_iter().for_each(|line| self.reporter.warn(line));
            }
            // The report at the end of the transfer contains the receipt. Other events come from a
            // newer engine.
            _ => {}
        }
    }

    fn connected(&self, node_id: NodeId, remote: &Addr, suite: Suite) {
        let (peer, address) = (node_id.to_string(), self.node.shown(remote));
        let route = self.node.route(remote);
        let (path, how) = (route.kind.name(), route.origin.name());
        let name = name_of(node_id);
        let contact = name.as_ref().map(ContactName::as_str);
        self.lock().peer = Some(node_id);
        let keys_and_cipher = format!("{KEY_AGREEMENT}, {}", suite.name());
        self.event(&Event::Connected {
            peer: &peer,
            address: &address,
            path,
            how,
            contact,
            suite: &keys_and_cipher,
            backend: &wraith_crypto::implementation(suite),
        });
        let shown = contact.unwrap_or(short_id(&peer));
        self.status(format!("Connected to {shown} at {address} ({route})."));
    }

    /// Reports a new path, or why the path stays on the relay (`why`).
    pub fn path(&self, peer: NodeId, remote: &Addr, route: Route, why: Option<&str>) {
        let (peer, address) = (peer.to_string(), self.node.shown(remote));
        let (path, how) = (route.kind.name(), route.origin.name());
        let message = why;
        self.event(&Event::Path { peer: &peer, address: &address, path, how, message });
        match why {
            Some(why) => self.status(format!("Still on the relay: {why}.")),
            None => self.status(format!("Now at {address} ({route}).")),
        }
    }

    fn offer(&self, offer: &Offer) {
        let mut state = self.lock();
        (state.files, state.bytes) = (offer.files, offer.bytes);
        // Each connection walks the tree again.
        state.left_out = SkippedNames::default();
        (state.moved, state.already_here, state.here_bytes) = (0, 0, 0);
        drop(state);
        self.event(&Event::Offer {
            name: &offer.name,
            files: offer.files,
            folders: offer.dirs,
            links: offer.links,
            bytes: offer.bytes,
            largest: offer.largest,
            left_out: offer.left_out.unwrap_or(0),
        });
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

    fn file(
        &self,
        path: &str,
        status: FileStatus,
        bytes: u64,
        root: Option<(Tree, Root)>,
        change: Option<Change>,
    ) {
        let hex = |tree| {
            let root = root.filter(|(of, _)| *of == tree).map(|(_, root)| root);
            root.map(|root| blake3::Hash::from_bytes(root).to_hex())
        };
        let (plain, position_free) = (hex(Tree::Blake3), hex(Tree::PositionFree));
        self.event(&Event::File {
            path,
            status: status.name(),
            bytes,
            root: plain.as_deref(),
            position_free_root: position_free.as_deref(),
            change: change.map(Change::name),
        });
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
    pub fn sent(&self, report: &SendReport) {
        if let Some(line) = self.lock().left_out.special_line(report.special) {
            self.reporter.warn(line);
        }
        let already_here = self.lock().already_here.min(report.receipt.verified);
        self.done(&Totals {
            files: report.receipt.verified,
            bytes_moved: report.bytes_moved,
            wire_bytes: report.wire_bytes,
            connections: report.connections,
            already_here,
            skipped: report.receipt.kept,
            failed: report.failed,
            left_out: report.left_out,
            receipt: &report.receipt,
        });
    }

    /// Reports the complete transfer of the receiver.
    pub fn received(&self, report: &ReceiveReport) {
        self.done(&Totals {
            files: report.files + report.already_here,
            bytes_moved: report.bytes_moved,
            wire_bytes: report.wire_bytes,
            connections: report.connections,
            already_here: report.already_here,
            skipped: report.skipped,
            failed: report.failed,
            left_out: report.left_out,
            receipt: &report.receipt,
        });
        if !report.confirmed {
            let message = "everything is here, but the sender has not confirmed the receipt";
            self.reporter.note("", message);
        }
    }

    fn done(&self, totals: &Totals<'_>) {
        let accepted = self.lock().accepted;
        let seconds = accepted.map_or(0.0, |at| at.elapsed().as_secs_f64());
        let summary = self.summary(totals, seconds);
        let receipt = BASE32_NOPAD.encode(&totals.receipt.to_bytes()).to_ascii_lowercase();
        let done = Event::Done {
            files: totals.files,
            bytes: totals.receipt.bytes,
            bytes_moved: totals.bytes_moved,
            wire_bytes: totals.wire_bytes,
            connections: totals.connections,
            lanes: totals.connections,
            already_here: totals.already_here,
            skipped: totals.skipped,
            failed: totals.failed,
            left_out: totals.left_out,
            seconds,
            bytes_per_second: summary.rate(),
            receipt: &receipt,
            durability: durability_word(totals.receipt.durability()),
        };
        match self.is_only {
            true => self.reporter.last_event(&done),
            false => self.event(&done),
        }
        self.status(summary.line());
    }

    fn summary(&self, totals: &Totals<'_>, seconds: f64) -> Summary {
        let NarratorState { moved, already_here, here_bytes, .. } = *self.lock();
        let Totals { failed, bytes_moved, receipt, .. } = *totals;
        let role = self.role;
        let not_yet_on_disk = matches!(receipt.durability(), None | Some(Durability::NotAwaited));
        let summary = Summary {
            role,
            moved: 0,
            already_here: 0,
            bytes: 0,
            kept: 0,
            failed,
            bytes_moved,
            not_yet_on_disk,
            seconds,
        };
        match role {
            // Only the receiver knows the result of each file.
            Role::Sender => {
                let already_here = already_here.min(receipt.verified);
                let moved = receipt.verified - already_here;
                let (bytes, kept) = (receipt.bytes, receipt.kept);
                Summary { moved, already_here, bytes, kept, ..summary }
            }
            Role::Receiver => {
                let (bytes, kept) = (here_bytes, totals.skipped);
                Summary { moved, already_here, bytes, kept, ..summary }
            }
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

/// Returns the word for scripts.
pub fn durability_word(durability: Option<Durability>) -> &'static str {
    match durability {
        Some(Durability::OnDisk) => "on-disk",
        Some(Durability::NotAwaited) => "not-awaited",
        Some(Durability::CannotSync) => "cannot-sync",
        None => "unknown",
    }
}
