//! Limits of streams, and their events for the application.

use super::StreamId;
use crate::RecvSlice;

/// Limits of the streams of one connection. The first three are sent to the peer in the handshake
/// (SPEC §3.3).
#[derive(Clone, Debug)]
pub struct StreamConfig {
    /// Initial receive window of the connection, in bytes (`initial_max_data`).
    pub connection_window: u64,
    /// Initial receive window of each stream, in bytes (`initial_max_stream_data`).
    pub stream_window: u64,
    /// Maximum number of streams that the peer may have open at once (`initial_max_streams`).
    pub streams_max: u64,
    /// Maximum receive window of the connection, in bytes. It bounds the memory that the peer can
    /// occupy.
    pub connection_window_max: u64,
    /// Maximum receive window of one stream, in bytes.
    pub stream_window_max: u64,
    /// Maximum number of unacknowledged bytes that one stream buffers.
    pub send_buffer_max: u64,
}

impl Default for StreamConfig {
    fn default() -> Self {
        Self {
            connection_window: 3 << 19,
            stream_window: 1 << 20,
            streams_max: 128,
            connection_window_max: 32 << 20,
            stream_window_max: 24 << 20,
            send_buffer_max: 24 << 20,
        }
    }
}

/// Result of [`Streams::read`](super::Streams::read).
#[derive(Debug)]
pub enum Read {
    /// The next bytes, at least one. A slice may hold a block of memory of up to eight times its
    /// length ([`BLOCK_BYTES`](crate::BLOCK_BYTES) at most); a caller that queues slices must
    /// account for that.
    Slice(RecvSlice),
    /// All bytes of the stream were read.
    Finished,
    /// No bytes now; [`StreamEvent::Readable`] follows.
    Blocked,
}

/// An event of a stream for the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened the stream.
    Opened(StreamId),
    /// The peer raised the number of streams that this side may open.
    LimitRaised,
    /// Bytes, or the end, can be read. Reported once, and again only after a read returned
    /// [`Read::Blocked`].
    Readable(StreamId),
    /// The stream accepts bytes again after its capacity was used up.
    Writable(StreamId),
    /// The peer acknowledged every byte and the end.
    Acked(StreamId),
    /// The peer stopped reading, so this side's sending half was reset.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The peer's error code.
        code: u64,
    },
    /// The peer reset its sending side; unread bytes are discarded.
    Reset {
        /// The stream.
        id: StreamId,
        /// The peer's error code.
        code: u64,
    },
}
