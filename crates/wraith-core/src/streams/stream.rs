//! One stream: both halves, and where it waits to send.

use super::recv::RecvHalf;
use super::send::{Delivery, SendHalf};
use super::send_queue::{Queued, SendQueue};
use super::{StreamConfig, StreamId};
use crate::frame::{FrameWriter, SentFrame, SentFrames};

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) send: SendHalf,
    pub(super) recv: RecvHalf,
    control: Queued,
    free: Queued,
    new: Queued,
    redundant: Queued,
    blocked: Queued,
}

/// Streams with something to send, by what it is.
#[derive(Debug, Default)]
pub(super) struct SendQueues {
    /// RESET_STREAM, STOP_SENDING, MAX_STREAM_DATA.
    pub(super) control: SendQueue,
    /// STREAM frames that need no flow control credit: lost bytes, and ends without bytes.
    pub(super) free: SendQueue,
    /// New bytes.
    pub(super) new: SendQueue,
    /// STREAM frames with a second copy of a retransmission: only while there is nothing else.
    pub(super) redundant: SendQueue,
    /// New bytes that the peer's limit for the stream keeps back.
    pub(super) blocked: SendQueue,
}

impl Stream {
    /// `max_send`: what the peer allows from the start.
    pub(super) fn new(config: &StreamConfig, max_send: u64) -> Self {
        Self {
            send: SendHalf::new(max_send, config.send_buffer_max),
            recv: RecvHalf::new(config),
            control: Queued::default(),
            free: Queued::default(),
            new: Queued::default(),
            redundant: Queued::default(),
            blocked: Queued::default(),
        }
    }

    /// True when both halves are over.
    pub(super) fn is_over(&self) -> bool {
        self.send.is_over() && self.recv.is_over()
    }

    fn has_control(&self) -> bool {
        self.recv.due_window().is_some()
            || self.send.due_reset().is_some()
            || self.recv.due_stop().is_some()
    }

    /// Enters the queues from which it has something to send, and leaves the others. To be called after every change.
    pub(super) fn enqueue(&mut self, id: StreamId, queues: &mut SendQueues) {
        let control = self.has_control();
        queues.control.set(id, &mut self.control, control);
        queues.free.set(id, &mut self.free, self.send.has_free());
        queues.new.set(id, &mut self.new, self.send.has_new());
        if self.send.has_retransmitted() || self.redundant.is_queued() {
            self.enqueue_redundant(id, queues);
        }
    }

    /// As [`Self::enqueue`], for the one queue that only a new limit, new bytes or an end can concern.
    #[cold]
    pub(super) fn enqueue_blocked(&mut self, id: StreamId, queues: &mut SendQueues) {
        queues.blocked.set(id, &mut self.blocked, self.send.is_blocked());
    }

    #[cold]
    fn enqueue_redundant(&mut self, id: StreamId, queues: &mut SendQueues) {
        queues.redundant.set(id, &mut self.redundant, self.send.has_redundant());
    }

    /// Leaves all queues.
    pub(super) fn dequeue(&mut self, id: StreamId, queues: &mut SendQueues) {
        queues.control.set(id, &mut self.control, false);
        queues.free.set(id, &mut self.free, false);
        queues.new.set(id, &mut self.new, false);
        queues.redundant.set(id, &mut self.redundant, false);
        queues.blocked.set(id, &mut self.blocked, false);
    }

    /// Writes what is due besides STREAM frames; false if something did not fit.
    pub(super) fn write_control(
        &mut self,
        StreamId(id): StreamId,
        out: &mut FrameWriter<'_>,
        sent: &mut SentFrames,
    ) -> bool {
        if let Some((code, final_size)) = self.send.due_reset() {
            if !out.reset_stream(id, code, final_size) {
                return false;
            }
            self.send.on_reset_sent();
            sent.push(SentFrame::ResetStream(id));
        }
        if let Some(code) = self.recv.due_stop() {
            if !out.stop_sending(id, code) {
                return false;
            }
            self.recv.set_stop_delivery(Delivery::InFlight);
            sent.push(SentFrame::StopSending(id));
        }
        if let Some(maximum) = self.recv.due_window() {
            if !out.max_stream_data(id, maximum) {
                return false;
            }
            self.recv.on_window_sent();
            sent.push(SentFrame::MaxStreamData(id));
        }
        true
    }
}
