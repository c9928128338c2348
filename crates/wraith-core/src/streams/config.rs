//! What streams may use, and what the application hears of them.

use super::StreamId;
use crate::RecvSlice;

/// Limits of the streams of one connection. The first three are told to the peer in the handshake (SPEC §3.3).
#[derive(Clone, Debug)]
pub struct StreamConfig {
    /// Receive window that the connection starts with, bytes (`initial_max_data`).
    pub connection_window: u64,
    /// Receive window that each stream starts with, bytes (`initial_max_stream_data`).
    pub stream_window: u64,
    /// Streams the peer may have open at once (`initial_max_streams`).
    pub streams_max: u64,
    /// Ceiling of the connection's receive window: the memory that the peer can make us hold.
    pub connection_window_max: u64,
    /// Ceiling of the receive window of one stream.
    pub stream_window_max: u64,
    /// Bytes of one stream held until they are acknowledged.
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

/// What [`Streams::read`](super::Streams::read) found.
#[derive(Debug)]
pub enum Read {
    /// The next bytes, at least one. A slice of 32 KiB or more may hold a whole block of memory
    /// ([`BLOCK_BYTES`](crate::BLOCK_BYTES)): whoever queues slices counts them as that.
    Slice(RecvSlice),
    /// All bytes of the stream were read.
    Finished,
    /// Nothing now; [`StreamEvent::Readable`] says when to try again.
    Blocked,
}

/// Something the application should know about a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEvent {
    /// The peer opened it.
    Opened(StreamId),
    /// There is something to read. Comes once, then again only after a read was [`Read::Blocked`].
    Readable(StreamId),
    /// There is room to write. Comes after the room was used up.
    Writable(StreamId),
    /// Every byte and the end were acknowledged.
    Acked(StreamId),
    /// The peer does not want more; sending was given up.
    Stopped {
        /// The stream.
        id: StreamId,
        /// The peer's code.
        code: u64,
    },
    /// The peer gave up sending; bytes not read yet are gone.
    Reset {
        /// The stream.
        id: StreamId,
        /// The peer's code.
        code: u64,
    },
}
