//! Frames, the content of a packet (SPEC §5).
//!
//! [`Frames`] reads them from an opened payload; [`FrameWriter`] writes them into a packet. Reading
//! borrows from the payload and allocates nothing. The reader checks everything inside a frame:
//! lengths, ranges, text. The connection checks the rest, such as limits and known streams.
//! [`SentFrame`] is the sender's record of a frame until its packet is acknowledged or lost.

mod ack;
mod address;
mod read;
#[cfg(test)]
mod tests;
mod write;

use std::net::SocketAddr;

use smallvec::SmallVec;
use thiserror::Error;

use crate::Violation;

pub use ack::{AckFrame, AckRanges, EcnCounts};
pub(crate) use address::{ADDRESS_BYTES, decode as decode_address, encode as encode_address};
pub use read::Frames;
pub use write::{FrameWriter, Written};

/// Maximum length of a CLOSE reason in bytes: enough for a sentence, small enough for every packet
/// (SPEC §5).
pub const REASON_BYTES_MAX: usize = 512;

/// Maximum number of ranges in one ACK frame. The ACKs that this implementation sends never reach a
/// tenth of it, and more only burden the reader.
pub const ACK_RANGES_MAX: u64 = 1024;

/// Maximum number of addresses in one CANDIDATES frame, the same as in a ticket (SPEC §2).
pub const CANDIDATES_MAX: usize = 16;

/// Frame types of SPEC §5.
mod kind {
    pub(super) const PADDING: u8 = 0x00;
    pub(super) const PING: u8 = 0x01;
    pub(super) const ACK: u8 = 0x02;
    pub(super) const ACK_ECN: u8 = 0x03;
    pub(super) const RESET_STREAM: u8 = 0x04;
    pub(super) const STOP_SENDING: u8 = 0x05;
    pub(super) const STREAM: u8 = 0x08;
    pub(super) const STREAM_FIN: u8 = 0x01;
    pub(super) const STREAM_LENGTH: u8 = 0x02;
    pub(super) const STREAM_LAST: u8 = STREAM | STREAM_FIN | STREAM_LENGTH;
    pub(super) const MAX_DATA: u8 = 0x10;
    pub(super) const MAX_STREAM_DATA: u8 = 0x11;
    pub(super) const MAX_STREAMS: u8 = 0x12;
    pub(super) const DATA_BLOCKED: u8 = 0x14;
    pub(super) const STREAM_DATA_BLOCKED: u8 = 0x15;
    pub(super) const STREAMS_BLOCKED: u8 = 0x16;
    pub(super) const DATAGRAM: u8 = 0x18;
    pub(super) const DATAGRAM_LENGTH: u8 = 0x19;
    pub(super) const PATH_CHALLENGE: u8 = 0x1a;
    pub(super) const PATH_RESPONSE: u8 = 0x1b;
    pub(super) const CANDIDATES: u8 = 0x1c;
    pub(super) const OBSERVED_ADDRESS: u8 = 0x1d;
    pub(super) const ACK_FREQUENCY: u8 = 0x1e;
    pub(super) const IMMEDIATE_ACK: u8 = 0x1f;
    pub(super) const CLOSE: u8 = 0x20;
    pub(super) const RATCHET: u8 = 0x21;
}

/// One frame of a received packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A run of zero bytes, which are ignored.
    Padding,
    /// Elicits an acknowledgement.
    Ping,
    /// Acknowledges packets.
    Ack(AckFrame<'a>),
    /// The sender of a stream stopped sending.
    ResetStream {
        /// Stream id.
        id: u64,
        /// The application's error code.
        code: u64,
        /// Bytes of the stream that count against flow control.
        final_size: u64,
    },
    /// The receiver of a stream stopped reading.
    StopSending {
        /// Stream id.
        id: u64,
        /// The application's error code.
        code: u64,
    },
    /// Bytes of a stream. `offset + data.len()` is at most [`varint::MAX`](crate::varint::MAX).
    Stream {
        /// Stream id.
        id: u64,
        /// Offset of the first byte.
        offset: u64,
        /// The stream ends after these bytes.
        fin: bool,
        /// The bytes; may be empty.
        data: &'a [u8],
    },
    /// Maximum number of bytes on all streams together.
    MaxData(u64),
    /// Maximum number of bytes on one stream.
    MaxStreamData {
        /// Stream id.
        id: u64,
        /// Absolute offset.
        maximum: u64,
    },
    /// Maximum number of streams that the receiver of this frame may open in total.
    MaxStreams(u64),
    /// The sender of this frame is blocked by this connection-level limit.
    DataBlocked(u64),
    /// The sender of this frame is blocked by the limit of one stream.
    StreamDataBlocked {
        /// Stream id.
        id: u64,
        /// The limit, an absolute offset.
        maximum: u64,
    },
    /// The sender of this frame wants to open a stream and is blocked by this limit.
    StreamsBlocked(u64),
    /// An unreliable datagram.
    Datagram(&'a [u8]),
    /// A challenge, to be answered to its source address.
    PathChallenge([u8; 8]),
    /// The response: the bytes of a challenge.
    PathResponse([u8; 8]),
    /// Further addresses of the sender of this frame.
    Candidates(CandidatesFrame<'a>),
    /// Address of the receiver of this frame, as the sender sees it.
    ObservedAddress(SocketAddr),
    /// Acknowledgement frequency requested from the receiver of this frame.
    AckFrequency {
        /// Sequence number; the highest applies.
        sequence: u64,
        /// Ack-eliciting packets per ACK.
        packets: u64,
        /// Maximum ACK delay, in microseconds.
        max_delay_us: u64,
    },
    /// Requests an ACK at once.
    ImmediateAck,
    /// A fragment of a ratchet message (SPEC §4.6).
    Ratchet {
        /// Number of the ratchet in this connection, from 1.
        number: u64,
        /// Index of the fragment.
        part: u8,
        /// Bytes of the fragment.
        bytes: &'a [u8],
    },
    /// Closes the connection.
    Close {
        /// A code of SPEC §5, or of the application from 0x100 up.
        code: u64,
        /// Text from the peer; untrusted, at most [`REASON_BYTES_MAX`] bytes.
        reason: &'a str,
    },
}

/// Addresses that a peer claims for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidatesFrame<'a> {
    /// Sequence number; the highest list applies.
    pub sequence: u64,
    /// At most [`CANDIDATES_MAX`] addresses, each of a known family.
    addresses: &'a [[u8; ADDRESS_BYTES]],
}

impl CandidatesFrame<'_> {
    /// Returns the addresses in the peer's order.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.addresses.iter().filter_map(address::decode)
    }
}

impl Frame<'_> {
    /// Returns true if this frame makes its packet ack-eliciting (SPEC §7).
    pub fn is_ack_eliciting(&self) -> bool {
        !matches!(self, Self::Padding | Self::Ack(_) | Self::Close { .. })
    }
}

/// Authenticated bytes that are not a valid frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

impl From<Malformed> for Violation {
    fn from(Malformed(what): Malformed) -> Self {
        Self::protocol(what)
    }
}

/// The sender's record of a frame, for the time its packet is acknowledged or lost. It holds no
/// value where a retransmission sends the newest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentFrame {
    /// Bytes `offset .. offset + len` of a stream, and its end if `fin`.
    Stream {
        /// Stream id.
        id: u64,
        /// Offset of the first byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// The frame had the FIN bit.
        fin: bool,
    },
    /// The connection's receive window.
    MaxData,
    /// The receive window of this stream.
    MaxStreamData(u64),
    /// The peer's stream limit.
    MaxStreams,
    /// A DATA_BLOCKED, STREAM_DATA_BLOCKED or STREAMS_BLOCKED frame.
    Blocked,
    /// The RESET_STREAM of this stream.
    ResetStream(u64),
    /// The STOP_SENDING of this stream.
    StopSending(u64),
    /// An ACK.
    Ack {
        /// Largest packet number reported.
        largest: u64,
    },
    /// The ACK_FREQUENCY with this sequence number.
    AckFrequency(u64),
    /// A PING; never retransmitted.
    Ping,
    /// A path challenge.
    PathChallenge([u8; 8]),
    /// A path response; never retransmitted.
    PathResponse,
    /// The list of candidates with this sequence number.
    Candidates(u64),
    /// A fragment of a ratchet message.
    Ratchet {
        /// Number of the ratchet.
        number: u64,
        /// Index of the fragment.
        part: u8,
    },
    /// The peer's address as this side sees it; retransmitted with the newest value.
    ObservedAddress,
    /// A datagram; never retransmitted.
    Datagram,
}

/// The frames of one packet; four fit without an allocation. During a bulk transfer, a packet has
/// at most an ACK, the windows of a stream and of the connection, and stream data.
pub type SentFrames = SmallVec<[SentFrame; 4]>;
