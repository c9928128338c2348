//! Frames, the content of a packet (SPEC §5): their types, [`Frames`] which reads them from an opened payload, and
//! [`FrameWriter`] which writes them into a packet being built.
//!
//! Reading borrows from the payload and allocates nothing. Everything a frame says about itself (lengths, ranges,
//! text) is checked while it is read; what it means for a connection (limits, known streams) is checked where it is
//! used. [`SentFrame`] is what a sender keeps of a frame until its packet was acknowledged or lost.

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

/// Bytes of the reason in a CLOSE frame: enough for a sentence, small enough to fit any packet (SPEC §5).
pub const REASON_BYTES_MAX: usize = 512;

/// Ranges in one ACK frame. We never report a tenth of it; more only makes the reader work.
pub const ACK_RANGES_MAX: u64 = 1024;

/// Addresses in one CANDIDATES frame: as many as a ticket has (SPEC §2).
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
    /// A run of zero bytes; nothing to do.
    Padding,
    /// Asks for an acknowledgement, nothing else.
    Ping,
    /// Packets that arrived.
    Ack(AckFrame<'a>),
    /// The sender of a stream gave it up.
    ResetStream {
        /// Stream id.
        id: u64,
        /// The application's reason.
        code: u64,
        /// Bytes of the stream that count against flow control.
        final_size: u64,
    },
    /// The receiver of a stream does not want more of it.
    StopSending {
        /// Stream id.
        id: u64,
        /// The application's reason.
        code: u64,
    },
    /// Bytes of a stream. `offset + data.len()` is at most [`varint::MAX`](crate::varint::MAX).
    Stream {
        /// Stream id.
        id: u64,
        /// Position of the first byte.
        offset: u64,
        /// The stream ends after these bytes.
        fin: bool,
        /// The bytes; may be empty.
        data: &'a [u8],
    },
    /// Bytes that may be sent on all streams together.
    MaxData(u64),
    /// Bytes that may be sent on one stream.
    MaxStreamData {
        /// Stream id.
        id: u64,
        /// Absolute offset.
        maximum: u64,
    },
    /// Streams the receiver of this frame may open in total.
    MaxStreams(u64),
    /// The sender of this frame has bytes to send, and this limit on all streams together keeps them back.
    DataBlocked(u64),
    /// The same of the limit on one stream.
    StreamDataBlocked {
        /// Stream id.
        id: u64,
        /// The limit, an absolute offset.
        maximum: u64,
    },
    /// The sender of this frame wants to open a stream, and this limit keeps it from that.
    StreamsBlocked(u64),
    /// Unreliable bytes.
    Datagram(&'a [u8]),
    /// To be sent back to where it came from.
    PathChallenge([u8; 8]),
    /// The bytes of a challenge.
    PathResponse([u8; 8]),
    /// Where else the sender of this frame may be reached.
    Candidates(CandidatesFrame<'a>),
    /// Where the receiver of this frame is seen.
    ObservedAddress(SocketAddr),
    /// How often the receiver of this frame should acknowledge.
    AckFrequency {
        /// Later ones win.
        sequence: u64,
        /// Ack-eliciting packets before an ACK.
        packets: u64,
        /// Longest delay of an ACK, microseconds.
        max_delay_us: u64,
    },
    /// Asks for an ACK at once.
    ImmediateAck,
    /// A part of a message of a ratchet (SPEC §4.6).
    Ratchet {
        /// Which ratchet of the connection, from 1.
        number: u64,
        /// Which part of the message.
        part: u8,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// The connection is over.
    Close {
        /// SPEC §5, or the application's from 0x100.
        code: u64,
        /// The peer's words; untrusted, at most [`REASON_BYTES_MAX`] bytes.
        reason: &'a str,
    },
}

/// Addresses at which a peer says that it may be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidatesFrame<'a> {
    /// Later lists win.
    pub sequence: u64,
    /// At most [`CANDIDATES_MAX`], each of a known family.
    addresses: &'a [[u8; ADDRESS_BYTES]],
}

impl CandidatesFrame<'_> {
    /// The addresses, in the peer's order.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.addresses.iter().filter_map(address::decode)
    }
}

impl Frame<'_> {
    /// True if the packet must be acknowledged for this frame (SPEC §7).
    pub fn is_ack_eliciting(&self) -> bool {
        !matches!(self, Self::Padding | Self::Ack(_) | Self::Close { .. })
    }
}

/// Authenticated bytes that are no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

impl From<Malformed> for Violation {
    fn from(Malformed(what): Malformed) -> Self {
        Self::protocol(what)
    }
}

/// What must be known of a frame when its packet is acknowledged or lost. Values are not kept where the newest one is
/// sent again anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentFrame {
    /// Bytes `offset .. offset + len` of a stream, and its end if `fin`.
    Stream {
        /// Stream id.
        id: u64,
        /// Position of the first byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
        /// The end of the stream was said.
        fin: bool,
    },
    /// The connection's window.
    MaxData,
    /// The window of this stream.
    MaxStreamData(u64),
    /// The peer's stream limit.
    MaxStreams,
    /// A limit of the peer that keeps us back.
    Blocked,
    /// The reset of this stream.
    ResetStream(u64),
    /// The stop of this stream.
    StopSending(u64),
    /// An ACK that reached up to `largest`.
    Ack {
        /// Largest packet number reported.
        largest: u64,
    },
    /// The ACK_FREQUENCY with this sequence.
    AckFrequency(u64),
    /// Nothing to repeat.
    Ping,
    /// A challenge to a path.
    PathChallenge([u8; 8]),
    /// Never repeated.
    PathResponse,
    /// The list of candidates with this sequence.
    Candidates(u64),
    /// A part of a message of a ratchet.
    Ratchet {
        /// Which ratchet.
        number: u64,
        /// Which part.
        part: u8,
    },
    /// The address where the peer is seen; repeated with the newest one.
    ObservedAddress,
    /// Never repeated.
    Datagram,
}

/// The frames of one packet; four fit without an allocation. In the middle of a bulk transfer a packet has an ACK, the
/// windows of a stream and of the connection, and bytes of a stream, or fewer.
pub type SentFrames = SmallVec<[SentFrame; 4]>;
