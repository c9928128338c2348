//! Events of a running transfer, reported to the caller.
//!
//! [`crate::Progress`] is polled. [`Events`] is called for things that happen once, or once per
//! file, on the thread where they happen.

use std::fmt::Display;

use wraith_crypto::NodeId;
use wraith_files::{Change, Entry, RelPath, Root, Tree};
use wraith_transport::{Addr, Suite};

use crate::exception::{Exception, FileStatus};
use crate::message::Offer;
use crate::receipt::Receipt;

/// State of an offered entry in the target folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace<'a> {
    /// A file that was verified now or on an earlier connection, or that was already there with the
    /// same content. The receipt covers its number and root.
    File { bytes: u64, entry: u32, root: (Tree, Root) },
    /// A folder.
    Folder,
    /// A symbolic link.
    Link { target: &'a [u8] },
    /// The receiver does not have the entry. The receipt covers the reason. `root` is set if the
    /// sender has reported it.
    Absent { bytes: u64, entry: u32, exception: Exception, root: Option<[u8; 32]> },
}

/// An event of a transfer.
#[non_exhaustive]
#[allow(missing_debug_implementations, reason = "it borrows what only knows how to be shown")]
pub enum Event<'a> {
    /// Both sides have sent Hello, and the sender has checked the secret. `instance` distinguishes
    /// runs of a receiver, if the receiver sends it.
    Connected { peer: NodeId, remote: Addr, suite: Suite, instance: Option<u64> },
    /// Sender: the offer was sent. Receiver: it has arrived; `decide` is called next.
    Offer(&'a Offer),
    /// The receiver accepted the offer.
    Accepted,
    /// The result of a file is final. `path` is its path in the manifest, escaped for a terminal.
    /// `root` is its root if known, which equals its BLAKE3 hash only in the tree of that name.
    /// `change` is the file's change at the sender, if that is the reason for its failure.
    File {
        path: &'a dyn Display,
        status: FileStatus,
        bytes: u64,
        root: Option<(Tree, Root)>,
        change: Option<Change>,
    },
    /// Sender: an entry of the manifest, in the order of entry numbers, from 0.
    Entry { number: u32, entry: &'a Entry },
    /// Sender: the content of this file was sent, or the receiver already has it.
    Root { number: u32, root: [u8; 32] },
    /// Sender: the receiver does not have this entry.
    Excepted { number: u32, exception: Exception },
    /// Receiver: the final state of an entry in the target folder under `path`. After a conflict,
    /// the path may differ from the offered one.
    InPlace { path: &'a RelPath, what: InPlace<'a> },
    /// A note for the user that does not stop the transfer (a name in use, a folder that was
    /// moved).
    Note { path: &'a dyn Display, what: &'a dyn Display },
    /// Sender: an object of the tree is skipped. `special`: a socket, pipe or device, which has no
    /// content.
    LeftOut { path: &'a dyn Display, what: &'a dyn Display, special: bool },
    /// The receipt is signed (receiver) or verified (sender).
    Done { receipt: &'a Receipt },
}

/// Receives events. Called from worker threads, often concurrently; must not block for long.
pub trait Events: Send + Sync {
    /// Handles one event.
    fn event(&self, event: Event<'_>);
}

/// Ignores all events.
impl Events for () {
    fn event(&self, _: Event<'_>) {}
}

impl<F: Fn(Event<'_>) + Send + Sync> Events for F {
    fn event(&self, event: Event<'_>) {
        self(event);
    }
}
