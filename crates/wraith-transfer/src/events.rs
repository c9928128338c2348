//! What a caller is told of a running transfer.
//!
//! [`crate::Progress`] is polled; [`Events`] is called for things that happen once, or once for each file, from whatever
//! thread they happen on.

use std::fmt::Display;

use wraith_crypto::NodeId;
use wraith_files::{Change, Entry, RelPath, Root, Tree};
use wraith_transport::{Addr, Suite};

use crate::exception::{Exception, FileStatus};
use crate::message::Offer;
use crate::receipt::Receipt;

/// What an entry of the offer is in the target folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InPlace<'a> {
    /// A file, verified now, on an earlier connection, or there before and the same: its number and root are what the receipt
    /// covers.
    File { bytes: u64, entry: u32, root: (Tree, Root) },
    /// A folder.
    Folder,
    /// A symbolic link.
    Link { target: &'a [u8] },
    /// Nothing of ours, for this reason, which the receipt covers; and with it the root, if the sender has said it.
    Absent { bytes: u64, entry: u32, exception: Exception, root: Option<[u8; 32]> },
}

/// Something that happened.
#[non_exhaustive]
#[allow(missing_debug_implementations, reason = "it borrows what only knows how to be shown")]
pub enum Event<'a> {
    /// Both sides have said Hello (and the sender knows the secret). `instance` tells runs of a receiver apart, where it says.
    Connected { peer: NodeId, remote: Addr, suite: Suite, instance: Option<u64> },
    /// Sender: the offer went out. Receiver: it came, before `decide` is asked.
    Offer(&'a Offer),
    /// The receiver accepted.
    Accepted,
    /// A file is settled. `path` is the path in the manifest, escaped for a terminal; `root` its root where known, which is
    /// its BLAKE3 only in the tree of that.
    /// `change` is what happened to it at the sender, where that is why it did not arrive.
    File {
        path: &'a dyn Display,
        status: FileStatus,
        bytes: u64,
        root: Option<(Tree, Root)>,
        change: Option<Change>,
    },
    /// Sender: an entry of the manifest, in the order of their numbers, from 0.
    Entry { number: u32, entry: &'a Entry },
    /// Sender: the content of this file was sent, or the receiver has it.
    Root { number: u32, root: [u8; 32] },
    /// Sender: the receiver does not have this entry.
    Excepted { number: u32, exception: Exception },
    /// Receiver: an entry stands in the target folder under this path, which a conflict may have made another than its own; or
    /// does not.
    InPlace { path: &'a RelPath, what: InPlace<'a> },
    /// Something the user should know but that does not stop the transfer (a name in use, a folder that was moved).
    Note { path: &'a dyn Display, what: &'a dyn Display },
    /// Sender: something of the tree is no part of the transfer. `special`: a socket, pipe or device, which has no content.
    LeftOut { path: &'a dyn Display, what: &'a dyn Display, special: bool },
    /// The receipt is signed (receiver) or verified (sender).
    Done { receipt: &'a Receipt },
}

/// Told what happens. Called from worker threads, often concurrently; must not block for long.
pub trait Events: Send + Sync {
    /// One event.
    fn event(&self, event: Event<'_>);
}

/// Ignores everything.
impl Events for () {
    fn event(&self, _: Event<'_>) {}
}

impl<F: Fn(Event<'_>) + Send + Sync> Events for F {
    fn event(&self, event: Event<'_>) {
        self(event);
    }
}
