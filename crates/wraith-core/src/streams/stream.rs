//! One stream: both halves, and where it waits to send.

use super::lane::{Lane, Ticket};
use super::recv::RecvHalf;
use super::send::{Delivery, SendHalf};
use super::{StreamConfig, StreamId};
use crate::frame::{FrameWriter, SentFrame, SentFrames};

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) send: SendHalf,
    pub(super) recv: RecvHalf,
    control: Ticket,
    free: Ticket,
    new: Ticket,
    doubtful: Ticket,
}

/// Streams with something to send, by what it is.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// RESET_STREAM, STOP_SENDING, MAX_STREAM_DATA.
    pub(super) control: Lane,
    /// STREAM frames that need no flow control credit: lost bytes, and ends without bytes.
    pub(super) free: Lane,
    /// New bytes.
    pub(super) new: Lane,
    /// STREAM frames with what was sent again and may be lost again: only while there is nothing else.
    pub(super) doubtful: Lane,
}

impl Stream {
    /// `max_send`: what the peer allows from the start.
    pub(super) fn new(config: &StreamConfig, max_send: u64) -> Self {
        Self {
            send: SendHalf::new(max_send, config.send_buffer_max),
            recv: RecvHalf::new(config),
            control: Ticket::default(),
            free: Ticket::default(),
            new: Ticket::default(),
            doubtful: Ticket::default(),
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

    /// Waits in exactly the lanes where it has something to send. To be called after every change.
    pub(super) fn line_up(&mut self, id: StreamId, lanes: &mut Lanes) {
        let control = self.has_control();
        lanes.control.set(id, &mut self.control, control);
        lanes.free.set(id, &mut self.free, self.send.has_free());
        lanes.new.set(id, &mut self.new, self.send.has_new());
        if self.send.is_in_doubt() || self.doubtful.is_waiting() {
            self.line_up_doubtful(id, lanes);
        }
    }

    #[cold]
    fn line_up_doubtful(&mut self, id: StreamId, lanes: &mut Lanes) {
        lanes.doubtful.set(id, &mut self.doubtful, self.send.has_doubtful());
    }

    /// Leaves all lanes.
    pub(super) fn stand_down(&mut self, id: StreamId, lanes: &mut Lanes) {
        lanes.control.set(id, &mut self.control, false);
        lanes.free.set(id, &mut self.free, false);
        lanes.new.set(id, &mut self.new, false);
        lanes.doubtful.set(id, &mut self.doubtful, false);
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
