//! One stream: both halves, and its membership in the send queues.

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

/// Send queues, one per kind of frame.
#[derive(Debug, Default)]
pub(super) struct SendQueues {
    /// RESET_STREAM, STOP_SENDING and MAX_STREAM_DATA frames.
    pub(super) control: SendQueue,
    /// STREAM frames without flow control credit: lost bytes, and ends without bytes.
    pub(super) free: SendQueue,
    /// STREAM frames with new bytes.
    pub(super) new: SendQueue,
    /// STREAM frames with a redundant copy of a retransmission, served when nothing else is
    /// pending.
    pub(super) redundant: SendQueue,
    /// New bytes that the peer's limit for the stream blocks.
    pub(super) blocked: SendQueue,
}

impl Stream {
    /// Creates a stream. `max_send` is the peer's initial limit.
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

    /// Makes this a new stream. It must have left all queues.
    pub(super) fn renew(&mut self, config: &StreamConfig, max_send: u64) {
        self.send.renew(max_send, config.send_buffer_max);
        self.recv.renew(config);
    }

    /// Returns true when both halves are over.
    pub(super) fn is_over(&self) -> bool {
        self.send.is_over() && self.recv.is_over()
    }

    fn has_control(&self) -> bool {
        self.recv.due_window().is_some()
            || self.send.due_reset().is_some()
            || self.recv.due_stop().is_some()
    }

    /// Updates the membership in all queues except `blocked`. To be called after every change.
    pub(super) fn enqueue(&mut self, id: StreamId, queues: &mut SendQueues) {
        let control = self.has_control();
        queues.control.set(id, &mut self.control, control);
        queues.free.set(id, &mut self.free, self.send.has_free());
        queues.new.set(id, &mut self.new, self.send.has_new());
        if self.send.has_retransmitted() || self.redundant.is_queued() {
            self.enqueue_redundant(id, queues);
        }
    }

    /// Updates the membership in `blocked`, which only a new limit, new bytes or an end can affect.
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

    /// Writes all due control frames. Returns false if one did not fit.
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
