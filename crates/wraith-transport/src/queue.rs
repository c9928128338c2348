//! The two bounded queues between a stream's handles and the I/O thread. They hold whole buffers,
//! in order.
//!
//! Each queue has a mutex that is held for a few instructions per buffer (256 KiB in a bulk
//! transfer), never per packet. Invariant: `cost` is the sum of the [`cost`] of everything queued.
//! A queue that had to refuse bytes remembers the waiting side (`starved`, `waker`). The side that
//! makes room notifies the waiting side, once, when half of the queue is free.

use std::collections::VecDeque;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use wraith_core::RecvSlice;

use crate::error::{ReadError, WriteError};

/// Maximum cost of a queue, bytes and overhead: four 256 KiB buffers keep both sides busy, and more
/// only adds memory.
pub(crate) const QUEUE_MAX: usize = 1 << 20;
/// Minimum limit of a stream's queue, however many streams there are: one run of merged datagrams.
const QUEUE_MIN: usize = 64 * 1024;
/// Cost of a buffer beyond its bytes, so that a million empty ones are not free.
const BUFFER_COST: usize = 128;
/// Cost up to which bytes of a stream are queued before the application accepts it, so that a small
/// request is complete when its handle is there.
const UNACCEPTED_MAX: usize = 4 * 1024;
/// Writes up to this size are collected in one buffer, to save an allocation for each.
const GATHER_MAX: usize = 4 * 1024;
/// Size of that buffer; successive messages share it.
const GATHER_BUFFER: usize = 16 * 1024;
/// Size of the first such buffer of a stream, which is often its only message.
const GATHER_BUFFER_FIRST: usize = 1024;
/// Maximum number of buffers for which an emptied queue keeps its memory.
const KEPT_BUFFERS_MAX: usize = 16;

/// Empties `queue`, and frees its memory if that is more than a small stream needs.
fn clear_deque<T>(queue: &mut VecDeque<T>) {
    queue.clear();
    if queue.capacity() > KEPT_BUFFERS_MAX {
        *queue = VecDeque::new();
    }
}

fn cost(buffer: &[u8]) -> usize {
    buffer.len() + BUFFER_COST
}

/// The queue from the application to the I/O thread.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    buffers: VecDeque<Bytes>,
    /// Small writes behind the last of `buffers`.
    gathered: BytesMut,
    cost: usize,
    /// The application has finished the stream: it ends after the queued bytes.
    finish: bool,
    /// The core was notified of that end.
    finish_taken: bool,
    /// The application has requested a reset; cleared when done.
    reset: Option<u64>,
    /// Why no more bytes are accepted.
    ended: Option<WriteError>,
    /// The peer has acknowledged everything including the end.
    acked: bool,
    waker: Option<Waker>,
}

impl SendQueue {
    /// Makes this the queue of a new stream. Keeps the memory of a small one.
    pub(crate) fn renew(&mut self) {
        let Self { mut buffers, .. } = std::mem::take(self);
        clear_deque(&mut buffers);
        self.buffers = buffers;
    }

    /// Ready when there is room, or the stream has ended.
    pub(crate) fn poll_room(&mut self, cx: &Context<'_>) -> Poll<Result<(), WriteError>> {
        if let Some(error) = self.refusal() {
            return Poll::Ready(Err(error));
        }
        if self.cost < QUEUE_MAX {
            return Poll::Ready(Ok(()));
        }
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn refusal(&self) -> Option<WriteError> {
        if self.finish || self.reset.is_some() {
            return Some(WriteError::Finished);
        }
        self.ended.clone()
    }

    /// Queues one buffer without a copy.
    pub(crate) fn push(&mut self, buffer: Bytes) {
        if buffer.is_empty() {
            return;
        }
        self.seal_gathered();
        self.cost += cost(&buffer);
        self.buffers.push_back(buffer);
    }

    /// Queues a copy of `bytes`.
    pub(crate) fn push_copy(&mut self, bytes: &[u8]) {
        if bytes.len() > GATHER_MAX {
            return self.push(Bytes::copy_from_slice(bytes));
        }
        if self.gathered.capacity() - self.gathered.len() < bytes.len() {
            self.seal_gathered();
            let first = self.gathered.capacity() == 0;
            let size = if first { GATHER_BUFFER_FIRST } else { GATHER_BUFFER };
            self.gathered.reserve(size.max(bytes.len()));
        }
        if self.gathered.is_empty() && !bytes.is_empty() {
            self.cost += BUFFER_COST;
        }
        self.gathered.extend_from_slice(bytes);
        self.cost += bytes.len();
    }

    fn seal_gathered(&mut self) {
        if !self.gathered.is_empty() {
            self.buffers.push_back(self.gathered.split().freeze());
        }
    }

    /// Ends the stream after the queued bytes.
    pub(crate) fn finish(&mut self) -> Result<(), WriteError> {
        match self.refusal() {
            Some(error) => Err(error),
            None => {
                self.finish = true;
                Ok(())
            }
        }
    }

    /// Resets the stream and drops the queued bytes. Returns false if the stream has already ended.
    pub(crate) fn reset(&mut self, code: u64) -> bool {
        if self.acked || self.ended.is_some() || self.reset.is_some() {
            return false;
        }
        self.clear();
        self.reset = Some(code);
        true
    }

    /// Returns whether the stream was finished and not reset afterwards.
    pub(crate) fn is_finished(&self) -> bool {
        self.finish && self.reset.is_none() && (self.acked || self.ended.is_none())
    }

    /// Returns whether the stream has neither been finished nor ended.
    pub(crate) fn is_unfinished(&self) -> bool {
        !self.finish && self.reset.is_none() && self.ended.is_none()
    }

    /// Ready when the peer has acknowledged everything, or never will.
    pub(crate) fn poll_acked(&mut self, cx: &Context<'_>) -> Poll<Result<(), WriteError>> {
        if self.acked {
            return Poll::Ready(Ok(()));
        }
        if let Some(error) = &self.ended {
            return Poll::Ready(Err(error.clone()));
        }
        if self.reset.is_some() {
            return Poll::Ready(Err(WriteError::Finished));
        }
        self.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// I/O thread: returns whether there are bytes to send.
    pub(crate) fn has_bytes(&self) -> bool {
        !self.buffers.is_empty() || !self.gathered.is_empty()
    }

    /// I/O thread: takes the next buffer to send.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        if self.buffers.is_empty() {
            self.seal_gathered();
        }
        let buffer = self.buffers.pop_front()?;
        self.cost -= cost(&buffer);
        Some(buffer)
    }

    /// I/O thread: returns true, once, when all bytes were taken and the stream should end.
    pub(crate) fn take_finish(&mut self) -> bool {
        let due = self.finish && self.buffers.is_empty() && self.gathered.is_empty();
        due && !std::mem::replace(&mut self.finish_taken, true)
    }

    /// I/O thread: returns whether the stream was finished and the peer lacks a part of it.
    pub(crate) fn is_delivering(&self) -> bool {
        self.finish && self.reset.is_none() && !self.is_over()
    }

    /// I/O thread: returns whether nothing more will be sent.
    pub(crate) fn is_over(&self) -> bool {
        self.acked || self.ended.is_some()
    }

    /// I/O thread: takes the application's reset request.
    pub(crate) fn take_reset(&mut self) -> Option<u64> {
        let code = self.reset.take()?;
        self.ended = Some(WriteError::Finished);
        Some(code)
    }

    /// I/O thread: takes the waker of a waiting writer if half of the queue is free.
    #[must_use]
    pub(crate) fn waker_if_room(&mut self) -> Option<Waker> {
        if self.cost <= QUEUE_MAX / 2 { self.waker.take() } else { None }
    }

    /// I/O thread: records that the peer has acknowledged everything.
    #[must_use]
    pub(crate) fn set_acked(&mut self) -> Option<Waker> {
        self.acked = true;
        self.waker.take()
    }

    /// I/O thread: records that nothing can be sent any more. The first reason is kept.
    #[must_use]
    pub(crate) fn fail(&mut self, error: WriteError) -> Option<Waker> {
        if !self.acked {
            self.ended.get_or_insert(error);
        }
        self.clear();
        self.waker.take()
    }

    fn clear(&mut self) {
        self.buffers.clear();
        self.gathered.clear();
        self.cost = 0;
    }
}

/// The queue from the I/O thread to the application.
#[derive(Debug, Default)]
pub(crate) struct RecvQueue {
    chunks: VecDeque<RecvSlice>,
    cost: usize,
    /// Maximum cost. Little until the stream is accepted, so that unaccepted streams stay under flow
    /// control.
    limit: usize,
    /// The application holds the stream.
    accepted: bool,
    /// The end of the stream follows the last chunk.
    finished: bool,
    /// The failure that follows the last chunk.
    failed: Option<ReadError>,
    /// The application has stopped reading; cleared when the peer is notified.
    stop: Option<u64>,
    /// The I/O thread left bytes in the core because the queue was full.
    starved: bool,
    /// Request: move bytes from the core, or take `stop`.
    pump_due: bool,
    waker: Option<Waker>,
    /// Cost at which `waker` is called.
    low_water: usize,
}

/// Result of [`RecvQueue::poll_pop`].
#[derive(Debug)]
pub(crate) struct PopResult {
    /// The next bytes, or the end.
    pub(crate) chunk: Option<RecvSlice>,
    /// The I/O thread must be notified of the new room.
    pub(crate) notify_io: bool,
}

impl RecvQueue {
    /// Makes this the queue of a new stream. Keeps the memory of a small one.
    pub(crate) fn renew(&mut self) {
        let Self { mut chunks, .. } = std::mem::take(self);
        clear_deque(&mut chunks);
        self.chunks = chunks;
    }

    /// Returns the next chunk, the end, or the failure, in that order. A waiting reader is woken
    /// when `low_water` bytes are queued, the queue is full, or nothing more will come.
    pub(crate) fn poll_pop(
        &mut self,
        cx: &Context<'_>,
        low_water: usize,
    ) -> Poll<Result<PopResult, ReadError>> {
        if let Some(chunk) = self.chunks.pop_front() {
            self.cost -= cost(&chunk);
            let notify_io = self.starved && self.cost <= self.limit / 2;
            if notify_io {
                self.starved = false;
                self.pump_due = true;
            }
            return Poll::Ready(Ok(PopResult { chunk: Some(chunk), notify_io }));
        }
        if self.finished {
            return Poll::Ready(Ok(PopResult { chunk: None, notify_io: false }));
        }
        if let Some(error) = &self.failed {
            return Poll::Ready(Err(error.clone()));
        }
        self.waker = Some(cx.waker().clone());
        self.low_water = low_water;
        Poll::Pending
    }

    /// Stops reading. Returns false if the stream has already ended.
    pub(crate) fn stop(&mut self, code: u64) -> bool {
        self.chunks.clear();
        self.cost = 0;
        if self.finished || self.failed.is_some() {
            return false;
        }
        self.failed = Some(ReadError::Stopped);
        self.stop = Some(code);
        self.pump_due = true;
        true
    }

    /// I/O thread: takes the application's stop request.
    pub(crate) fn take_stop(&mut self) -> Option<u64> {
        self.stop.take()
    }

    /// Allows a few bytes to be queued before the application accepts the stream.
    pub(crate) fn allow_early(&mut self) {
        self.limit = UNACCEPTED_MAX;
    }

    /// Allows bytes to be queued, once the application holds the stream. Returns true if the I/O
    /// thread must be notified, because it left bytes in the core.
    pub(crate) fn open(&mut self) -> bool {
        self.accepted = true;
        self.limit = QUEUE_MAX;
        self.pump_due = std::mem::take(&mut self.starved);
        self.pump_due
    }

    /// I/O thread: takes the application's request to pump.
    pub(crate) fn take_pump_due(&mut self) -> bool {
        std::mem::take(&mut self.pump_due)
    }

    /// I/O thread: returns whether the application does not hold the stream and will not read it.
    pub(crate) fn is_dead_unaccepted(&self) -> bool {
        !self.accepted && self.failed.is_some()
    }

    /// I/O thread: sets the limit. All receive queues of a connection, `streams` of them, share 4 ×
    /// [`QUEUE_MAX`].
    pub(crate) fn set_fair_limit(&mut self, streams: usize) {
        if self.accepted {
            self.limit = (4 * QUEUE_MAX / streams.max(1)).clamp(QUEUE_MIN, QUEUE_MAX);
        }
    }

    /// I/O thread: returns whether to read from the core now. Remembers a refusal.
    pub(crate) fn has_room(&mut self) -> bool {
        if self.is_over() {
            return false;
        }
        self.starved = self.cost >= self.limit;
        !self.starved
    }

    /// I/O thread: returns whether nothing more will be queued.
    pub(crate) fn is_over(&self) -> bool {
        self.finished || self.failed.is_some()
    }

    /// I/O thread: queues a chunk.
    pub(crate) fn push(&mut self, chunk: RecvSlice) {
        self.cost += cost(&chunk);
        self.chunks.push_back(chunk);
    }

    /// I/O thread: puts the end behind the queued chunks.
    pub(crate) fn set_finished(&mut self) {
        self.finished = true;
    }

    /// I/O thread: puts a failure behind the queued chunks. The first reason is kept.
    pub(crate) fn fail(&mut self, error: ReadError) {
        if !self.finished {
            self.failed.get_or_insert(error);
        }
    }

    /// I/O thread: takes the waker of a waiting reader if there is enough for it.
    #[must_use]
    pub(crate) fn waker_if_ready(&mut self) -> Option<Waker> {
        let enough = !self.chunks.is_empty() && (self.cost >= self.low_water || self.starved);
        if enough || self.is_over() { self.waker.take() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wraith_core::Block;

    fn cx() -> Context<'static> {
        Context::from_waker(Waker::noop())
    }

    fn chunk(bytes: &[u8]) -> RecvSlice {
        RecvSlice::new(Block::copy_of(bytes), 0..bytes.len())
    }

    #[test]
    fn small_writes_and_buffers_keep_their_order() {
        let mut queue = SendQueue::default();
        queue.push_copy(b"one ");
        queue.push_copy(b"two ");
        queue.push(Bytes::from_static(b"three "));
        queue.push_copy(b"four");
        let mut sent = Vec::new();
        while let Some(buffer) = queue.pop() {
            sent.extend_from_slice(&buffer);
        }
        assert_eq!(sent, b"one two three four");
        assert_eq!(queue.cost, 0);
    }

    #[test]
    fn a_full_send_queue_makes_the_writer_wait_until_half_is_free() {
        let mut queue = SendQueue::default();
        while queue.poll_room(&cx()).is_ready() {
            queue.push(Bytes::from(vec![0; 256 * 1024]));
        }
        assert!(queue.waker_if_room().is_none());
        assert!(queue.pop().is_some());
        assert!(queue.waker_if_room().is_none());
        assert!(queue.pop().is_some() && queue.pop().is_some());
        assert!(queue.waker_if_room().is_some());
    }

    #[test]
    fn empty_buffers_are_not_queued_and_tiny_ones_still_fill_the_queue() {
        let mut queue = SendQueue::default();
        queue.push(Bytes::new());
        assert!(queue.pop().is_none());
        let mut pushed = 0;
        while queue.poll_room(&cx()).is_ready() {
            queue.push(Bytes::from_static(b"x"));
            pushed += 1;
        }
        assert!(pushed <= QUEUE_MAX / BUFFER_COST);
    }

    #[test]
    fn finish_comes_after_the_bytes_and_refuses_more() {
        let mut queue = SendQueue::default();
        queue.push_copy(b"last");
        queue.finish().unwrap();
        assert!(!queue.take_finish());
        assert_eq!(queue.poll_room(&cx()), Poll::Ready(Err(WriteError::Finished)));
        assert!(queue.pop().is_some());
        assert!(queue.take_finish());
        assert!(!queue.take_finish());
        assert!(queue.is_delivering());
    }

    #[test]
    fn received_bytes_are_read_before_the_failure() {
        let mut queue = RecvQueue::default();
        queue.push(chunk(b"kept"));
        queue.fail(ReadError::Reset(4));
        let Poll::Ready(Ok(popped)) = queue.poll_pop(&cx(), 1) else { panic!("chunk expected") };
        assert_eq!(&**popped.chunk.as_ref().unwrap(), b"kept");
        let Poll::Ready(Err(error)) = queue.poll_pop(&cx(), 1) else { panic!("failure expected") };
        assert_eq!(error, ReadError::Reset(4));
    }

    #[test]
    fn an_unaccepted_stream_is_read_from_the_core_up_to_a_small_limit_if_at_all() {
        let mut queue = RecvQueue::default();
        queue.set_fair_limit(1);
        assert!(!queue.has_room());
        let mut queue = RecvQueue::default();
        queue.allow_early();
        while queue.has_room() {
            queue.push(chunk(&[0; 1024]));
        }
        assert!(queue.cost <= UNACCEPTED_MAX + 1024 + BUFFER_COST);
        assert!(queue.open(), "the I/O thread left bytes in the core");
        assert!(queue.has_room() && !queue.open());
    }

    #[test]
    fn a_queue_is_that_of_a_new_stream_after_its_renewal() {
        let (mut send, mut recv) = (SendQueue::default(), RecvQueue::default());
        send.push_copy(b"old");
        send.finish().unwrap();
        recv.open();
        recv.push(chunk(b"old"));
        recv.set_finished();
        send.renew();
        recv.renew();
        assert!(send.pop().is_none() && send.is_unfinished() && send.cost == 0);
        assert!(recv.chunks.is_empty() && !recv.is_over() && !recv.has_room());
    }

    #[test]
    fn the_receive_limit_is_shared_by_many_streams() {
        let held = |streams| {
            let mut queue = RecvQueue::default();
            queue.open();
            queue.set_fair_limit(streams);
            while queue.has_room() {
                queue.push(chunk(&[0; 1024]));
            }
            queue.cost
        };
        assert!(held(1) >= QUEUE_MAX && held(4) >= QUEUE_MAX);
        assert!(held(40) < QUEUE_MAX / 8);
        assert!((QUEUE_MIN..QUEUE_MIN + 2048).contains(&held(10_000)));
    }

    #[test]
    fn a_slow_reader_notifies_the_io_thread_once_when_half_is_free() {
        let mut queue = RecvQueue::default();
        queue.open();
        while queue.has_room() {
            queue.push(chunk(&[0; 64 * 1024]));
        }
        let mut told = 0;
        for _ in 0..queue.chunks.len() {
            let Poll::Ready(Ok(popped)) = queue.poll_pop(&cx(), 1) else {
                panic!("chunk expected")
            };
            told += usize::from(popped.notify_io);
        }
        assert_eq!(told, 1);
    }

    #[test]
    fn a_reader_is_woken_at_its_low_watermark_and_at_the_end() {
        let mut queue = RecvQueue::default();
        queue.open();
        assert!(queue.poll_pop(&cx(), 4096).is_pending());
        queue.push(chunk(&[0; 1400]));
        queue.push(chunk(&[0; 1400]));
        assert!(queue.waker_if_ready().is_none());
        queue.push(chunk(&[0; 1400]));
        assert!(queue.waker_if_ready().is_some());

        let mut queue = RecvQueue::default();
        queue.open();
        assert!(queue.poll_pop(&cx(), 4096).is_pending());
        queue.push(chunk(b"the last"));
        queue.set_finished();
        assert!(queue.waker_if_ready().is_some());
    }

    #[test]
    fn a_reader_with_a_too_high_watermark_is_woken_by_a_full_queue() {
        let mut queue = RecvQueue::default();
        queue.open();
        assert!(queue.poll_pop(&cx(), usize::MAX).is_pending());
        while queue.has_room() {
            assert!(queue.waker_if_ready().is_none());
            queue.push(chunk(&[0; 64 * 1024]));
        }
        assert!(queue.waker_if_ready().is_some());
    }
}
