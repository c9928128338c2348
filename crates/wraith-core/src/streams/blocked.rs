//! Blocked frames: a side announces that a limit of its peer blocks it from sending.
//!
//! Lost limit updates are retransmitted, so an honest peer that raises a limit does not leave the
//! sender blocked. Blocked frames work without these retransmissions: a blocked sender announces
//! the limit that blocks it, and the receiver repeats or slightly raises the limit. They also keep
//! a connection alive while the peer's application is slow.
//!
//! The connection decides when to announce: a timer does, while nothing else is in flight (see
//! [`Streams::announce_blocked`]).

use super::{STREAMS_MAX, StreamId, Streams};
use crate::Violation;
use crate::frame::{FrameWriter, SentFrame, SentFrames};

/// Maximum number of streams per announcement. The others follow in the next one.
const STREAMS_NAMED_MAX: usize = 8;

impl Streams {
    /// Returns true if a limit of the peer blocks written bytes or the opening of a stream.
    pub fn is_blocked(&self) -> bool {
        self.stream_wanted || !self.queues.blocked.is_empty() || self.is_data_blocked()
    }

    fn is_data_blocked(&self) -> bool {
        let unsent = !self.queues.new.is_empty() || !self.queues.blocked.is_empty();
        unsent && self.credit() == 0
    }

    /// Schedules blocked frames for the next packet, if any limit of the peer blocks this side.
    pub fn announce_blocked(&mut self) {
        self.blocked_due = self.is_blocked();
    }

    #[cold]
    pub(super) fn write_blocked(
        &mut self,
        out: &mut FrameWriter<'_>,
        sent: &mut SentFrames,
    ) -> bool {
        let before = out.len();
        let all = self.write_blocked_limits(out);
        if out.len() > before {
            sent.push(SentFrame::Blocked);
        }
        // Frames that do not fit into an otherwise empty packet wait for the next announcement.
        self.blocked_due = !all && out.len() == before;
        all
    }

    fn write_blocked_limits(&mut self, out: &mut FrameWriter<'_>) -> bool {
        if self.is_data_blocked() && !out.data_blocked(self.peer.max_data) {
            return false;
        }
        if self.stream_wanted && !out.streams_blocked(self.peer.max_streams) {
            return false;
        }
        for _ in 0..self.queues.blocked.len().min(STREAMS_NAMED_MAX) {
            let Some(id) = self.queues.blocked.front() else { break };
            let stream = self.table.get_mut(id).expect("queued streams are alive");
            if !out.stream_data_blocked(id.0, stream.send.max()) {
                return false;
            }
            self.queues.blocked.rotate(id);
        }
        true
    }

    /// Handles DATA_BLOCKED: the peer is blocked at `maximum`.
    pub fn on_data_blocked(&mut self, maximum: u64) {
        self.own.window_due |= self.own.window.on_blocked(maximum);
    }

    /// Handles STREAM_DATA_BLOCKED: the peer is blocked at `maximum` on a stream.
    pub fn on_stream_data_blocked(&mut self, id: u64, maximum: u64) -> Result<(), Violation> {
        let id = StreamId(id);
        self.admit(id)?;
        if let Some(stream) = self.table.get_mut(id) {
            stream.recv.on_blocked(maximum);
            stream.enqueue(id, &mut self.queues);
        }
        Ok(())
    }

    /// Handles STREAMS_BLOCKED: the peer may open `maximum` streams and wants another.
    pub fn on_streams_blocked(&mut self, maximum: u64) -> Result<(), Violation> {
        if maximum > STREAMS_MAX {
            return Err(Violation::protocol("stream limit above 2^60"));
        }
        self.own.max_streams = self.own.max_streams_earned;
        self.own.max_streams_due |= self.own.max_streams > maximum;
        Ok(())
    }
}
