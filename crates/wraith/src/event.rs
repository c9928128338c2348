//! What happens while something is sent or received, and who is told at once. How it gets to observers and streams is `hub`.

use std::path::PathBuf;
use std::sync::Arc;

use wraith_crypto::NodeId;
use wraith_discovery::{Code, Place, PlaceError};
use wraith_files::{Change, Tree};
use wraith_transfer::{FileStatus, SendReport};

use crate::{Addr, Error, Route, Suite};

/// What is offered, as the sender says before anything moves.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferInfo {
    /// The first name, escaped for a terminal; for show only.
    pub name: String,
    /// Regular files.
    pub files: u64,
    /// Folders.
    pub folders: u64,
    /// Symbolic links.
    pub links: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes of the largest file.
    pub largest: u64,
    /// Entries of the tree that cannot be sent and are in none of these counts.
    pub left_out: u64,
    /// It is one stream of bytes, whose size is 0 where it is not known.
    pub is_stream: bool,
}

impl From<&wraith_transfer::Offer> for OfferInfo {
    fn from(offer: &wraith_transfer::Offer) -> Self {
        Self {
            name: offer.name.clone(),
            files: offer.files,
            folders: offer.dirs,
            links: offer.links,
            bytes: offer.bytes,
            largest: offer.largest,
            left_out: offer.left_out.unwrap_or(0),
            is_stream: offer.stream.unwrap_or(false),
        }
    }
}

/// Where two sides found each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundAt {
    /// At an address that was known.
    Address,
    /// At a meeting place.
    Place(Place),
}

/// Something that happened. Variants get added.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Event {
    /// Somebody proved the words of the code; the ticket is theirs, and good for nobody else.
    CodeUsed {
        /// Where.
        place: Place,
        /// Who it says it is; only that identity can fetch.
        peer: NodeId,
    },
    /// Somebody tried the code with wrong words at this place: it is burned.
    CodeBurned(Place),
    /// There is a long code beside the short one, or in its place: it needs no common network and no server.
    LongCode(Code),
    /// The code's time is up, and nobody came.
    CodeExpired,
    /// Nobody can come from this place at present; it is tried again.
    PlaceLost {
        /// The place.
        place: Place,
        /// Why.
        why: PlaceError,
    },
    /// Somebody can come from this place again.
    PlaceBack(Place),
    /// The code was used before, by this side; it goes on with what it brought.
    Resumed,
    /// The other side was found.
    Met(FoundAt),
    /// Both sides have authenticated each other, and the peer may have what is offered.
    Connected {
        /// Who.
        peer: NodeId,
        /// Where.
        remote: Addr,
        /// What packets are sealed with; the keys come from X25519 and ML-KEM-768 together
        /// ([`KEY_AGREEMENT`](crate::KEY_AGREEMENT)).
        suite: Suite,
    },
    /// The session goes another way from now on; or it still goes through a relay, and why.
    Path {
        /// Who.
        peer: NodeId,
        /// Where.
        remote: Addr,
        /// Which way that is.
        route: Route,
        /// Why nothing better than the relay was found, in words; `None` where the path has changed.
        why: Option<String>,
    },
    /// What is offered.
    Offered(OfferInfo),
    /// The receiver accepted.
    Accepted,
    /// A file is settled.
    File {
        /// Its path in the offer, escaped for a terminal.
        path: String,
        /// What became of it.
        status: FileStatus,
        /// Its bytes.
        bytes: u64,
        /// The BLAKE3 of its content, where it is known.
        root: Option<[u8; 32]>,
        /// Of a file of which its sender says that it has 16 GiB of holes or more, in place of `root`: the root of its
        /// position-free tree, which is not its BLAKE3.
        position_free_root: Option<[u8; 32]>,
        /// What had happened to it at the sender, where that is why it did not arrive.
        change: Option<Change>,
    },
    /// Something to know that stops nothing.
    Note {
        /// The path it is about, escaped.
        path: String,
        /// What, in words.
        what: String,
    },
    /// Nothing of this run can be remembered, and why in words: the same another time does not continue it.
    Unremembered(String),
    /// The connection was lost; the other side is looked for again, or waited for.
    Lost {
        /// How, in words.
        why: String,
        /// How long this side goes on trying.
        seconds_left: u64,
    },
    /// Somebody came with a ticket that a code brought to another machine, and got nothing.
    Stranger,
    /// A listener that asks has refused one more offer of a stranger without asking, because there were too many.
    RefusedUnread {
        /// So many since it began.
        total: u64,
    },
    /// The receiver has only looked at the offer, which stays good.
    OnlyLooked,
    /// Nobody new can come with the code, for this reason; who is being served still is.
    NobodyNew(Error),
    /// A receiver has confirmed everything it could be sent.
    Sent {
        /// The transfer's own report.
        report: Arc<SendReport>,
        /// Bytes settled on its last connection.
        bytes: u64,
    },
    /// The receiver's receipt is in this file now ([`crate::OfferBuilder::receipt`]).
    ReceiptKept(PathBuf),
    /// It could not be written, for this reason.
    ReceiptLost(String),
    /// One of several receivers has everything; the next is waited for.
    Served {
        /// Receivers that have everything.
        done: u32,
        /// How many are wanted, if there is an end.
        of: Option<u32>,
    },
    /// A receiver came back on another connection, which is served in place of its earlier one.
    Replaced,
    /// The contacts of a listener have changed; there are so many now.
    ContactsChanged(usize),
    /// One of several receivers did not get everything; the others are served all the same.
    ReceiverFailed(Error),
    /// The reader of this stream was too slow for so many events.
    Lagged(u64),
    /// The end: everything is done and confirmed. Nothing follows.
    Done,
    /// The end: it failed. Nothing follows.
    Failed(Error),
}

impl Event {
    pub(crate) fn is_last(&self) -> bool {
        matches!(self, Self::Done | Self::Failed(_))
    }

    /// The owned form of an event of the transfer; `None` for what only an [`Observer`] is told.
    pub(crate) fn of(event: &wraith_transfer::Event<'_>) -> Option<Self> {
        use wraith_transfer::Event as Transfer;
        Some(match event {
            Transfer::Connected { peer, remote, suite, .. } => {
                Self::Connected { peer: *peer, remote: remote.clone(), suite: *suite }
            }
            Transfer::Offer(offer) => Self::Offered((*offer).into()),
            Transfer::Accepted => Self::Accepted,
            Transfer::File { path, status, bytes, root, change, .. } => {
                let root_of = |tree| root.filter(|(of, _)| *of == tree).map(|(_, root)| root);
                Self::File {
                    path: path.to_string(),
                    status: *status,
                    bytes: *bytes,
                    root: root_of(Tree::Blake3),
                    position_free_root: root_of(Tree::PositionFree),
                    change: *change,
                }
            }
            Transfer::Note { path, what } | Transfer::LeftOut { path, what, .. } => {
                Self::Note { path: path.to_string(), what: what.to_string() }
            }
            _ => return None,
        })
    }
}

/// Told everything as it happens. Called from several threads, often at the same time; it must not block for long.
pub trait Observer: Send + Sync + 'static {
    /// Something happened. `receiver` says to which of several receivers.
    fn event(&self, receiver: Option<u64>, event: &Event);

    /// Something happened within a transfer, with everything that is known of it and nothing copied. Told as an owned
    /// [`Event`] unless this is overridden.
    fn transfer_event(&self, receiver: Option<u64>, event: &wraith_transfer::Event<'_>) {
        if let Some(event) = Event::of(event) {
            self.event(receiver, &event);
        }
    }
}
