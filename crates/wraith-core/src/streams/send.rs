//! The sending half of a stream.
//!
//! Each byte below `sent` is in flight, lost or acknowledged. Lost bytes are in `lost` and are
//! retransmitted before new bytes leave. Bytes from `sent` on are new; only these need flow control
//! credit. The half is over when every byte and the end were acknowledged, or when the reset was
//! acknowledged.

use std::ops::Range;

use bytes::Bytes;

use super::send_buffer::SendBuffer;
use crate::frame::{FrameWriter, SentFrame};
use crate::{RangeSet, StreamError};

/// Free room at which a blocked writer is woken, so that it does not wake for each packet.
const WAKE_BYTES: u64 = 64 * 1024;
/// The same threshold as a fraction of a small buffer.
const WAKE_PART: u64 = 8;
/// Bytes accepted beyond the peer's limit. They suffice to send at once when the limit rises. They
/// are few enough that bytes just read are still in the cache when they are sealed.
const AHEAD_BYTES: u64 = 512 * 1024;
/// Divisor: retransmissions are duplicated only if they are at most this fraction of the
/// outstanding bytes. More losses indicate a congested path.
const REPEATED_PART: u64 = 8;

/// Delivery state of a frame that must arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// To be sent or retransmitted.
    Due,
    InFlight,
    Acked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SendState {
    /// Accepts bytes.
    Open,
    /// Accepts no more bytes; FIN announces the end.
    Finishing(Delivery),
    /// Reset by the application, or at the peer's request (`stopped`).
    Reset { code: u64, delivery: Delivery, stopped: bool },
}

/// Effect of an acknowledgement on the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// A blocked writer has room again.
    Room,
    /// The peer acknowledged every byte and the end.
    Complete,
}

#[derive(Debug)]
pub(super) struct SendHalf {
    state: SendState,
    buffer: SendBuffer,
    buffer_max: u64,
    /// The writer used up the capacity and waits for room.
    writer_blocked: bool,
    sent: u64,
    lost: RangeSet,
    /// Retransmitted bytes that are neither acknowledged nor lost again. Bytes sent a second time
    /// as redundant copies are removed.
    retransmitted: RangeSet,
    /// Number of bytes in `retransmitted`.
    retransmitted_bytes: u64,
    /// The peer's limit, an absolute offset.
    max: u64,
}

impl SendHalf {
    pub(super) fn new(max: u64, buffer_max: u64) -> Self {
        Self {
            state: SendState::Open,
            buffer: SendBuffer::default(),
            buffer_max,
            writer_blocked: false,
            sent: 0,
            lost: RangeSet::new(),
            retransmitted: RangeSet::new(),
            retransmitted_bytes: 0,
            max,
        }
    }

    /// Sets the peer's limit of a new stream.
    pub(super) fn set_max(&mut self, max: u64) {
        self.max = max;
    }

    /// Makes this the half of a new stream. Keeps the memory of a small one.
    pub(super) fn renew(&mut self, max: u64, buffer_max: u64) {
        let Self { mut buffer, mut lost, mut retransmitted, .. } =
            std::mem::replace(self, Self::new(max, buffer_max));
        buffer.reset();
        lost.clear();
        retransmitted.clear();
        (self.buffer, self.lost, self.retransmitted) = (buffer, lost, retransmitted);
    }

    /// Returns true when nothing is left to send or to be acknowledged.
    pub(super) fn is_over(&self) -> bool {
        match self.state {
            SendState::Open => false,
            SendState::Finishing(fin) => fin == Delivery::Acked && self.buffer.is_acked(),
            SendState::Reset { delivery, .. } => delivery == Delivery::Acked,
        }
    }

    fn require_open(&self) -> Result<(), StreamError> {
        match self.state {
            SendState::Open => Ok(()),
            SendState::Reset { code, stopped: true, .. } => Err(StreamError::Stopped(code)),
            SendState::Finishing(_) | SendState::Reset { .. } => Err(StreamError::Closed),
        }
    }

    pub(super) fn write(&mut self, bytes: Bytes) -> Result<(), StreamError> {
        self.require_open()?;
        self.buffer.push(bytes);
        self.writer_blocked |= self.room() == 0;
        Ok(())
    }

    /// Returns the number of bytes that may be written now. After 0, the writer is woken later.
    pub(super) fn capacity(&mut self) -> u64 {
        if self.state != SendState::Open {
            return 0;
        }
        let room = self.room();
        self.writer_blocked |= room == 0;
        room
    }

    fn room(&self) -> u64 {
        let allowed = self.max.saturating_add(AHEAD_BYTES).saturating_sub(self.buffer.end());
        self.buffer_max.saturating_sub(self.buffer.held()).min(allowed)
    }

    pub(super) fn finish(&mut self) -> Result<(), StreamError> {
        self.require_open()?;
        self.state = SendState::Finishing(Delivery::Due);
        Ok(())
    }

    /// Resets the half, at the peer's request (`stopped`) or the application's. Returns false,
    /// without effect, if the half is over or already reset.
    pub(super) fn reset(&mut self, code: u64, stopped: bool) -> bool {
        if self.is_over() || matches!(self.state, SendState::Reset { .. }) {
            return false;
        }
        self.state = SendState::Reset { code, delivery: Delivery::Due, stopped };
        self.buffer.clear();
        self.lost.clear();
        self.retransmitted.clear();
        self.retransmitted_bytes = 0;
        true
    }

    /// Raises the peer's limit. Returns true if a blocked writer has room again.
    pub(super) fn on_max(&mut self, max: u64) -> bool {
        self.max = self.max.max(max);
        self.state == SendState::Open && self.relieve()
    }

    /// Returns true, once, if a blocked writer has enough room to be woken.
    fn relieve(&mut self) -> bool {
        let relieved = self.writer_blocked && self.room() >= self.wake_bytes();
        self.writer_blocked &= !relieved;
        relieved
    }

    fn wake_bytes(&self) -> u64 {
        WAKE_BYTES.min(self.buffer_max / WAKE_PART).max(1)
    }

    /// Returns true if data can be sent without flow control credit: lost bytes, or an end without
    /// bytes.
    pub(super) fn has_free(&self) -> bool {
        !self.lost.is_empty() || self.owes_bare_fin()
    }

    /// Returns true if a retransmission is neither acknowledged nor lost yet.
    pub(super) fn has_retransmitted(&self) -> bool {
        self.retransmitted_bytes > 0
    }

    /// Returns true if a retransmission should be sent a second time, as a redundant copy. That is
    /// the case when it blocks new bytes (the peer's window or this side's send buffer is full
    /// behind it), or when it is the end of the stream. The copy then delays nothing. It saves a
    /// round trip if the retransmission was lost too.
    pub(super) fn has_redundant(&self) -> bool {
        if !self.has_retransmitted() || !self.lost.is_empty() {
            return false;
        }
        let all = self.sent == self.buffer.end();
        let ends = self.state != SendState::Open;
        let waits = self.sent == self.max || (all && (ends || self.room() < self.wake_bytes()));
        waits && self.retransmitted_bytes * REPEATED_PART <= self.sent - self.buffer.acked()
    }

    fn owes_bare_fin(&self) -> bool {
        self.state == SendState::Finishing(Delivery::Due) && self.sent == self.buffer.end()
    }

    /// Returns true if new bytes can be sent within the stream's own limit.
    pub(super) fn has_new(&self) -> bool {
        self.sent < self.buffer.end().min(self.max)
            && !matches!(self.state, SendState::Reset { .. })
    }

    /// Returns true if the peer's limit for the stream blocks new bytes.
    pub(super) fn is_blocked(&self) -> bool {
        self.sent == self.max
            && self.sent < self.buffer.end()
            && !matches!(self.state, SendState::Reset { .. })
    }

    /// Returns the peer's limit, an absolute offset.
    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// Returns the error code and final size if a RESET_STREAM is due.
    pub(super) fn due_reset(&self) -> Option<(u64, u64)> {
        match self.state {
            SendState::Reset { code, delivery: Delivery::Due, .. } => Some((code, self.sent)),
            _ => None,
        }
    }

    pub(super) fn on_reset_sent(&mut self) {
        self.set_reset_delivery(Delivery::InFlight);
    }

    pub(super) fn on_reset_lost(&mut self) {
        self.set_reset_delivery(Delivery::Due);
    }

    pub(super) fn on_reset_acked(&mut self) {
        self.set_reset_delivery(Delivery::Acked);
    }

    fn set_reset_delivery(&mut self, new: Delivery) {
        if let SendState::Reset { delivery, .. } = &mut self.state
            && *delivery != Delivery::Acked
        {
            *delivery = new;
        }
    }

    /// Writes one frame of [`Self::has_free`]. Returns `None` if it does not fit.
    pub(super) fn write_free(&mut self, id: u64, out: &mut FrameWriter<'_>) -> Option<SentFrame> {
        let range = self.lost.first().unwrap_or(self.sent..self.sent);
        let frame = self.write_frame(id, range.start, range.end, out)?;
        if let SentFrame::Stream { offset, len, .. } = frame {
            let range = offset..offset + u64::from(len);
            self.lost.remove(range.clone());
            self.retransmitted.insert(range);
            self.retransmitted_bytes += u64::from(len);
        }
        Some(frame)
    }

    /// Writes one frame of [`Self::has_redundant`]. Returns `None` if it does not fit.
    pub(super) fn write_redundant(
        &mut self,
        id: u64,
        out: &mut FrameWriter<'_>,
    ) -> Option<SentFrame> {
        let range = self.retransmitted.first()?;
        let frame = self.write_frame(id, range.start, range.end, out)?;
        if let SentFrame::Stream { offset, len, .. } = frame {
            self.settle_retransmitted(offset..offset + u64::from(len));
        }
        Some(frame)
    }

    /// Handles a retransmitted `range` that was acknowledged, lost, or sent a second time.
    fn settle_retransmitted(&mut self, range: Range<u64>) {
        if self.has_retransmitted() {
            self.remove_from_retransmitted(range);
        }
    }

    #[cold]
    fn remove_from_retransmitted(&mut self, range: Range<u64>) {
        self.retransmitted_bytes -= self.retransmitted.remove(range);
    }

    /// Writes one frame of at most `credit` new bytes, and returns it with their number. Returns
    /// `None` if it does not fit.
    #[inline]
    pub(super) fn write_new(
        &mut self,
        id: u64,
        credit: u64,
        out: &mut FrameWriter<'_>,
    ) -> Option<(SentFrame, u64)> {
        let end = self.buffer.end().min(self.max).min(self.sent.saturating_add(credit));
        let before = self.sent;
        let frame = self.write_frame(id, before, end, out)?;
        if let SentFrame::Stream { len, .. } = frame {
            self.sent += u64::from(len);
        }
        Some((frame, self.sent - before))
    }

    #[inline]
    fn write_frame(
        &mut self,
        id: u64,
        offset: u64,
        end: u64,
        out: &mut FrameWriter<'_>,
    ) -> Option<SentFrame> {
        let last = end == self.buffer.end() && matches!(self.state, SendState::Finishing(_));
        // A packet is far below 4 GiB; the rest is written later.
        let available = u32::try_from(end - offset).unwrap_or(u32::MAX);
        let buffer = &mut self.buffer;
        let source = |to: &mut [u8], ends: bool| {
            let held = if ends { buffer.slice(offset, to.len()) } else { None };
            if held.is_none() {
                buffer.copy(offset, to);
            }
            held
        };
        let len = out.stream_from(id, offset, available as usize, last, source)?;
        let fin = last && len as u64 == end - offset;
        if fin && self.state == SendState::Finishing(Delivery::Due) {
            self.state = SendState::Finishing(Delivery::InFlight);
        }
        Some(SentFrame::Stream { id, offset, len: len as u32, fin })
    }

    /// Handles an acknowledgement. Returns its effect on the application, if any.
    #[inline]
    pub(super) fn on_acked(&mut self, offset: u64, len: u32, fin: bool) -> Option<Progress> {
        if matches!(self.state, SendState::Reset { .. }) || self.is_over() {
            return None;
        }
        let range = offset..offset + u64::from(len);
        if !self.lost.is_empty() {
            self.lost.remove(range.clone());
        }
        self.settle_retransmitted(range.clone());
        self.buffer.ack(range);
        if fin {
            self.state = SendState::Finishing(Delivery::Acked);
        }
        if self.is_over() {
            return Some(Progress::Complete);
        }
        (self.state == SendState::Open && self.relieve()).then_some(Progress::Room)
    }

    pub(super) fn on_lost(&mut self, offset: u64, len: u32, fin: bool) {
        if matches!(self.state, SendState::Reset { .. }) {
            return;
        }
        self.settle_retransmitted(offset..offset + u64::from(len));
        for gap in self.buffer.unacked(offset..offset + u64::from(len)) {
            self.lost.insert(gap);
        }
        if fin && self.state == SendState::Finishing(Delivery::InFlight) {
            self.state = SendState::Finishing(Delivery::Due);
        }
    }
}
