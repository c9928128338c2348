//! Events of a transfer as plain structs.

use wraith::{FileStatus, OfferInfo};

use crate::bytes::wraith_bytes_t;
use crate::status::wraith_status_t::WRAITH_OK;
use crate::status::{Failure, wraith_status_t};

/// The kind of an event. Later versions add numbers; ignore unknown ones.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum wraith_event_kind_t {
    /// An event without a number of its own.
    WRAITH_EVENT_OTHER = 0,
    /// A peer proved the words of the code. `peer` is its NodeId; `text` is the meeting place.
    WRAITH_EVENT_CODE_USED = 1,
    /// A peer tried the code with wrong words. The code is used up.
    WRAITH_EVENT_CODE_BURNED = 2,
    /// A long code, `text`, is available. It needs no common network.
    WRAITH_EVENT_LONG_CODE = 3,
    /// The code expired before a peer used it.
    WRAITH_EVENT_CODE_EXPIRED = 4,
    /// The meeting place `path` is currently unreachable, for the reason `text`.
    WRAITH_EVENT_PLACE_LOST = 5,
    /// The meeting place `path` is reachable again.
    WRAITH_EVENT_PLACE_BACK = 6,
    /// The other side was found.
    WRAITH_EVENT_PEER_FOUND = 7,
    /// Both sides are authenticated. `peer` is the other side's NodeId and `text` its address.
    WRAITH_EVENT_CONNECTED = 8,
    /// The connection moved to another path, to the address `text`, or stays on a relay for the
    /// reason `path`. `peer` is the other side's NodeId.
    WRAITH_EVENT_PATH = 9,
    /// The offer: `path` is its first name, `count` its number of files, `bytes` their total size.
    WRAITH_EVENT_OFFERED = 10,
    /// The receiver accepted the offer.
    WRAITH_EVENT_ACCEPTED = 11,
    /// The file `path` of `bytes` bytes is settled; `detail` is a `wraith_file_status_t`.
    WRAITH_EVENT_FILE = 12,
    /// A remark about `path` that stops nothing: `text`.
    WRAITH_EVENT_NOTE = 13,
    /// Progress: `count` files and `bytes` bytes are settled.
    WRAITH_EVENT_PROGRESS = 14,
    /// The connection was lost for the reason `text`; `detail` is a `wraith_lost_reason_t`. This
    /// side searches for the other for `count` more seconds.
    WRAITH_EVENT_CONNECTION_LOST = 15,
    /// A receiver confirmed everything; it has `count` files with `bytes` bytes now.
    WRAITH_EVENT_SENT = 16,
    /// The receiver postponed its answer; the offer stays valid.
    WRAITH_EVENT_OFFER_POSTPONED = 17,
    /// The reader was too slow and missed `count` events.
    WRAITH_EVENT_LAGGED = 18,
    /// Final event: everything is done and confirmed.
    WRAITH_EVENT_DONE = 19,
    /// Final event: the transfer failed; see `status` and `text`.
    WRAITH_EVENT_FAILED = 20,
    /// This side has used the code before. It continues with the ticket from that time.
    WRAITH_EVENT_RESUMED = 21,
    /// A peer used a ticket that a code had delivered to another machine. It was rejected.
    WRAITH_EVENT_UNAUTHORIZED_PEER = 22,
    /// The code admits no further receivers, for the reason `text`. Receivers that are connected
    /// are still served.
    WRAITH_EVENT_CLOSED_TO_NEW_RECEIVERS = 23,
    /// One of several receivers has everything, `count` so far. `detail` is the wanted number, or 0
    /// if there is no limit.
    WRAITH_EVENT_SERVED = 24,
    /// A receiver reconnected. The new connection replaces the earlier one.
    WRAITH_EVENT_RECEIVER_RECONNECTED = 25,
    /// One of several receivers did not get everything; see `status` and `text`. The others are
    /// still served.
    WRAITH_EVENT_RECEIVER_FAILED = 26,
    /// A user or program stopped the transfer; `detail` is the side, a `wraith_role_t`. It was not
    /// the network.
    WRAITH_EVENT_STOPPED = 27,
}

use wraith_event_kind_t::*;

/// A side of a transfer.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum wraith_role_t {
    /// The side that offers.
    WRAITH_SENDER = 1,
    /// The side that fetches.
    WRAITH_RECEIVER = 2,
}

/// Why a connection was lost. Later versions add numbers; treat unknown ones as
/// `WRAITH_LOST_OTHER`.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum wraith_lost_reason_t {
    /// Any other reason.
    WRAITH_LOST_OTHER = 0,
    /// No packet arrived from the peer for some seconds.
    WRAITH_LOST_IDLE_TIMEOUT = 1,
    /// The peer did not answer the handshake.
    WRAITH_LOST_NO_ANSWER = 2,
    /// Packets arrived, but no data.
    WRAITH_LOST_STALLED = 3,
    /// The peer did not send a message of the transfer protocol in time.
    WRAITH_LOST_NO_MESSAGE = 4,
    /// The path carries only packets that are too small.
    WRAITH_LOST_PATH_MTU = 5,
    /// The peer ended the connection without a reason that ends the transfer.
    WRAITH_LOST_BY_PEER = 6,
}

fn lost_reason(why: &wraith::LostReason) -> wraith_lost_reason_t {
    use wraith::LostReason as Why;
    use wraith_lost_reason_t::*;
    match why {
        Why::IdleTimeout => WRAITH_LOST_IDLE_TIMEOUT,
        Why::NoAnswer => WRAITH_LOST_NO_ANSWER,
        Why::Stalled { .. } => WRAITH_LOST_STALLED,
        Why::NoMessage { .. } => WRAITH_LOST_NO_MESSAGE,
        Why::PathMtu => WRAITH_LOST_PATH_MTU,
        Why::ClosedByPeer { .. } | Why::ReportedByPeer(_) => WRAITH_LOST_BY_PEER,
        _ => WRAITH_LOST_OTHER,
    }
}

fn role(role: wraith::Role) -> wraith_role_t {
    match role {
        wraith::Role::Sender => wraith_role_t::WRAITH_SENDER,
        wraith::Role::Receiver => wraith_role_t::WRAITH_RECEIVER,
    }
}

/// The result for one file.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum wraith_file_status_t {
    /// Transferred now, and verified.
    WRAITH_FILE_DONE = 0,
    /// The receiver already had exactly this file.
    WRAITH_FILE_ALREADY_HERE = 1,
    /// Another file has this name and was kept.
    WRAITH_FILE_SKIPPED = 2,
    /// The file changed at the sender while it was read.
    WRAITH_FILE_CHANGED = 3,
    /// The sender could not read the file.
    WRAITH_FILE_UNREADABLE = 4,
    /// Parts received earlier no longer match the file. Receive it again.
    WRAITH_FILE_STALE = 5,
    /// The receiver could not move the file to its place.
    WRAITH_FILE_BLOCKED = 6,
}

/// An event. Fields that its kind does not use are 0, empty or NULL.
#[repr(C)]
#[derive(Debug)]
pub struct wraith_event_t {
    /// A `wraith_event_kind_t`.
    pub kind: u32,
    /// The result, for `WRAITH_EVENT_FAILED` and `WRAITH_EVENT_RECEIVER_FAILED`.
    pub status: wraith_status_t,
    /// Meaning depends on the kind.
    pub detail: u32,
    /// Meaning depends on the kind.
    pub bytes: u64,
    /// Meaning depends on the kind.
    pub count: u64,
    /// A path, name or place: UTF-8, escaped for a terminal.
    pub path: wraith_bytes_t,
    /// Text for people.
    pub text: wraith_bytes_t,
    /// The other side's NodeId (32 bytes), or empty.
    pub peer: wraith_bytes_t,
}

/// Summary of an offer, as the sender declares it.
#[repr(C)]
#[derive(Debug)]
pub struct wraith_offer_info_t {
    /// The sender's NodeId (32 bytes); authenticated.
    pub sender: wraith_bytes_t,
    /// The first name, escaped for a terminal. For display only.
    pub name: wraith_bytes_t,
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
    /// Number of entries that cannot be sent. The other counts do not include them.
    pub left_out: u64,
    /// 1 for one byte stream. If its size is unknown, `bytes` is 0.
    pub is_stream: u32,
}

/// The answer to an offer.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum wraith_answer_t {
    /// Postpone: the offer stays valid.
    WRAITH_POSTPONE = 0,
    /// Fetch the offer.
    WRAITH_ACCEPT = 1,
    /// Decline, and notify the sender.
    WRAITH_REFUSE = 2,
}

/// An event that owns its memory.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub kind: wraith_event_kind_t,
    status: wraith_status_t,
    detail: u32,
    bytes: u64,
    count: u64,
    path: String,
    text: String,
    peer: Option<[u8; 32]>,
}

impl Event {
    fn new(kind: wraith_event_kind_t) -> Self {
        let (path, text) = (String::new(), String::new());
        Self { kind, status: WRAITH_OK, detail: 0, bytes: 0, count: 0, path, text, peer: None }
    }

    pub fn lagged(count: u64) -> Self {
        Self { count, ..Self::new(WRAITH_EVENT_LAGGED) }
    }

    pub fn progress(files: u64, bytes: u64) -> Self {
        Self { count: files, bytes, ..Self::new(WRAITH_EVENT_PROGRESS) }
    }

    pub fn done() -> Self {
        Self::new(WRAITH_EVENT_DONE)
    }

    pub fn failed(failure: &Failure) -> Self {
        let text = failure.words.to_string();
        Self { status: failure.status, text, ..Self::new(WRAITH_EVENT_FAILED) }
    }

    /// Converts an event of the `wraith` crate. Returns `None` for its final event, which the
    /// transfer reports itself.
    pub fn of(event: &wraith::Event, shown: impl Fn(&wraith::Addr) -> String) -> Option<Self> {
        use wraith::Event as LibraryEvent;
        let peer = |peer: &wraith::NodeId| Some(*peer.as_bytes());
        Some(match event {
            LibraryEvent::CodeUsed { place, peer: node_id } => Self {
                text: place.to_string(),
                peer: peer(node_id),
                ..Self::new(WRAITH_EVENT_CODE_USED)
            },
            LibraryEvent::CodeBurned(place) => {
                Self { text: place.to_string(), ..Self::new(WRAITH_EVENT_CODE_BURNED) }
            }
            LibraryEvent::LongCode(code) => {
                Self { text: code.to_string(), ..Self::new(WRAITH_EVENT_LONG_CODE) }
            }
            LibraryEvent::CodeExpired => Self::new(WRAITH_EVENT_CODE_EXPIRED),
            LibraryEvent::PlaceLost { place, why } => Self {
                path: place.to_string(),
                text: why.to_string(),
                ..Self::new(WRAITH_EVENT_PLACE_LOST)
            },
            LibraryEvent::PlaceBack(place) => {
                Self { path: place.to_string(), ..Self::new(WRAITH_EVENT_PLACE_BACK) }
            }
            LibraryEvent::PeerFound(_) => Self::new(WRAITH_EVENT_PEER_FOUND),
            LibraryEvent::Connected { peer: node_id, remote, .. } => Self {
                text: shown(remote),
                peer: peer(node_id),
                ..Self::new(WRAITH_EVENT_CONNECTED)
            },
            LibraryEvent::Path { peer: node_id, remote, why, .. } => Self {
                path: why.clone().unwrap_or_default(),
                text: shown(remote),
                peer: peer(node_id),
                ..Self::new(WRAITH_EVENT_PATH)
            },
            LibraryEvent::Offered(offer) => Self {
                path: offer.name.clone(),
                count: offer.files,
                bytes: offer.bytes,
                ..Self::new(WRAITH_EVENT_OFFERED)
            },
            LibraryEvent::Accepted => Self::new(WRAITH_EVENT_ACCEPTED),
            LibraryEvent::File { path, status, bytes, .. } => Self {
                path: path.clone(),
                bytes: *bytes,
                detail: file_status(*status) as u32,
                ..Self::new(WRAITH_EVENT_FILE)
            },
            LibraryEvent::Note { path, what } => {
                Self { path: path.clone(), text: what.clone(), ..Self::new(WRAITH_EVENT_NOTE) }
            }
            LibraryEvent::ConnectionLost { why, seconds_left } => Self {
                text: why.to_string(),
                detail: lost_reason(why) as u32,
                count: *seconds_left,
                ..Self::new(WRAITH_EVENT_CONNECTION_LOST)
            },
            LibraryEvent::Stopped { by, .. } => {
                Self { detail: role(*by) as u32, ..Self::new(WRAITH_EVENT_STOPPED) }
            }
            LibraryEvent::Sent { report } => Self {
                bytes: report.receipt.bytes,
                count: report.receipt.verified,
                peer: peer(&report.receiver),
                ..Self::new(WRAITH_EVENT_SENT)
            },
            LibraryEvent::OfferPostponed => Self::new(WRAITH_EVENT_OFFER_POSTPONED),
            LibraryEvent::Resumed => Self::new(WRAITH_EVENT_RESUMED),
            LibraryEvent::StateNotStored(what) => {
                Self { text: what.clone(), ..Self::new(WRAITH_EVENT_NOTE) }
            }
            LibraryEvent::UnauthorizedPeer => Self::new(WRAITH_EVENT_UNAUTHORIZED_PEER),
            LibraryEvent::ClosedToNewReceivers(why) => {
                Self { text: why.to_string(), ..Self::new(WRAITH_EVENT_CLOSED_TO_NEW_RECEIVERS) }
            }
            LibraryEvent::Served { done, of } => Self {
                count: (*done).into(),
                detail: of.unwrap_or(0),
                ..Self::new(WRAITH_EVENT_SERVED)
            },
            LibraryEvent::ReceiverReconnected => Self::new(WRAITH_EVENT_RECEIVER_RECONNECTED),
            LibraryEvent::ClocksDiffer { peer, seconds } => Self {
                text: LibraryEvent::clocks_differ_text(*peer, *seconds),
                ..Self::new(WRAITH_EVENT_NOTE)
            },
            LibraryEvent::ReceiverFailed(error) => {
                let failure = Failure::from(error.clone());
                Self { kind: WRAITH_EVENT_RECEIVER_FAILED, ..Self::failed(&failure) }
            }
            LibraryEvent::Done | LibraryEvent::Failed(_) => return None,
            _ => Self::new(WRAITH_EVENT_OTHER),
        })
    }

    /// Returns true for a final event.
    pub fn is_last(&self) -> bool {
        matches!(self.kind, WRAITH_EVENT_DONE | WRAITH_EVENT_FAILED)
    }

    /// Calls `to` with the C form of the event.
    pub fn with_c<R>(&self, to: impl FnOnce(&wraith_event_t) -> R) -> R {
        to(&wraith_event_t {
            kind: self.kind as u32,
            status: self.status,
            detail: self.detail,
            bytes: self.bytes,
            count: self.count,
            path: wraith_bytes_t::of(self.path.as_bytes()),
            text: wraith_bytes_t::of(self.text.as_bytes()),
            peer: self.peer.as_ref().map_or(wraith_bytes_t::EMPTY, |peer| wraith_bytes_t::of(peer)),
        })
    }
}

fn file_status(status: FileStatus) -> wraith_file_status_t {
    use wraith_file_status_t::*;
    match status {
        FileStatus::Done => WRAITH_FILE_DONE,
        FileStatus::AlreadyHere => WRAITH_FILE_ALREADY_HERE,
        FileStatus::Skipped => WRAITH_FILE_SKIPPED,
        FileStatus::Changed => WRAITH_FILE_CHANGED,
        FileStatus::Unreadable => WRAITH_FILE_UNREADABLE,
        FileStatus::Stale => WRAITH_FILE_STALE,
        FileStatus::Blocked => WRAITH_FILE_BLOCKED,
    }
}

/// An offer that waits for an answer.
#[derive(Debug)]
pub(crate) struct OfferShown {
    pub sender: [u8; 32],
    pub info: OfferInfo,
}

impl OfferShown {
    /// Calls `to` with the C form of the offer.
    pub fn with_c<R>(&self, to: impl FnOnce(&wraith_offer_info_t) -> R) -> R {
        let info = &self.info;
        to(&wraith_offer_info_t {
            sender: wraith_bytes_t::of(&self.sender),
            name: wraith_bytes_t::of(info.name.as_bytes()),
            files: info.files,
            folders: info.folders,
            links: info.links,
            bytes: info.bytes,
            largest: info.largest,
            left_out: info.left_out,
            is_stream: info.is_stream.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use wraith::Event as LibraryEvent;

    use super::*;

    #[test]
    fn every_event_of_an_offer_has_a_kind_of_its_own() {
        let lost = || "no ticket".parse::<wraith::Source>().unwrap_err();
        for (event, kind) in [
            (LibraryEvent::Resumed, WRAITH_EVENT_RESUMED),
            (LibraryEvent::StateNotStored("full".into()), WRAITH_EVENT_NOTE),
            (LibraryEvent::UnauthorizedPeer, WRAITH_EVENT_UNAUTHORIZED_PEER),
            (LibraryEvent::ClosedToNewReceivers(lost()), WRAITH_EVENT_CLOSED_TO_NEW_RECEIVERS),
            (LibraryEvent::Served { done: 2, of: Some(3) }, WRAITH_EVENT_SERVED),
            (LibraryEvent::ReceiverReconnected, WRAITH_EVENT_RECEIVER_RECONNECTED),
            (LibraryEvent::ReceiverFailed(lost()), WRAITH_EVENT_RECEIVER_FAILED),
        ] {
            let event = Event::of(&event, ToString::to_string).unwrap();
            assert_eq!(event.kind, kind);
            assert!(!event.is_last());
        }
        let failed = Event::of(&LibraryEvent::ReceiverFailed(lost()), ToString::to_string);
        assert_eq!(failed.unwrap().status, wraith_status_t::WRAITH_INVALID_INPUT);
    }
}
