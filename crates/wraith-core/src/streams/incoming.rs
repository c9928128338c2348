//! Handles frames of the peer. Each frame is validated before anything changes. An error is a
//! protocol violation, and the connection must be closed.

use super::{RANGES_MAX, STREAMS_MAX, StreamEvent, StreamId, Streams};
use crate::Violation;

impl Streams {
    /// Handles STREAM: `data` at `offset`, the end of the stream if `fin`.
    pub fn on_stream(
        &mut self,
        id: u64,
        offset: u64,
        fin: bool,
        data: &[u8],
    ) -> Result<(), Violation> {
        let id = StreamId(id);
        if self.table.get_mut(id).is_none() {
            self.admit(id)?;
        }
        let Some(stream) = self.table.get_mut(id) else { return Ok(()) };
        let end = offset
            .checked_add(data.len() as u64)
            .ok_or(Violation::protocol("stream offset above 2^64"))?;
        let raised = stream.recv.check(end, fin)?;
        self.own.check(raised)?;
        let ranges = stream.recv.ranges();
        if self.own.ranges >= RANGES_MAX && stream.recv.makes_range(offset..end) {
            self.own.refused = true;
            return Ok(());
        }
        self.own.received += raised;
        let arrival = stream.recv.accept(&self.pool, offset, fin, data);
        self.own.ranges = self.own.ranges - ranges + stream.recv.ranges();
        if arrival.gap {
            self.own.window_due |= self.own.window.behind_gap(self.own.received);
            if stream.recv.due_window().is_some() {
                stream.enqueue(id, &mut self.queues);
            }
        }
        if arrival.readable {
            self.events.push_back(StreamEvent::Readable(id));
        }
        if arrival.discarded > 0 {
            self.own.window_due |= self.own.window.discard(arrival.discarded);
        }
        if fin {
            // A due window update is obsolete, and a stopped half may be over.
            stream.enqueue(id, &mut self.queues);
            self.forget_if_over(id);
        }
        Ok(())
    }

    /// Returns true, once, if bytes were refused because they would have created one gap too many.
    /// Their packet must not be acknowledged. Bytes adjacent to received ones are always accepted,
    /// so the first gap can always be filled.
    pub fn take_refused(&mut self) -> bool {
        std::mem::take(&mut self.own.refused)
    }

    /// Handles RESET_STREAM.
    pub fn on_reset_stream(
        &mut self,
        id: u64,
        code: u64,
        final_size: u64,
    ) -> Result<(), Violation> {
        let id = StreamId(id);
        self.admit(id)?;
        let Some(stream) = self.table.get_mut(id) else { return Ok(()) };
        let raised = stream.recv.check(final_size, true)?;
        self.own.check(raised)?;
        self.own.received += raised;

        let ranges = stream.recv.ranges();
        let Some(discarded) = stream.recv.on_reset(code, final_size) else { return Ok(()) };
        self.own.ranges = self.own.ranges - ranges + stream.recv.ranges();
        stream.enqueue(id, &mut self.queues);
        self.own.window_due |= self.own.window.discard(discarded.bytes);
        if discarded.tell {
            self.events.push_back(StreamEvent::Reset { id, code });
        }
        self.forget_if_over(id);
        Ok(())
    }

    /// Handles STOP_SENDING with RESET_STREAM (RFC 9000 §3.5), unless everything was acknowledged
    /// already.
    pub fn on_stop_sending(&mut self, id: u64, code: u64) -> Result<(), Violation> {
        let id = StreamId(id);
        self.admit(id)?;
        let Some(stream) = self.table.get_mut(id) else { return Ok(()) };
        if stream.send.reset(code, true) {
            stream.enqueue(id, &mut self.queues);
            stream.enqueue_blocked(id, &mut self.queues);
            self.events.push_back(StreamEvent::Stopped { id, code });
        }
        Ok(())
    }

    /// Handles MAX_DATA.
    pub fn on_max_data(&mut self, maximum: u64) -> Result<(), Violation> {
        self.peer.max_data = self.peer.max_data.max(maximum);
        Ok(())
    }

    /// Handles MAX_STREAM_DATA.
    pub fn on_max_stream_data(&mut self, id: u64, maximum: u64) -> Result<(), Violation> {
        let id = StreamId(id);
        self.admit(id)?;
        if let Some(stream) = self.table.get_mut(id) {
            if stream.send.on_max(maximum) {
                self.events.push_back(StreamEvent::Writable(id));
            }
            stream.enqueue(id, &mut self.queues);
            stream.enqueue_blocked(id, &mut self.queues);
        }
        Ok(())
    }

    /// Handles MAX_STREAMS.
    pub fn on_max_streams(&mut self, maximum: u64) -> Result<(), Violation> {
        if maximum > STREAMS_MAX {
            return Err(Violation::protocol("stream limit above 2^60"));
        }
        if maximum > self.peer.max_streams {
            self.peer.max_streams = maximum;
            self.events.push_back(StreamEvent::LimitRaised);
        }
        self.stream_wanted &= self.table.opened(self.role) >= self.peer.max_streams;
        Ok(())
    }

    /// Admits a frame for stream `id`: "using a stream opens all lower ones of that kind" (SPEC
    /// §6), within the peer's limit.
    pub(super) fn admit(&mut self, id: StreamId) -> Result<(), Violation> {
        let opened = self.table.opened(id.opener());
        if id.sequence() < opened {
            return Ok(());
        }
        let peer = self.role.peer();
        if id.opener() != peer {
            return Err(Violation::protocol("a frame for a stream that was never opened"));
        }
        if id.sequence() >= self.own.max_streams {
            return Err(Violation::stream_limit("more streams than allowed"));
        }
        for _ in opened..=id.sequence() {
            let id = self.add(peer);
            self.events.push_back(StreamEvent::Opened(id));
        }
        self.announce_streams();
        Ok(())
    }
}

impl super::OwnLimits {
    /// Checks that `more` bytes fit the receive window of all streams.
    fn check(&self, more: u64) -> Result<(), Violation> {
        if more > self.window.limit() - self.received {
            return Err(Violation::flow_control("more bytes on all streams than allowed"));
        }
        Ok(())
    }
}
