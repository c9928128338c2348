//! Outputs of the core: datagrams to send and events for the application.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use crate::streams::{StreamEvent, StreamId};
use crate::{CloseReason, PathAddr};

/// Identifies one connection of an endpoint. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionHandle(pub(crate) u64);

/// ECN codepoint of a datagram (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// Datagrams to send: the first `len` bytes of the buffer, cut every `segment` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Destination.
    pub to: PathAddr,
    /// ECN codepoint to set, if any.
    pub ecn: Option<Ecn>,
    /// Total bytes.
    pub len: usize,
    /// Size of every datagram but the last, which may be shorter. At least 1, at most `len`.
    pub segment: usize,
}

/// An event for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer is authenticated and streams can be used.
    Connected,
    /// The peer opened a stream.
    StreamOpened(StreamId),
    /// The peer raised the number of streams that this side may open.
    StreamLimitRaised,
    /// A stream has bytes to read, or its end.
    Readable(StreamId),
    /// A stream accepts bytes again after its buffer was full.
    Writable(StreamId),
    /// The peer acknowledged every byte of a finished stream.
    Acked(StreamId),
    /// The peer stopped reading a stream.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The peer's error code.
        code: u64,
    },
    /// The peer reset its sending side of a stream.
    Reset {
        /// The stream.
        id: StreamId,
        /// The peer's error code.
        code: u64,
    },
    /// An unreliable datagram.
    Datagram(Bytes),
    /// This side's address as the peer sees it, after translation by every NAT on the way. Reported
    /// again when it changes.
    ObservedAddress(SocketAddr),
    /// Further addresses that the peer claims for itself; reported when the list changes. They are
    /// unverified and may belong to a third party.
    PeerCandidates(Vec<SocketAddr>),
    /// The connection now uses another, validated address, because either side moved.
    PathChanged {
        /// The new address.
        remote: PathAddr,
    },
    /// The address passed to [`Connection::migrate_to`](crate::Connection::migrate_to) did not
    /// answer, or a later call replaced it. The path is unchanged.
    MigrationFailed {
        /// The address that failed.
        remote: PathAddr,
    },
    /// The connection ended. This is its last event.
    Closed(CloseReason),
}

impl From<StreamEvent> for Event {
    fn from(event: StreamEvent) -> Self {
        match event {
            StreamEvent::Opened(id) => Self::StreamOpened(id),
            StreamEvent::LimitRaised => Self::StreamLimitRaised,
            StreamEvent::Readable(id) => Self::Readable(id),
            StreamEvent::Writable(id) => Self::Writable(id),
            StreamEvent::Acked(id) => Self::Acked(id),
            StreamEvent::Stopped { id, code } => Self::Stopped { id, code },
            StreamEvent::Reset { id, code } => Self::Reset { id, code },
        }
    }
}

/// Counters and estimates of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionStats {
    /// Packets sent.
    pub packets_sent: u64,
    /// UDP payload bytes sent.
    pub bytes_sent: u64,
    /// Authentic packets received.
    pub packets_received: u64,
    /// UDP payload bytes of authentic packets received.
    pub bytes_received: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Spurious losses: packets declared lost that arrived late.
    pub spurious_losses: u64,
    /// Datagrams that failed authentication.
    pub datagrams_dropped: u64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Minimum round-trip time.
    pub min_rtt: Duration,
    /// Congestion window, in bytes.
    pub congestion_window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Maximum UDP payload size in use, in bytes.
    pub mtu: u16,
    /// Key phases that this side started.
    pub key_phases: u64,
    /// Those of `key_phases` that followed a ratchet.
    pub ratchets: u64,
    /// True if the path carries ECN marks: packets leave as ECT(0), and CE marks slow the sender.
    pub ecn_capable: bool,
    /// Packets that this side sent and that arrived marked CE, as reported by the peer.
    pub ecn_ce: u64,
}
