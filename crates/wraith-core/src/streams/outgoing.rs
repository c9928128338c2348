//! Writes frames to the peer, and settles them when they are acknowledged or lost.
//!
//! Order within a packet: control frames (MAX_*, RESET_STREAM, STOP_SENDING), then lost bytes, then
//! new bytes. Streams take turns, one frame each. When nothing else is left to send, a redundant
//! second copy of a retransmission is sent in a separate packet.

use super::send::{Delivery, Progress};
use super::{StreamEvent, StreamId, Streams};
use crate::frame::{FrameWriter, SentFrame, SentFrames};

impl Streams {
    /// Returns true if [`Self::write_frames`] would write into an empty packet.
    pub fn has_pending(&self) -> bool {
        self.has_control()
            || !self.queues.free.is_empty()
            || !self.queues.redundant.is_empty()
            || (!self.queues.new.is_empty() && self.credit() > 0)
    }

    /// Returns true if [`Self::write_control_frames`] would write into an empty packet.
    #[inline]
    pub fn has_control(&self) -> bool {
        self.own.window_due
            || self.own.max_streams_due
            || self.blocked_due
            || !self.queues.control.is_empty()
    }

    /// Returns the number of new bytes that the peer's connection limit allows.
    pub(super) fn credit(&self) -> u64 {
        self.peer.max_data - self.sent
    }

    /// Writes frames until the packet is full or nothing is left to send, and records them in
    /// `sent`.
    pub fn write_frames(&mut self, out: &mut FrameWriter<'_>, sent: &mut SentFrames) {
        let _ = self.write_limits(out, sent)
            && self.write_control(out, sent)
            && (!self.blocked_due || self.write_blocked(out, sent))
            && self.write_free(out, sent)
            && self.write_new(out, sent)
            && (self.queues.redundant.is_empty() || self.write_redundant(out, sent));
    }

    /// Writes only control frames: limits, resets, stops and blocked frames. They are small, few
    /// and elicit no answer, and the peer's data may depend on them. Therefore they may be sent
    /// while data must wait. Returns false when the packet is full.
    #[cold]
    pub fn write_control_frames(
        &mut self,
        out: &mut FrameWriter<'_>,
        sent: &mut SentFrames,
    ) -> bool {
        self.write_limits(out, sent)
            && self.write_control(out, sent)
            && (!self.blocked_due || self.write_blocked(out, sent))
    }

    /// Each `write_*` method returns false when the packet is full. The first two are inlined
    /// because most packets contain nothing of theirs.
    #[inline(always)]
    fn write_limits(&mut self, out: &mut FrameWriter<'_>, sent: &mut SentFrames) -> bool {
        if self.own.window_due {
            if !out.max_data(self.own.window.limit()) {
                return false;
            }
            self.own.window_due = false;
            sent.push(SentFrame::MaxData);
        }
        if self.own.max_streams_due {
            if !out.max_streams(self.own.max_streams) {
                return false;
            }
            self.own.max_streams_due = false;
            sent.push(SentFrame::MaxStreams);
        }
        true
    }

    #[inline(always)]
    fn write_control(&mut self, out: &mut FrameWriter<'_>, sent: &mut SentFrames) -> bool {
        while let Some(id) = self.queues.control.front() {
            let stream = self.table.get_mut(id).expect("queued streams are alive");
            let all = stream.write_control(id, out, sent);
            stream.enqueue(id, &mut self.queues);
            if !all {
                return false;
            }
        }
        true
    }

    fn write_free(&mut self, out: &mut FrameWriter<'_>, sent: &mut SentFrames) -> bool {
        while let Some(id) = self.queues.free.front() {
            let stream = self.table.get_mut(id).expect("queued streams are alive");
            let Some(frame) = stream.send.write_free(id.0, out) else { return false };
            sent.push(frame);
            stream.enqueue(id, &mut self.queues);
            self.queues.free.rotate(id);
        }
        true
    }

    fn write_new(&mut self, out: &mut FrameWriter<'_>, sent: &mut SentFrames) -> bool {
        while let Some(id) = self.queues.new.front() {
            let credit = self.credit();
            if credit == 0 {
                return true;
            }
            let stream = self.table.get_mut(id).expect("queued streams are alive");
            let Some((frame, bytes)) = stream.send.write_new(id.0, credit, out) else {
                return false;
            };
            self.sent += bytes;
            sent.push(frame);
            stream.enqueue(id, &mut self.queues);
            if stream.send.is_blocked() {
                stream.enqueue_blocked(id, &mut self.queues);
            }
            self.queues.new.rotate(id);
        }
        true
    }

    #[cold]
    fn write_redundant(&mut self, out: &mut FrameWriter<'_>, sent: &mut SentFrames) -> bool {
        // The first copy may be in this packet.
        if sent.iter().any(|frame| matches!(frame, SentFrame::Stream { .. })) {
            return true;
        }
        while let Some(id) = self.queues.redundant.front() {
            let stream = self.table.get_mut(id).expect("queued streams are alive");
            let Some(frame) = stream.send.write_redundant(id.0, out) else { return false };
            sent.push(frame);
            stream.enqueue(id, &mut self.queues);
            self.queues.redundant.rotate(id);
        }
        true
    }

    /// Handles the acknowledgement of `frame`. Other modules' frames are ignored.
    pub fn on_acked(&mut self, frame: &SentFrame) {
        match *frame {
            SentFrame::Stream { id, offset, len, fin } => {
                let id = StreamId(id);
                let Some(stream) = self.table.get_mut(id) else { return };
                let progress = stream.send.on_acked(offset, len, fin);
                stream.enqueue(id, &mut self.queues);
                match progress {
                    None => {}
                    Some(Progress::Room) => self.events.push_back(StreamEvent::Writable(id)),
                    Some(Progress::Complete) => {
                        self.events.push_back(StreamEvent::Acked(id));
                        self.forget_if_over(id);
                    }
                }
            }
            SentFrame::ResetStream(id) => {
                let id = StreamId(id);
                let Some(stream) = self.table.get_mut(id) else { return };
                stream.send.on_reset_acked();
                stream.enqueue(id, &mut self.queues);
                self.forget_if_over(id);
            }
            SentFrame::StopSending(id) => {
                let id = StreamId(id);
                let Some(stream) = self.table.get_mut(id) else { return };
                stream.recv.set_stop_delivery(Delivery::Acked);
                stream.enqueue(id, &mut self.queues);
                self.forget_if_over(id);
            }
            _ => {}
        }
    }

    /// Handles the loss of `frame`. Other modules' frames are ignored.
    pub fn on_lost(&mut self, frame: &SentFrame) {
        let id = match *frame {
            SentFrame::MaxData => {
                self.own.window_due = true;
                return;
            }
            SentFrame::MaxStreams => {
                self.own.max_streams_due = true;
                return;
            }
            SentFrame::Blocked => return self.announce_blocked(),
            SentFrame::Stream { id, .. }
            | SentFrame::MaxStreamData(id)
            | SentFrame::ResetStream(id)
            | SentFrame::StopSending(id) => StreamId(id),
            _ => return,
        };
        let Some(stream) = self.table.get_mut(id) else { return };
        match *frame {
            SentFrame::Stream { offset, len, fin, .. } => stream.send.on_lost(offset, len, fin),
            SentFrame::MaxStreamData(_) => stream.recv.on_window_lost(),
            SentFrame::ResetStream(_) => stream.send.on_reset_lost(),
            SentFrame::StopSending(_) => stream.recv.set_stop_delivery(Delivery::Due),
            _ => {}
        }
        stream.enqueue(id, &mut self.queues);
    }
}
