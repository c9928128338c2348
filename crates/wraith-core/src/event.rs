//! What comes out of the core: datagrams to send, and events for the application.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;

use crate::streams::{StreamEvent, StreamId};
use crate::{CloseReason, PathAddr};

/// Names one connection of an endpoint. Never reused.
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
    /// Where to.
    pub to: PathAddr,
    /// ECN codepoint to set, if any.
    pub ecn: Option<Ecn>,
    /// Bytes in total.
    pub len: usize,
    /// Size of every datagram but the last, which may be shorter. At least 1, at most `len`.
    pub segment: usize,
}

/// Something the application should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer is authenticated and streams can be used.
    Connected,
    /// The peer opened a stream.
    StreamOpened(StreamId),
    /// A stream has bytes to read, or its end.
    Readable(StreamId),
    /// A stream has room for more bytes, after it had none.
    Writable(StreamId),
    /// Every byte of a finished stream was acknowledged.
    Acked(StreamId),
    /// The peer does not want to read more of a stream.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The peer's code.
        code: u64,
    },
    /// The peer gave up sending on a stream.
    Reset {
        /// The stream.
        id: StreamId,
        /// The peer's code.
        code: u64,
    },
    /// An unreliable datagram.
    Datagram(Bytes),
    /// Where the peer sees us: an address of ours on its side of every NAT. Comes again when that changes.
    ObservedAddress(SocketAddr),
    /// Where else the peer says it may be reached, when that has changed. Nothing is known about these addresses: they may be a
    /// third party's.
    PeerCandidates(Vec<SocketAddr>),
    /// Packets go to another, validated address from now on: the peer moved, or we did.
    PathChanged {
        /// The new address.
        remote: PathAddr,
    },
    /// The address that [`Connection::move_to`](crate::Connection::move_to) named did not answer, or another was named since. Packets go
    /// where they went.
    MoveFailed {
        /// That address.
        remote: PathAddr,
    },
    /// The connection ended; no event follows.
    Closed(CloseReason),
}

impl From<StreamEvent> for Event {
    fn from(event: StreamEvent) -> Self {
        match event {
            StreamEvent::Opened(id) => Self::StreamOpened(id),
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
    /// Packets sent, and their bytes.
    pub packets_sent: u64,
    /// UDP payload bytes sent.
    pub bytes_sent: u64,
    /// Authentic packets received.
    pub packets_received: u64,
    /// UDP payload bytes of authentic packets received.
    pub bytes_received: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Losses that turned out to be late.
    pub spurious_losses: u64,
    /// Datagrams that did not authenticate.
    pub datagrams_dropped: u64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Lowest round-trip time seen.
    pub min_rtt: Duration,
    /// Congestion window, bytes.
    pub congestion_window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// UDP payload size in use.
    pub mtu: u16,
    /// Key phases begun by us.
    pub key_phases: u64,
    /// Those among them behind a ratchet.
    pub ratchets: u64,
    /// The path carries ECN marks: packets leave as ECT(0), and marks of the network slow the sender.
    pub ecn_capable: bool,
    /// Packets of ours that arrived marked CE, as the peer says.
    pub ecn_ce: u64,
}
