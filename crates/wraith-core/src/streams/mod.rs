//! Streams of a connection (SPEC §6): ordered bytes in both directions, under flow control.
//!
//! # Usage
//!
//! [`Streams`] has four interfaces:
//!
//! - The application opens, writes, finishes, resets, reads and stops streams.
//! - The `on_*` methods of `incoming.rs` handle frames of the peer.
//! - [`Streams::write_frames`] writes frames to the peer. [`Streams::on_acked`] and
//!   [`Streams::on_lost`] settle them (`outgoing.rs`).
//! - [`Streams::poll_event`] returns events for the application.
//!
//! The module reads no clock, allocates nothing per packet, and copies each byte at most once per
//! direction.
//!
//! # Invariants
//!
//! - Every accepted byte lies within the windows that this side announced; any other byte is a
//!   protocol violation.
//! - This side sends no byte beyond the limits that the peer announced.
//! - A stream is in a send queue exactly when it has something of that queue's kind to send.
//! - The state shows without a search which limits of the peer block this side, so that blocked
//!   frames are cheap.
//! - A stream is removed when both its halves are over, and later frames for it are ignored. If the
//!   peer had opened the stream, the peer may open another one.

mod assembler;
mod blocked;
mod config;
mod id;
mod incoming;
mod outgoing;
mod recv;
mod send;
mod send_buffer;
mod send_queue;
mod stream;
mod table;
#[cfg(test)]
mod tests;
mod window;

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::{BlockPool, StreamError, Time};

pub use config::{Read, StreamConfig, StreamEvent};
pub use id::{Role, StreamId};

use stream::{SendQueues, Stream};
use table::Table;
use window::Window;

/// Maximum number of received ranges separated by gaps, over all streams of a connection: 128 KiB
/// of memory. A sender with 39 MB in flight in packets of 1200 bytes creates as many when half of
/// them are lost at random. Data that would create more is refused, as if its packet were lost.
const RANGES_MAX: usize = 8192;

/// Maximum number of removed streams whose memory is kept for new ones.
const SPARE_MAX: usize = 64;

/// Maximum stream limit. Above it, stream ids would not fit a varint.
const STREAMS_MAX: u64 = 1 << 60;

/// Limits that the peer announced.
#[derive(Debug, Default)]
struct PeerLimits {
    /// Maximum number of bytes on all streams together.
    max_data: u64,
    /// Initial maximum number of bytes on each stream.
    stream_data: u64,
    /// Maximum number of streams that this side may open in total.
    max_streams: u64,
}

/// Limits that this side announced, and their use by the peer.
#[derive(Debug)]
struct OwnLimits {
    /// Receive window of all streams together.
    window: Window,
    window_due: bool,
    /// Sum of the highest offsets received on all streams.
    received: u64,
    /// Number of received ranges of all streams.
    ranges: usize,
    /// A frame was refused because of the limit on ranges.
    refused: bool,
    /// Announced maximum number of streams that the peer may open in total.
    max_streams: u64,
    max_streams_due: bool,
    /// The current maximum, including replacements for streams that are over. It is announced when
    /// it is worth a frame.
    max_streams_earned: u64,
}

/// All streams of one connection (see the module documentation).
pub struct Streams {
    role: Role,
    config: StreamConfig,
    pool: BlockPool,
    table: Table,
    queues: SendQueues,
    peer: PeerLimits,
    own: OwnLimits,
    /// Bytes sent on all streams together, without retransmissions.
    sent: u64,
    /// The application tried to open a stream beyond the peer's limit.
    stream_wanted: bool,
    /// Blocked frames are due in the next packet.
    blocked_due: bool,
    events: VecDeque<StreamEvent>,
    /// Removed streams, whose memory is used for the next ones.
    #[expect(clippy::vec_box, reason = "the table takes the boxes back as they are")]
    spare: Vec<Box<Stream>>,
}

impl Streams {
    /// Creates an empty set. No stream can be opened before [`Self::set_peer_limits`].
    pub fn new(role: Role, config: &StreamConfig, pool: BlockPool) -> Self {
        let streams_max = config.streams_max.min(STREAMS_MAX);
        Self {
            role,
            pool,
            table: Table::default(),
            queues: SendQueues::default(),
            peer: PeerLimits::default(),
            own: OwnLimits {
                window: Window::new(config.connection_window, config.connection_window_max),
                window_due: false,
                received: 0,
                ranges: 0,
                refused: false,
                max_streams: streams_max,
                max_streams_due: false,
                max_streams_earned: streams_max,
            },
            sent: 0,
            stream_wanted: false,
            blocked_due: false,
            events: VecDeque::new(),
            spare: Vec::new(),
            config: config.clone(),
        }
    }

    /// Applies the peer's parameters (SPEC §3.3): bytes on all streams, bytes on each, and streams
    /// that this side may open.
    pub fn set_peer_limits(&mut self, max_data: u64, max_stream_data: u64, max_streams: u64) {
        self.peer.max_data = self.peer.max_data.max(max_data);
        self.peer.stream_data = max_stream_data;
        self.peer.max_streams = self.peer.max_streams.max(max_streams.min(STREAMS_MAX));
        for (id, stream) in self.table.iter_mut() {
            if stream.send.on_max(max_stream_data) {
                self.events.push_back(StreamEvent::Writable(id));
            }
            stream.enqueue(id, &mut self.queues);
            stream.enqueue_blocked(id, &mut self.queues);
        }
    }

    /// Returns the number of streams that this side has opened.
    pub fn opened(&mut self) -> u64 {
        self.table.opened(self.role)
    }

    /// Returns the number of streams that this side may open in total. When the peer raises it,
    /// [`StreamEvent::LimitRaised`] follows.
    pub fn limit(&self) -> u64 {
        self.peer.max_streams
    }

    /// Opens a stream. Returns `None` while the peer's limit is reached.
    pub fn open(&mut self) -> Option<StreamId> {
        self.stream_wanted = self.table.opened(self.role) >= self.peer.max_streams;
        if self.stream_wanted {
            return None;
        }
        Some(self.add(self.role))
    }

    fn add(&mut self, opener: Role) -> StreamId {
        let stream = match self.spare.pop() {
            Some(mut spare) => {
                spare.send.set_max(self.peer.stream_data);
                spare
            }
            None => Box::new(Stream::new(&self.config, self.peer.stream_data)),
        };
        self.table.open(opener, stream)
    }

    /// Queues `bytes`. The caller must respect [`Self::send_capacity`], which one buffer may
    /// exceed.
    pub fn write(&mut self, id: StreamId, bytes: Bytes) -> Result<(), StreamError> {
        let stream = self.table.get_mut(id).ok_or(StreamError::Closed)?;
        stream.send.write(bytes)?;
        stream.enqueue(id, &mut self.queues);
        if stream.send.is_blocked() {
            stream.enqueue_blocked(id, &mut self.queues);
        }
        Ok(())
    }

    /// Returns the number of bytes that may be written now. After 0 on a writable stream,
    /// [`StreamEvent::Writable`] follows.
    pub fn send_capacity(&mut self, id: StreamId) -> usize {
        let room = self.table.get_mut(id).map_or(0, |stream| stream.send.capacity());
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    /// Ends the sending half after the bytes written so far. [`StreamEvent::Acked`] reports that
    /// all of them arrived.
    pub fn finish(&mut self, id: StreamId) -> Result<(), StreamError> {
        let stream = self.table.get_mut(id).ok_or(StreamError::Closed)?;
        stream.send.finish()?;
        stream.enqueue(id, &mut self.queues);
        Ok(())
    }

    /// Resets the sending half: bytes still in flight may never arrive. No effect on a half that is
    /// already over.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        let stream = self.table.get_mut(id).ok_or(StreamError::Closed)?;
        stream.send.reset(code, false);
        stream.enqueue(id, &mut self.queues);
        stream.enqueue_blocked(id, &mut self.queues);
        Ok(())
    }

    /// Stops reading: sends STOP_SENDING and discards unread bytes.
    pub fn stop(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        let stream = self.table.get_mut(id).ok_or(StreamError::Closed)?;
        let ranges = stream.recv.ranges();
        let unread = stream.recv.stop(code)?;
        stream.enqueue(id, &mut self.queues);
        self.own.ranges -= ranges;
        self.own.window_due |= self.own.window.discard(unread);
        self.forget_if_over(id);
        Ok(())
    }

    /// Returns the next bytes of a stream, in order. `srtt` is the round-trip time by which windows
    /// grow.
    ///
    /// The caller reads until [`Read::Blocked`]; otherwise no further [`StreamEvent::Readable`]
    /// comes. After [`Read::Finished`] or an error, the stream may be removed; another read then
    /// returns [`StreamError::Closed`].
    pub fn read(&mut self, now: Time, srtt: Duration, id: StreamId) -> Result<Read, StreamError> {
        let stream = self.table.get_mut(id).ok_or(StreamError::Closed)?;
        let read = stream.recv.read(now, srtt)?;
        match &read {
            Read::Slice(slice) => {
                stream.enqueue(id, &mut self.queues);
                let moved = self.own.window.consume(now, srtt, slice.len() as u64);
                self.own.window_due |= moved;
            }
            Read::Finished => self.forget_if_over(id),
            Read::Blocked => {}
        }
        Ok(read)
    }

    /// Returns the next event, in order of occurrence.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// Returns the number of streams that are not over.
    pub fn live(&self) -> usize {
        self.table.len()
    }

    fn forget_if_over(&mut self, id: StreamId) {
        let Some(stream) = self.table.get_mut(id) else { return };
        if !stream.is_over() {
            return;
        }
        stream.dequeue(id, &mut self.queues);
        self.own.ranges -= stream.recv.ranges();
        if let Some(mut stream) = self.table.remove(id)
            && self.spare.len() < SPARE_MAX
        {
            // Frees what the stream holds now; a spare stream holds no buffers.
            stream.renew(&self.config, 0);
            self.spare.push(stream);
        }
        if id.opener() != self.role {
            self.own.max_streams_earned = (self.own.max_streams_earned + 1).min(STREAMS_MAX);
            self.announce_streams();
        }
    }

    /// Announces a new stream limit once the peer has used half of its concurrent streams. That is
    /// not a frame for every stream, and never too late.
    fn announce_streams(&mut self) {
        let left = self.own.max_streams - self.table.opened(self.role.peer());
        if left <= self.config.streams_max / 2 && self.own.max_streams_earned > self.own.max_streams
        {
            self.own.max_streams = self.own.max_streams_earned;
            self.own.max_streams_due = true;
        }
    }
}

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams")
            .field("role", &self.role)
            .field("live", &self.live())
            .field("sent", &self.sent)
            .field("received", &self.own.received)
            .finish_non_exhaustive()
    }
}
