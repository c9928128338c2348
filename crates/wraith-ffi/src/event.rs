//! Events of a transfer, pulled one at a time.

use tokio::sync::Mutex;
use wraith::Event as LibraryEvent;

/// Result of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum FileStatus {
    /// Transferred and verified, in whole or from where an earlier transfer stopped.
    Done,
    /// The receiver already had this exact file.
    AlreadyHere,
    /// A different file has its path, and the conflict policy kept that one.
    Skipped,
    /// The file changed at the sender while it was read. Send it again.
    Changed,
    /// The sender could not read the file.
    Unreadable,
    /// The partial file of an earlier transfer did not match any more. Receive it again.
    Stale,
    /// The receiver could not move the file to its destination.
    Blocked,
}

impl From<wraith::FileStatus> for FileStatus {
    fn from(status: wraith::FileStatus) -> Self {
        use wraith::FileStatus as LibraryStatus;
        match status {
            LibraryStatus::Done => Self::Done,
            LibraryStatus::AlreadyHere => Self::AlreadyHere,
            LibraryStatus::Skipped => Self::Skipped,
            LibraryStatus::Changed => Self::Changed,
            LibraryStatus::Unreadable => Self::Unreadable,
            LibraryStatus::Stale => Self::Stale,
            LibraryStatus::Blocked => Self::Blocked,
        }
    }
}

/// A side of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum Role {
    /// The side that offers.
    Sender,
    /// The side that fetches.
    Receiver,
}

impl From<wraith::Role> for Role {
    fn from(role: wraith::Role) -> Self {
        match role {
            wraith::Role::Sender => Self::Sender,
            wraith::Role::Receiver => Self::Receiver,
        }
    }
}

/// Why a connection was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum LostReason {
    /// No packet arrived from the peer for some seconds.
    IdleTimeout,
    /// The peer did not answer the handshake.
    NoAnswer,
    /// Packets arrived, but no data.
    Stalled,
    /// The peer did not send a message of the transfer protocol in time.
    NoMessage,
    /// The path carries only packets that are too small.
    PathMtu,
    /// The peer ended the connection without a reason that ends the transfer.
    ByPeer,
    /// Any other reason.
    Other,
}

impl From<wraith::LostReason> for LostReason {
    fn from(why: wraith::LostReason) -> Self {
        use wraith::LostReason as LibraryReason;
        match why {
            LibraryReason::IdleTimeout => Self::IdleTimeout,
            LibraryReason::NoAnswer => Self::NoAnswer,
            LibraryReason::Stalled { .. } => Self::Stalled,
            LibraryReason::NoMessage { .. } => Self::NoMessage,
            LibraryReason::PathMtu => Self::PathMtu,
            LibraryReason::ClosedByPeer { .. } | LibraryReason::ReportedByPeer(_) => Self::ByPeer,
            _ => Self::Other,
        }
    }
}

/// An event of a transfer. Later versions may add kinds, so handle unknown ones.
#[derive(Clone, Debug, uniffi::Enum)]
#[non_exhaustive]
pub enum Event {
    /// A receiver proved that it has the code's words, and got the ticket.
    CodeUsed {
        /// Meeting place.
        place: String,
        /// NodeId of the receiver.
        peer: String,
    },
    /// A receiver tried the code with wrong words. The code is invalid from now on.
    CodeBurned {
        /// Meeting place.
        place: String,
    },
    /// A long code is available, in addition to the short code or instead of it.
    LongCode {
        /// The code.
        code: String,
    },
    /// The code has expired without a receiver.
    CodeExpired,
    /// A meeting place is unreachable; the node retries.
    PlaceLost {
        /// The meeting place.
        place: String,
        /// The reason.
        why: String,
    },
    /// A meeting place is reachable again.
    PlaceBack {
        /// The meeting place.
        place: String,
    },
    /// This side has used the code before; the transfer resumes.
    Resumed,
    /// The peer was found.
    PeerFound {
        /// Meeting place, or null if the peer was found at a known address.
        place: Option<String>,
    },
    /// Both sides have authenticated each other.
    Connected {
        /// NodeId of the peer.
        peer: String,
        /// Address of the peer.
        address: String,
    },
    /// The connection changed its network path, or stays on a relay for the reason in `why`.
    Path {
        /// NodeId of the peer.
        peer: String,
        /// Address of the peer on its current path.
        address: String,
        /// Kind of the path: loopback, lan, direct, relay or custom.
        path: String,
        /// Why no path better than the relay was found, or null if the path has changed.
        why: Option<String>,
    },
    /// The sender described its offer.
    Offered {
        /// Name of the first entry.
        name: String,
        /// Number of files.
        files: u64,
        /// Total size of the files, in bytes.
        bytes: u64,
    },
    /// The receiver accepted.
    Accepted,
    /// A file is finished.
    File {
        /// Path of the file in the offer, escaped for a terminal.
        path: String,
        /// Result.
        status: FileStatus,
        /// Size in bytes.
        bytes: u64,
        /// BLAKE3 hash of the content, or null if unknown.
        hash: Option<Vec<u8>>,
    },
    /// A warning that does not stop the transfer.
    Note {
        /// The affected path, or an empty string.
        path: String,
        /// Text of the warning.
        what: String,
    },
    /// The connection was lost. This side reconnects or waits for the peer.
    ConnectionLost {
        /// The reason.
        why: LostReason,
        /// The reason, as text.
        text: String,
        /// Seconds until this side gives up.
        seconds_left: u64,
    },
    /// A user or program stopped the transfer. It was not the network.
    Stopped {
        /// The side that stopped.
        by: Role,
    },
    /// A peer used a ticket that a code had delivered to another machine. It was rejected.
    UnauthorizedPeer,
    /// A receiver reconnected. The new connection replaces the earlier one.
    ReceiverReconnected,
    /// A listener that asks the user refused a stranger's offer without asking, because there were
    /// too many.
    RefusedUnread {
        /// Number of refused offers since the listener started.
        total: u64,
    },
    /// The contacts of a listener changed.
    ContactsChanged {
        /// New number of contacts.
        contacts: u64,
    },
    /// The receiver previewed the offer and postponed its answer; the offer stays valid.
    OfferPostponed,
    /// The code accepts no new receivers any more; running transfers continue.
    ClosedToNewReceivers {
        /// The reason.
        why: String,
    },
    /// A receiver has confirmed all files that could be sent.
    Sent {
        /// NodeId of the receiver.
        receiver: String,
        /// Bytes of the files that it has now.
        bytes: u64,
    },
    /// One of several receivers has all files; the offer waits for the next one.
    Served {
        /// Number of receivers that have all files.
        done: u32,
        /// Number of wanted receivers, or null if unlimited.
        wanted: Option<u32>,
    },
    /// One of several receivers did not get all files. The others are not affected.
    ReceiverFailed {
        /// The reason.
        why: String,
    },
    /// This reader was too slow, and events were dropped.
    Lagged {
        /// Number of dropped events.
        events: u64,
    },
    /// An event without its own kind in this interface.
    Other {
        /// Description.
        what: String,
    },
    /// Last event: the transfer is complete and confirmed.
    Done,
    /// Last event: the transfer failed. `finished()` throws its error.
    Failed {
        /// The reason.
        why: String,
    },
}

impl From<LibraryEvent> for Event {
    fn from(event: LibraryEvent) -> Self {
        let text = |text: &dyn ToString| text.to_string();
        let place = |at| match at {
            wraith::FoundAt::Address => None,
            wraith::FoundAt::Place(place) => Some(place.to_string()),
        };
        match event {
            LibraryEvent::CodeUsed { place, peer } => {
                Self::CodeUsed { place: text(&place), peer: text(&peer) }
            }
            LibraryEvent::CodeBurned(place) => Self::CodeBurned { place: text(&place) },
            LibraryEvent::LongCode(code) => Self::LongCode { code: text(&code) },
            LibraryEvent::CodeExpired => Self::CodeExpired,
            LibraryEvent::PlaceLost { place, why } => {
                Self::PlaceLost { place: text(&place), why: text(&why) }
            }
            LibraryEvent::PlaceBack(place) => Self::PlaceBack { place: text(&place) },
            LibraryEvent::Resumed => Self::Resumed,
            LibraryEvent::PeerFound(at) => Self::PeerFound { place: place(at) },
            LibraryEvent::Connected { peer, remote, .. } => {
                Self::Connected { peer: text(&peer), address: text(&remote) }
            }
            LibraryEvent::Path { peer, remote, route, why } => Self::Path {
                peer: text(&peer),
                address: text(&remote),
                path: route.kind.name().to_owned(),
                why,
            },
            LibraryEvent::Offered(offer) => {
                Self::Offered { name: offer.name, files: offer.files, bytes: offer.bytes }
            }
            LibraryEvent::Accepted => Self::Accepted,
            LibraryEvent::File { path, status, bytes, root, .. } => {
                Self::File { path, status: status.into(), bytes, hash: root.map(Vec::from) }
            }
            LibraryEvent::Note { path, what } => Self::Note { path, what },
            LibraryEvent::StateNotStored(what) => Self::Note { path: String::new(), what },
            LibraryEvent::ConnectionLost { why, seconds_left } => {
                Self::ConnectionLost { text: text(&why), why: why.into(), seconds_left }
            }
            LibraryEvent::Stopped { by, .. } => Self::Stopped { by: by.into() },
            LibraryEvent::UnauthorizedPeer => Self::UnauthorizedPeer,
            LibraryEvent::ReceiverReconnected => Self::ReceiverReconnected,
            LibraryEvent::ClocksDiffer { peer, seconds } => {
                let what = LibraryEvent::clocks_differ_text(peer, seconds);
                Self::Note { path: String::new(), what }
            }
            LibraryEvent::RefusedUnread { total } => Self::RefusedUnread { total },
            LibraryEvent::ContactsChanged(contacts) => {
                Self::ContactsChanged { contacts: contacts as u64 }
            }
            LibraryEvent::OfferPostponed => Self::OfferPostponed,
            LibraryEvent::ClosedToNewReceivers(error) => {
                Self::ClosedToNewReceivers { why: text(&error) }
            }
            LibraryEvent::Sent { report } => {
                Self::Sent { receiver: text(&report.receiver), bytes: report.receipt.bytes }
            }
            LibraryEvent::Served { done, of } => Self::Served { done, wanted: of },
            LibraryEvent::ReceiverFailed(error) => Self::ReceiverFailed { why: text(&error) },
            LibraryEvent::Lagged(events) => Self::Lagged { events },
            LibraryEvent::Done => Self::Done,
            LibraryEvent::Failed(error) => Self::Failed { why: text(&error) },
            other => Self::Other { what: format!("{other:?}") },
        }
    }
}

/// A stream of events. Each event goes to one of its concurrent readers.
#[derive(Debug)]
pub(crate) struct EventReader(Mutex<wraith::Events>);

impl EventReader {
    pub fn new(events: wraith::Events) -> Self {
        Self(Mutex::new(events))
    }

    /// Returns the next event, or `None` after the last one.
    pub async fn next(&self) -> Option<Event> {
        self.0.lock().await.next().await.map(Event::from)
    }
}
