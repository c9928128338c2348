//! Waiting for the peer's credit.
//!
//! Limits are repeated until they arrive, so that a peer that does its part never leaves us waiting for one it granted. Nothing
//! here relies on it: who is kept back says so, and whoever hears it repeats the limit, or raises it by as little as it can.
//! That also keeps a connection alive on which the peer's application takes its time.
//!
//! The owner decides when to speak (a timer, while nothing else is in flight); see [`Streams::announce_blocked`].

use super::{STREAMS_MAX, StreamId, Streams};
use crate::Violation;
use crate::frame::{FrameWriter, SentFrame, SentFrames};

/// Streams named at once; the others have their turn the next time.
const STREAMS_NAMED_MAX: usize = 8;

impl Streams {
    /// True if a limit of the peer keeps back bytes that were written, or a stream that was to be opened.
    pub fn is_blocked(&self) -> bool {
        self.stream_wanted || !self.queues.blocked.is_empty() || self.is_data_blocked()
    }

    fn is_data_blocked(&self) -> bool {
        let unsent = !self.queues.new.is_empty() || !self.queues.blocked.is_empty();
        unsent && self.credit() == 0
    }

    /// Tells the peer, in the next packet, which of its limits keep us back; nothing if none does.
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
        // What did not fit into an otherwise empty packet waits for the next time.
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

    /// DATA_BLOCKED: the peer waits at `maximum`.
    pub fn on_data_blocked(&mut self, maximum: u64) {
        self.own.window_due |= self.own.window.on_blocked(maximum);
    }

    /// STREAM_DATA_BLOCKED: the peer waits at `maximum` on a stream.
    pub fn on_stream_data_blocked(&mut self, id: u64, maximum: u64) -> Result<(), Violation> {
        let id = StreamId(id);
        self.admit(id)?;
        if let Some(stream) = self.table.get_mut(id) {
            stream.recv.on_blocked(maximum);
            stream.enqueue(id, &mut self.queues);
        }
        Ok(())
    }

    /// STREAMS_BLOCKED: the peer may open `maximum` streams and wants another.
    pub fn on_streams_blocked(&mut self, maximum: u64) -> Result<(), Violation> {
        if maximum > STREAMS_MAX {
            return Err(Violation::protocol("stream limit above 2^60"));
        }
        self.own.max_streams = self.own.max_streams_earned;
        self.own.max_streams_due |= self.own.max_streams > maximum;
        Ok(())
    }
}
