//! Events of offers, fetches and listeners, and the [`Observer`] trait. `event_publisher` distributes
//! them.

use std::path::PathBuf;
use std::sync::Arc;

use wraith_crypto::NodeId;
use wraith_discovery::{Code, PlaceError, PlaceName};
use wraith_files::{Change, Tree};
use wraith_transfer::{FileStatus, LostReason, Role, SendReport};

use crate::{Addr, Error, Route, Suite};

/// Summary of an offer, as the sender declares it before any data moves.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferInfo {
    /// The first name, escaped for a terminal. For display only.
    pub name: String,
    /// Number of regular files.
    pub files: u64,
    /// Number of folders.
    pub folders: u64,
    /// Number of symbolic links.
    pub links: u64,
    /// Total bytes of all files.
    pub bytes: u64,
    /// Bytes of the largest file.
    pub largest: u64,
    /// Entries of the tree that cannot be sent. The other counts do not include them.
    pub left_out: u64,
    /// The offer is one byte stream. If the size is unknown, `bytes` is 0.
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

/// Where the two sides found each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundAt {
    /// At an address known beforehand.
    Address,
    /// At a meeting place.
    Place(PlaceName),
}

impl FoundAt {
    /// Returns the meeting place. `None` for an address.
    pub fn place(&self) -> Option<&PlaceName> {
        match self {
            Self::Address => None,
            Self::Place(place) => Some(place),
        }
    }
}

/// An event of an offer, a fetch or a listener. Later versions add variants.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Event {
    /// A peer proved the words of the code and received the ticket, which is valid for that peer
    /// only.
    CodeUsed {
        /// The meeting place.
        place: PlaceName,
        /// The NodeId that the peer claims; only that identity can fetch.
        peer: NodeId,
    },
    /// A peer tried the code with wrong words at this place. The code is burned.
    CodeBurned(PlaceName),
    /// A long code is available, beside the short one or instead of it. It needs no common network
    /// and no server.
    LongCode(Code),
    /// There is no short code. A long code is being made at these stores, which takes some seconds.
    /// Nothing can be shown before.
    MakingLongCode(Vec<PlaceName>),
    /// No long code can be made, for these reasons: it would wait nowhere.
    NoLongCode(Vec<(PlaceName, PlaceError)>),
    /// The code expired before a peer used it.
    CodeExpired,
    /// This place is currently unreachable, so no peer can arrive through it. The node keeps
    /// retrying.
    PlaceLost {
        /// The place.
        place: PlaceName,
        /// The reason.
        why: PlaceError,
    },
    /// This place is reachable again.
    PlaceBack(PlaceName),
    /// This side has used the code before. It continues with the ticket from that time.
    Resumed,
    /// The other side was found.
    PeerFound(FoundAt),
    /// Both sides are authenticated, and the peer is authorized for the transfer.
    Connected {
        /// The NodeId of the peer.
        peer: NodeId,
        /// The address of the peer.
        remote: Addr,
        /// The cipher suite for packets. The keys come from X25519 and ML-KEM-768 together
        /// ([`KEY_AGREEMENT`](crate::KEY_AGREEMENT)).
        suite: Suite,
    },
    /// The connection moved to another path, or it stays on a relay for the reason in `why`.
    Path {
        /// The NodeId of the peer.
        peer: NodeId,
        /// The address of the peer.
        remote: Addr,
        /// The kind of path.
        route: Route,
        /// Why no path better than the relay was found, as text; `None` if the path has changed.
        why: Option<String>,
    },
    /// The offer, as the sender declares it.
    Offered(OfferInfo),
    /// The receiver accepted the offer.
    Accepted,
    /// A file is settled: transferred, skipped or failed.
    File {
        /// The path in the offer, escaped for a terminal.
        path: String,
        /// The result for this file.
        status: FileStatus,
        /// The size in bytes.
        bytes: u64,
        /// The BLAKE3 hash of the content, if it is known.
        root: Option<[u8; 32]>,
        /// Replaces `root` for a file that declares 16 GiB of holes or more: the root of its
        /// position-free tree, which is not its BLAKE3 hash.
        position_free_root: Option<[u8; 32]>,
        /// The change at the sender, if that is the reason why the file did not arrive.
        change: Option<Change>,
    },
    /// A remark that stops nothing.
    Note {
        /// The path that the remark is about, escaped for a terminal.
        path: String,
        /// The remark as text.
        what: String,
    },
    /// The state of this run cannot be stored, for the reason in this text. A later run cannot
    /// resume it.
    StateNotStored(String),
    /// The connection was lost. This side searches for the peer again, or waits for it.
    ConnectionLost {
        /// The reason.
        why: LostReason,
        /// Seconds until this side gives up.
        seconds_left: u64,
    },
    /// A user or program stopped the transfer. It was not the network. If one of several receivers
    /// stops after it has accepted, [`Self::ReceiverFailed`] reports that instead.
    Stopped {
        /// The side that stopped.
        by: Role,
        /// Seconds for which the offer keeps the place of the receiver that stopped
        /// ([`OfferBuilder::keep_place`](crate::OfferBuilder::keep_place)). `None`: this side ends,
        /// or waits for another receiver.
        seconds_left: Option<u64>,
    },
    /// A peer used a ticket that a code had delivered to another machine. The peer was rejected.
    UnauthorizedPeer,
    /// A listener with [`AcceptFilter::AskUser`](crate::AcceptFilter::AskUser) refused a stranger's
    /// offer without asking, because there were too many.
    RefusedUnread {
        /// Number of refused offers since the listener started.
        total: u64,
    },
    /// A peer with an access key got no answer, because its message shows a time too far from this
    /// machine's clock. Published at most once per peer and hour. An old message that a third party
    /// repeats also causes it.
    ClocksDiffer {
        /// The contact; `None` if the peer has not shown its identity.
        peer: Option<NodeId>,
        /// The time of the message minus that of this machine, in seconds.
        seconds: i64,
    },
    /// The receiver postponed its answer; the offer stays valid.
    OfferPostponed,
    /// The code admits no further receivers, for this reason. Receivers that are already connected
    /// are still served.
    ClosedToNewReceivers(Error),
    /// A receiver confirmed everything that could be sent to it.
    Sent {
        /// The report of the transfer.
        report: Arc<SendReport>,
    },
    /// The receiver's receipt was written to this file ([`crate::OfferBuilder::receipt`]).
    ReceiptStored(PathBuf),
    /// The receipt could not be written, for this reason.
    ReceiptNotStored(String),
    /// One of several receivers has everything. The offer waits for the next one.
    Served {
        /// Number of receivers that have everything.
        done: u32,
        /// Number of receivers wanted; `None` if there is no limit.
        of: Option<u32>,
    },
    /// A receiver reconnected. The new connection replaces the earlier one.
    ReceiverReconnected,
    /// The contacts of a listener changed. The value is their new number.
    ContactsChanged(usize),
    /// One of several receivers did not get everything. The others are still served.
    ReceiverFailed(Error),
    /// The reader of this stream was too slow and missed this many events.
    Lagged(u64),
    /// Final event: everything is done and confirmed.
    Done,
    /// Final event: the operation failed.
    Failed(Error),
}

impl Event {
    /// Turns an event about this machine into a [`Self::Note`], for bindings that have no type of
    /// their own for it. Returns every other event unchanged.
    #[must_use]
    pub fn or_note(self) -> Self {
        let what = match self {
            Self::StateNotStored(why) => why,
            Self::ClocksDiffer { peer, seconds } => {
                let peer = peer.map_or("a peer".to_owned(), |peer| peer.to_string());
                let direction = if seconds < 0 { "behind" } else { "ahead of" };
                let difference = seconds.unsigned_abs();
                format!(
                    "{peer} got no answer: its clock is {difference} s {direction} this machine's"
                )
            }
            other => return other,
        };
        Self::Note { path: String::new(), what }
    }

    /// Returns true for [`Self::Done`] and [`Self::Failed`]. No event follows.
    pub fn is_last(&self) -> bool {
        matches!(self, Self::Done | Self::Failed(_))
    }

    /// Converts a transfer event to its owned form. Returns `None` for events that only an
    /// [`Observer`] receives.
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

/// Receives every event at once. It is called from several threads, often concurrently, and must
/// not block for long.
pub trait Observer: Send + Sync + 'static {
    /// Handles an event. `receiver` identifies one of several receivers.
    fn event(&self, receiver: Option<u64>, event: &Event);

    /// Handles an event of a transfer in its borrowed form, with all details and without a copy. By
    /// default, passes an owned [`Event`] to [`event`](Self::event).
    fn transfer_event(&self, receiver: Option<u64>, event: &wraith_transfer::Event<'_>) {
        if let Some(event) = Event::of(event) {
            self.event(receiver, &event);
        }
    }
}
