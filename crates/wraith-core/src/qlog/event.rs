//! Log events. Each has a fixed size, so that a bounded ring can hold them and recording one
//! allocates nothing.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::frame::{SentFrame, SentFrames};
use crate::{CloseReason, PathAddr};

/// Maximum number of acknowledged ranges that an event holds.
const RANGES_MAX: usize = 8;

/// An event of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The handshake is complete.
    ConnectionStarted {
        /// The peer's address.
        remote: PathAddr,
    },
    /// A packet was sealed.
    PacketSent {
        /// Packet number.
        pn: u64,
        /// UDP payload bytes.
        bytes: u32,
        /// Kinds of its frames.
        frames: FrameKinds,
        /// Its first STREAM frame.
        stream: Option<StreamFrame>,
    },
    /// A packet was opened.
    PacketReceived {
        /// Packet number.
        pn: u64,
        /// UDP payload bytes.
        bytes: u32,
        /// Kinds of its frames.
        frames: FrameKinds,
        /// Ranges of its ACK frame; empty without one.
        acked: AckedRanges,
        /// The peer's ACK delay.
        ack_delay: Duration,
    },
    /// A packet was declared lost.
    PacketLost {
        /// Packet number.
        pn: u64,
        /// UDP payload bytes.
        bytes: u32,
    },
    /// The estimates changed.
    MetricsUpdated(Metrics),
    /// The congestion controller changed its state.
    CongestionStateUpdated {
        /// The previous state; empty at the start.
        old: &'static str,
        /// The new state.
        new: &'static str,
    },
    /// The connection now uses another address of the peer.
    PathChanged {
        /// The new address.
        remote: PathAddr,
    },
    /// The connection ended.
    ConnectionClosed {
        /// Kind of the end.
        how: CloseKind,
        /// Close code sent or received, if any.
        code: Option<u64>,
    },
}

/// Estimates of recovery and congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Congestion window, bytes.
    pub congestion_window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Pacing rate, in bytes per second.
    pub pacing_rate: u64,
    /// Slow start threshold in bytes, if the controller has one.
    pub slow_start_threshold: Option<u64>,
    /// Latest round-trip sample.
    pub latest_rtt: Duration,
    /// Smoothed round trip.
    pub smoothed_rtt: Duration,
    /// Minimum round trip.
    pub min_rtt: Duration,
    /// Mean deviation of the round trip.
    pub rtt_variance: Duration,
}

/// The bytes of a STREAM frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFrame {
    /// Stream id.
    pub id: u64,
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u32,
    /// The stream ends after these bytes.
    pub fin: bool,
}

/// The way a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseKind {
    /// This side closed the connection.
    Local,
    /// The peer closed the connection.
    Peer,
    /// No packet arrived from the peer within the idle timeout.
    IdleTimeout,
    /// The handshake did not complete in time.
    HandshakeTimeout,
    /// The peer broke the protocol.
    Violation,
    /// A key reached its limit.
    KeyLimit,
    /// The path drops packets of the smallest size.
    PathMtu,
}

impl Event {
    /// Returns the event for the end of a connection for `reason`.
    pub(super) fn closed(reason: &CloseReason) -> Self {
        let (how, code) = CloseKind::of(reason);
        Self::ConnectionClosed { how, code }
    }
}

impl CloseKind {
    /// Returns the kind and code of `reason`, without the peer's text.
    pub(crate) fn of(reason: &CloseReason) -> (Self, Option<u64>) {
        match reason {
            CloseReason::Local => (Self::Local, None),
            CloseReason::Peer { code, .. } => (Self::Peer, Some(*code)),
            CloseReason::IdleTimeout => (Self::IdleTimeout, None),
            CloseReason::HandshakeTimeout => (Self::HandshakeTimeout, None),
            CloseReason::Violation(violation) => (Self::Violation, Some(violation.code)),
            CloseReason::KeyLimit => (Self::KeyLimit, None),
            CloseReason::PathMtu => (Self::PathMtu, None),
        }
    }
}

/// The kinds of frames in a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameKinds(u32);

impl FrameKinds {
    /// PING.
    pub const PING: Self = Self(1);
    /// ACK.
    pub const ACK: Self = Self(1 << 1);
    /// STREAM.
    pub const STREAM: Self = Self(1 << 2);
    /// RESET_STREAM.
    pub const RESET_STREAM: Self = Self(1 << 3);
    /// STOP_SENDING.
    pub const STOP_SENDING: Self = Self(1 << 4);
    /// MAX_DATA.
    pub const MAX_DATA: Self = Self(1 << 5);
    /// MAX_STREAM_DATA.
    pub const MAX_STREAM_DATA: Self = Self(1 << 6);
    /// MAX_STREAMS.
    pub const MAX_STREAMS: Self = Self(1 << 7);
    /// DATAGRAM.
    pub const DATAGRAM: Self = Self(1 << 8);
    /// PATH_CHALLENGE.
    pub const PATH_CHALLENGE: Self = Self(1 << 9);
    /// PATH_RESPONSE.
    pub const PATH_RESPONSE: Self = Self(1 << 10);
    /// OBSERVED_ADDRESS.
    pub const OBSERVED_ADDRESS: Self = Self(1 << 11);
    /// CANDIDATES.
    pub const CANDIDATES: Self = Self(1 << 15);
    /// ACK_FREQUENCY or IMMEDIATE_ACK.
    pub const ACK_FREQUENCY: Self = Self(1 << 12);
    /// RATCHET.
    pub const RATCHET: Self = Self(1 << 16);
    /// CLOSE.
    pub const CLOSE: Self = Self(1 << 13);
    /// DATA_BLOCKED, STREAM_DATA_BLOCKED or STREAMS_BLOCKED.
    pub const BLOCKED: Self = Self(1 << 14);

    /// Returns true if a frame of kind `other` is in the set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn insert(&mut self, other: Self) {
        self.0 |= other.0;
    }

    /// Returns the frame kinds of a sent packet, and its first STREAM frame.
    pub(super) fn of_sent(frames: &SentFrames) -> (Self, Option<StreamFrame>) {
        let (mut kinds, mut stream) = (Self::default(), None);
        for frame in frames {
            kinds.insert(match *frame {
                SentFrame::Stream { id, offset, len, fin } => {
                    stream.get_or_insert(StreamFrame { id, offset, len, fin });
                    Self::STREAM
                }
                SentFrame::MaxData => Self::MAX_DATA,
                SentFrame::MaxStreamData(_) => Self::MAX_STREAM_DATA,
                SentFrame::MaxStreams => Self::MAX_STREAMS,
                SentFrame::Blocked => Self::BLOCKED,
                SentFrame::ResetStream(_) => Self::RESET_STREAM,
                SentFrame::StopSending(_) => Self::STOP_SENDING,
                SentFrame::Ack { .. } => Self::ACK,
                SentFrame::AckFrequency(_) => Self::ACK_FREQUENCY,
                SentFrame::Ping => Self::PING,
                SentFrame::PathChallenge(_) => Self::PATH_CHALLENGE,
                SentFrame::PathResponse => Self::PATH_RESPONSE,
                SentFrame::ObservedAddress => Self::OBSERVED_ADDRESS,
                SentFrame::Candidates(_) => Self::CANDIDATES,
                SentFrame::Ratchet { .. } => Self::RATCHET,
                SentFrame::Datagram => Self::DATAGRAM,
            });
        }
        (kinds, stream)
    }
}

/// The newest eight acknowledged ranges of an ACK frame, in descending order. Earlier ACKs
/// contained the older ones.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct AckedRanges {
    ranges: [(u64, u64); RANGES_MAX],
    len: u8,
}

impl AckedRanges {
    pub(super) fn new(ranges: impl Iterator<Item = RangeInclusive<u64>>) -> Self {
        let mut kept = Self::default();
        for (slot, range) in kept.ranges.iter_mut().zip(ranges) {
            *slot = (*range.start(), *range.end());
            kept.len += 1;
        }
        kept
    }

    /// Returns the ranges.
    pub fn iter(&self) -> impl Iterator<Item = RangeInclusive<u64>> + '_ {
        self.ranges[..usize::from(self.len)].iter().map(|(first, last)| *first..=*last)
    }
}

impl std::fmt::Debug for AckedRanges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
