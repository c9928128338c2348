// Every event of a transfer, once for all languages: the name, documentation and fields of its
// variant in Python, Kotlin and Swift; its number in C, and the field of `wraith_event_t` in front
// of each value. `crates/wraith-ffi/src/event.rs` and `crates/wraith-c/src/files/event.rs` include
// this file, and each defines the macros. A number is never changed or used again.
//
// | in C | value |
// |---|---|
// | `text`, `path` | text; empty for none |
// | `address` | an address, as `text` |
// | `peer` | a NodeId |
// | `count`, `bytes` | a number |
// | `detail` | one of the values below, or a number; 0 for none |
// | `error` | an error: its status, and its message as `text` |
// | `nowhere` | only the other languages have it |
values! {
    /// Result of one file.
    FileStatus wraith_file_status_t {
        /// Transferred and verified, in whole or from where an earlier transfer stopped.
        Done WRAITH_FILE_DONE = 0: wraith::FileStatus::Done,
        /// The receiver already had this exact file.
        AlreadyHere WRAITH_FILE_ALREADY_HERE = 1: wraith::FileStatus::AlreadyHere,
        /// A different file has its path, and the conflict policy kept that one.
        Skipped WRAITH_FILE_SKIPPED = 2: wraith::FileStatus::Skipped,
        /// The file changed at the sender while it was read. Send it again.
        Changed WRAITH_FILE_CHANGED = 3: wraith::FileStatus::Changed,
        /// The sender could not read the file.
        Unreadable WRAITH_FILE_UNREADABLE = 4: wraith::FileStatus::Unreadable,
        /// The partial file of an earlier transfer did not match any more. Receive it again.
        Stale WRAITH_FILE_STALE = 5: wraith::FileStatus::Stale,
        /// The receiver could not move the file to its destination.
        Blocked WRAITH_FILE_BLOCKED = 6: wraith::FileStatus::Blocked,
    }
    /// A side of a transfer.
    Role wraith_role_t {
        /// The side that offers.
        Sender WRAITH_SENDER = 1: wraith::Role::Sender,
        /// The side that fetches.
        Receiver WRAITH_RECEIVER = 2: wraith::Role::Receiver,
    }
    /// Why a connection was lost.
    LostReason wraith_lost_reason_t {
        /// No packet arrived from the peer for some seconds.
        IdleTimeout WRAITH_LOST_IDLE_TIMEOUT = 1: wraith::LostReason::IdleTimeout,
        /// The peer did not answer the handshake.
        NoAnswer WRAITH_LOST_NO_ANSWER = 2: wraith::LostReason::NoAnswer,
        /// Packets arrived, but no data.
        Stalled WRAITH_LOST_STALLED = 3: wraith::LostReason::Stalled { .. },
        /// The peer did not send a message of the transfer protocol in time.
        NoMessage WRAITH_LOST_NO_MESSAGE = 4: wraith::LostReason::NoMessage { .. },
        /// The path carries only packets that are too small.
        PathMtu WRAITH_LOST_PATH_MTU = 5: wraith::LostReason::PathMtu,
        /// The peer ended the connection without a reason that ends the transfer.
        ByPeer WRAITH_LOST_BY_PEER = 6:
            wraith::LostReason::ClosedByPeer { .. } | wraith::LostReason::ReportedByPeer(_),
        /// Any other reason.
        Other WRAITH_LOST_OTHER = 0: _,
    }
}

events! {
    everywhere {
        /// A receiver proved that it has the code's words, and got the ticket.
        CodeUsed WRAITH_EVENT_CODE_USED = 1, wraith::Event::CodeUsed { place, peer } => {
            /// Meeting place.
            text place: String = place.to_string(),
            /// NodeId of the receiver.
            peer peer: String = peer,
        },
        /// A receiver tried the code with wrong words. The code is invalid from now on.
        CodeBurned WRAITH_EVENT_CODE_BURNED = 2, wraith::Event::CodeBurned(place) => {
            /// Meeting place.
            text place: String = place.to_string(),
        },
        /// A long code is available, in addition to the short code or instead of it.
        LongCode WRAITH_EVENT_LONG_CODE = 3, wraith::Event::LongCode(code) => {
            /// The code.
            text code: String = code.to_string(),
        },
        /// The code has expired without a receiver.
        CodeExpired WRAITH_EVENT_CODE_EXPIRED = 4, wraith::Event::CodeExpired,
        /// A meeting place is unreachable; the node retries.
        PlaceLost WRAITH_EVENT_PLACE_LOST = 5, wraith::Event::PlaceLost { place, why } => {
            /// The meeting place.
            path place: String = place.to_string(),
            /// The reason.
            text why: String = why.to_string(),
        },
        /// A meeting place is reachable again.
        PlaceBack WRAITH_EVENT_PLACE_BACK = 6, wraith::Event::PlaceBack(place) => {
            /// The meeting place.
            path place: String = place.to_string(),
        },
        /// This side has used the code before; the transfer resumes.
        Resumed WRAITH_EVENT_RESUMED = 21, wraith::Event::Resumed,
        /// The peer was found.
        PeerFound WRAITH_EVENT_PEER_FOUND = 7, wraith::Event::PeerFound(at) => {
            /// Meeting place, or null if the peer was found at a known address.
            nowhere place: Option<String> = at.place().map(ToString::to_string),
        },
        /// Both sides have authenticated each other.
        Connected WRAITH_EVENT_CONNECTED = 8, wraith::Event::Connected { peer, remote, .. } => {
            /// NodeId of the peer.
            peer peer: String = peer,
            /// Address of the peer.
            address address: String = remote,
        },
        /// The connection changed its network path, or stays on a relay for the given reason.
        Path WRAITH_EVENT_PATH = 9, wraith::Event::Path { peer, remote, route, why } => {
            /// NodeId of the peer.
            peer peer: String = peer,
            /// Address of the peer on its current path.
            address address: String = remote,
            /// Kind of the path: loopback, lan, direct, relay or custom.
            nowhere path: String = route.kind.name().to_owned(),
            /// Why no path better than the relay was found, or null if the path has changed.
            path why: Option<String> = why.clone(),
        },
        /// The sender described its offer.
        Offered WRAITH_EVENT_OFFERED = 10, wraith::Event::Offered(offer) => {
            /// Name of the first entry.
            path name: String = offer.name.clone(),
            /// Number of files.
            count files: u64 = offer.files,
            /// Total size of the files, in bytes.
            bytes bytes: u64 = offer.bytes,
        },
        /// The receiver accepted.
        Accepted WRAITH_EVENT_ACCEPTED = 11, wraith::Event::Accepted,
        /// A file is finished.
        File WRAITH_EVENT_FILE = 12, wraith::Event::File { path, status, bytes, root, .. } => {
            /// Path of the file in the offer, escaped for a terminal.
            path path: String = path.clone(),
            /// Result.
            detail status: FileStatus = status,
            /// Size in bytes.
            bytes bytes: u64 = *bytes,
            /// BLAKE3 hash of the content, or null if unknown.
            nowhere hash: Option<Vec<u8>> = root.map(Vec::from),
        },
        /// A warning that does not stop the transfer.
        Note WRAITH_EVENT_NOTE = 13, wraith::Event::Note { path, what } => {
            /// The affected path, or an empty string.
            path path: String = path.clone(),
            /// Text of the warning.
            text what: String = what.clone(),
        },
        /// The connection was lost. This side reconnects or waits for the peer.
        ConnectionLost WRAITH_EVENT_CONNECTION_LOST = 15,
            wraith::Event::ConnectionLost { why, seconds_left } => {
            /// The reason.
            detail why: LostReason = why,
            /// The reason, as text.
            text text: String = why.to_string(),
            /// Seconds until this side gives up.
            count seconds_left: u64 = *seconds_left,
        },
        /// A user or program stopped the transfer. It was not the network.
        Stopped WRAITH_EVENT_STOPPED = 27, wraith::Event::Stopped { by, .. } => {
            /// The side that stopped.
            detail by: Role = by,
        },
        /// A peer used a ticket that a code had delivered to another machine. It was rejected.
        UnauthorizedPeer WRAITH_EVENT_UNAUTHORIZED_PEER = 22, wraith::Event::UnauthorizedPeer,
        /// A receiver reconnected. The new connection replaces the earlier one.
        ReceiverReconnected WRAITH_EVENT_RECEIVER_RECONNECTED = 25,
            wraith::Event::ReceiverReconnected,
        /// The receiver previewed the offer and postponed its answer; the offer stays valid.
        OfferPostponed WRAITH_EVENT_OFFER_POSTPONED = 17, wraith::Event::OfferPostponed,
        /// The code accepts no new receivers any more; running transfers continue.
        ClosedToNewReceivers WRAITH_EVENT_CLOSED_TO_NEW_RECEIVERS = 23,
            wraith::Event::ClosedToNewReceivers(error) => {
            /// The reason.
            text why: String = error.to_string(),
        },
        /// A receiver has confirmed all files that could be sent.
        Sent WRAITH_EVENT_SENT = 16, wraith::Event::Sent { report } => {
            /// NodeId of the receiver.
            peer receiver: String = report.receiver,
            /// Bytes of the files that it has now.
            bytes bytes: u64 = report.receipt.bytes,
        } c {
            /// Number of the files that it has now.
            count = report.receipt.verified,
        },
        /// One of several receivers has all files; the offer waits for the next one.
        Served WRAITH_EVENT_SERVED = 24, wraith::Event::Served { done, of } => {
            /// Number of receivers that have all files.
            count done: u32 = *done,
            /// Number of wanted receivers, or null if unlimited.
            detail wanted: Option<u32> = *of,
        },
        /// One of several receivers did not get all files. The others are not affected.
        ReceiverFailed WRAITH_EVENT_RECEIVER_FAILED = 26, wraith::Event::ReceiverFailed(error) => {
            /// The reason.
            error why: String = error,
        },
        /// This reader was too slow, and events were dropped.
        Lagged WRAITH_EVENT_LAGGED = 18, wraith::Event::Lagged(events) => {
            /// Number of dropped events.
            count events: u64 = *events,
        },
        /// Last event: the transfer is complete and confirmed.
        Done WRAITH_EVENT_DONE = 19, wraith::Event::Done,
        /// Last event: the transfer failed. The transfer's result is the same error.
        Failed WRAITH_EVENT_FAILED = 20, wraith::Event::Failed(error) => {
            /// The reason.
            error why: String = error,
        },
    }
    // Events of the other languages, for which C has no number.
    languages {
        /// A listener that asks the user refused a stranger's offer without asking, because there
        /// were too many.
        RefusedUnread, wraith::Event::RefusedUnread { total } => {
            /// Number of refused offers since the listener started.
            total: u64 = *total,
        }
        /// The contacts of a listener changed.
        ContactsChanged, wraith::Event::ContactsChanged(contacts) => {
            /// New number of contacts.
            contacts: u64 = *contacts as u64,
        }
        /// An event without its own kind in this interface.
        Other, other => {
            /// Description.
            what: String = format!("{other:?}"),
        }
    }
    c {
        /// An event without a number of its own.
        WRAITH_EVENT_OTHER = 0,
        /// Progress: `count` files and `bytes` bytes are settled.
        WRAITH_EVENT_PROGRESS = 14,
    }
}
