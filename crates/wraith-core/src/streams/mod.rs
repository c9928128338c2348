//! Streams of a connection (SPEC §6): ordered bytes in both directions, under flow control.
//!
//! # How it is used
//!
//! [`Streams`] has four sides. The application opens, writes, finishes, resets, reads and stops; frames of the peer
//! go in through the `on_*` methods of `incoming.rs`; frames to the peer come out of [`Streams::write_frames`], and what
//! became of them comes back through [`Streams::on_acked`] and [`Streams::on_lost`] (`outgoing.rs`); events for the
//! application come out of [`Streams::poll_event`]. Nothing here reads a clock, allocates per packet or copies a byte
//! more than once in each direction.
//!
//! # What must stay true
//!
//! - Every byte that arrives lies within the windows we announced, or the peer broke the protocol.
//! - We send no byte beyond what the peer announced.
//! - A stream is in a send queue exactly when it has something to send from it.
//! - Whatever a limit of the peer keeps back is known at any time without a search, so that the peer can be told.
//! - A stream whose halves are both over is forgotten; frames for it are ignored, and if the peer had opened it, it
//!   may open another one.

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

/// Received ranges held apart by gaps, over all streams of a connection: 128 KiB of them. A sender with 39 MB in flight in packets
/// of 1200 bytes that loses half of them at random makes as many. What would make more is as good as lost.
const RANGES_MAX: usize = 8192;

/// Largest stream limit that makes sense: above it ids would not fit a varint.
const STREAMS_MAX: u64 = 1 << 60;

/// What the peer allows us.
#[derive(Debug, Default)]
struct PeerLimits {
    /// Bytes on all streams together.
    max_data: u64,
    /// Bytes on a stream that it did not say more about.
    stream_data: u64,
    /// Streams we may open in total.
    max_streams: u64,
}

/// What the peer was allowed.
#[derive(Debug)]
struct OwnLimits {
    /// Bytes on all streams together.
    window: Window,
    window_due: bool,
    /// Sum of the highest offsets received on all streams.
    received: u64,
    /// Sum of the received ranges of all streams.
    ranges: usize,
    /// A frame was not taken because of that.
    refused: bool,
    /// Streams that the peer may open in total, as announced.
    max_streams: u64,
    max_streams_due: bool,
    /// The same, counting streams that are over; announced when it is worth a frame.
    max_streams_earned: u64,
}

/// All streams of one connection; see the module documentation.
pub struct Streams {
    role: Role,
    config: StreamConfig,
    pool: BlockPool,
    table: Table,
    queues: SendQueues,
    peer: PeerLimits,
    own: OwnLimits,
    /// Bytes sent on all streams together, each counted once.
    sent: u64,
    /// The application wanted a stream that the peer did not allow.
    stream_wanted: bool,
    /// The peer is to be told which of its limits keep us back.
    blocked_due: bool,
    events: VecDeque<StreamEvent>,
}

impl Streams {
    /// No streams yet, and none may be opened before [`Self::set_peer_limits`].
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
            config: config.clone(),
        }
    }

    /// The peer's parameters (SPEC §3.3): bytes on all streams, bytes on each, streams we may open.
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

    /// Opens a stream; `None` while the peer allows no more.
    pub fn open(&mut self) -> Option<StreamId> {
        self.stream_wanted = self.table.opened(self.role) >= self.peer.max_streams;
        if self.stream_wanted {
            return None;
        }
        Some(self.add(self.role))
    }

    fn add(&mut self, opener: Role) -> StreamId {
        let stream = Stream::new(&self.config, self.peer.stream_data);
        self.table.open(opener, Box::new(stream))
    }

    /// Queues `bytes`. The caller respects [`Self::send_capacity`], which it may overshoot by one buffer.
    pub fn write(&mut self, id: StreamId, bytes: Bytes) -> Result<(), StreamError> {
        let stream = self.table.get_mut(id).ok_or(StreamError::Closed)?;
        stream.send.write(bytes)?;
        stream.enqueue(id, &mut self.queues);
        if stream.send.is_blocked() {
            stream.enqueue_blocked(id, &mut self.queues);
        }
        Ok(())
    }

    /// Bytes that may be written now. After 0 for a stream that can be written to, [`StreamEvent::Writable`] follows.
    pub fn send_capacity(&mut self, id: StreamId) -> usize {
        let room = self.table.get_mut(id).map_or(0, |stream| stream.send.capacity());
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    /// Ends our side after what was written; [`StreamEvent::Acked`] says when all of it arrived.
    pub fn finish(&mut self, id: StreamId) -> Result<(), StreamError> {
        let stream = self.table.get_mut(id).ok_or(StreamError::Closed)?;
        stream.send.finish()?;
        stream.enqueue(id, &mut self.queues);
        Ok(())
    }

    /// Gives up sending: bytes that have not arrived may never do. No effect on a side that is already over.
    pub fn reset(&mut self, id: StreamId, code: u64) -> Result<(), StreamError> {
        let stream = self.table.get_mut(id).ok_or(StreamError::Closed)?;
        stream.send.reset(code, false);
        stream.enqueue(id, &mut self.queues);
        stream.enqueue_blocked(id, &mut self.queues);
        Ok(())
    }

    /// Tells the peer that we will not read more, and throws unread bytes away.
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

    /// The next bytes of a stream, in order. `srtt` is the smoothed round-trip time, by which windows grow.
    ///
    /// Read until [`Read::Blocked`], or no further [`StreamEvent::Readable`] comes. After [`Read::Finished`] or an
    /// error the stream may be forgotten: another read then says [`StreamError::Closed`].
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

    /// The next event, in the order they happened.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// Streams that are not over.
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
        self.table.remove(id);
        if id.opener() != self.role {
            self.own.max_streams_earned = (self.own.max_streams_earned + 1).min(STREAMS_MAX);
            self.announce_streams();
        }
    }

    /// Tells the peer of streams it may open again once it used up half of what it may have open: not a frame for
    /// every stream, and never too late.
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
