//! The two halves of a stream as the application holds them.
//!
//! A half talks to the I/O thread only through its queue ([`crate::queue`]). Dropping a half that did not come to its
//! end tells the peer: an unfinished sender resets, an unread receiver stops.

use std::fmt;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use wraith_core::{Chunk, ConnectionHandle, StreamId};

use crate::connection::Guard;
use crate::error::{ReadError, ReadExactError, WriteError};
use crate::inbox::{IoInbox, Ready};
use crate::lock::lock;
use crate::queue::{Popped, RecvQueue, SendQueue};

/// Copies made by [`SendStream::write_all`] are at most this long: one chunk of a file.
const COPY_MAX: usize = 256 * 1024;

/// What the handles of a stream and the I/O thread share.
#[derive(Debug)]
pub(crate) struct StreamShared {
    pub(crate) id: StreamId,
    pub(crate) connection: ConnectionHandle,
    pub(crate) send: Mutex<SendQueue>,
    pub(crate) recv: Mutex<RecvQueue>,
    /// Stands in the inbox.
    queued: AtomicBool,
    inbox: Arc<IoInbox>,
}

impl StreamShared {
    pub(crate) fn new(
        id: StreamId,
        connection: ConnectionHandle,
        inbox: Arc<IoInbox>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            connection,
            send: Mutex::default(),
            recv: Mutex::default(),
            queued: AtomicBool::new(false),
            inbox,
        })
    }

    /// Has the I/O thread look at this stream.
    fn mark(self: &Arc<Self>) {
        self.inbox.push(&self.queued, || Ready::Stream(Arc::clone(self)));
    }

    /// I/O thread: looks at the queues now; later changes mark it again.
    pub(crate) fn unmark(&self) {
        self.queued.store(false, Ordering::Release);
    }
}

/// The handles of a new stream. Each keeps the connection open.
pub(crate) fn handles(shared: Arc<StreamShared>, guard: &Arc<Guard>) -> (SendStream, RecvStream) {
    lock(&shared.recv).open();
    shared.mark();
    (
        SendStream { shared: Arc::clone(&shared), _guard: Arc::clone(guard) },
        RecvStream { shared, current: None, low_water: 1, _guard: Arc::clone(guard) },
    )
}

/// The sending half of a stream.
///
/// Bytes are queued (1 MiB) and sent as flow and congestion control allow; a write waits while the queue is full.
/// Dropped without [`finish`](Self::finish), it resets the stream with code 0.
pub struct SendStream {
    shared: Arc<StreamShared>,
    _guard: Arc<Guard>,
}

impl SendStream {
    /// The stream's number (SPEC §6).
    pub fn id(&self) -> StreamId {
        self.shared.id
    }

    /// Ready when the queue has room, or the stream takes no more bytes.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), WriteError>> {
        lock(&self.shared.send).poll_room(cx)
    }

    /// Waits for room, then queues all of `chunks` together: a record that is queued whole or, on error or if the
    /// future is dropped, not at all. Nothing is copied. The queue may be overshot by the size of the record.
    ///
    /// The chunks are iterated under the stream's lock: have them ready.
    pub async fn write_chunks(
        &mut self,
        chunks: impl IntoIterator<Item = Bytes>,
    ) -> Result<(), WriteError> {
        let mut chunks = Some(chunks);
        poll_fn(|cx| {
            let mut queue = lock(&self.shared.send);
            ready!(queue.poll_room(cx))?;
            for chunk in chunks.take().into_iter().flatten() {
                queue.push(chunk);
            }
            Poll::Ready(Ok(()))
        })
        .await
        .inspect(|()| self.shared.mark())
    }

    /// Queues a copy of `bytes`, waiting for room as often as needed.
    pub async fn write_all(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        for piece in bytes.chunks(COPY_MAX) {
            poll_fn(|cx| {
                let mut queue = lock(&self.shared.send);
                ready!(queue.poll_room(cx))?;
                queue.push_copy(piece);
                Poll::Ready(Ok::<_, WriteError>(()))
            })
            .await
            .inspect(|()| self.shared.mark())?;
        }
        Ok(())
    }

    /// Ends the stream after what was written. The handle may be dropped afterwards; [`acked`](Self::acked) waits
    /// for the peer.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        lock(&self.shared.send).finish()?;
        self.shared.mark();
        Ok(())
    }

    /// Ready when the peer acknowledged every byte and the end of the finished stream.
    pub fn poll_acked(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), WriteError>> {
        lock(&self.shared.send).poll_acked(cx)
    }

    /// Waits until the peer acknowledged every byte and the end of the finished stream.
    pub async fn acked(&mut self) -> Result<(), WriteError> {
        poll_fn(|cx| self.poll_acked(cx)).await
    }

    /// Gives up: drops what is queued and tells the peer `code`. Nothing happens if the stream already ended.
    pub fn reset(&mut self, code: u64) {
        if lock(&self.shared.send).reset(code) {
            self.shared.mark();
        }
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let mut queue = lock(&self.shared.send);
        if queue.is_unfinished() && queue.reset(0) {
            drop(queue);
            self.shared.mark();
        }
    }
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendStream").field("id", &self.shared.id).finish_non_exhaustive()
    }
}

/// The receiving half of a stream.
///
/// At most 1 MiB waits in its queue; beyond that flow control holds the peer back. Dropped before its end was read, it
/// tells the peer to stop with code 0, and the peer's [`acked`](SendStream::acked) may fail: also read the end (`None`)
/// of a stream whose length you know.
pub struct RecvStream {
    shared: Arc<StreamShared>,
    /// The rest of a chunk that was read in part.
    current: Option<Chunk>,
    low_water: usize,
    _guard: Arc<Guard>,
}

impl RecvStream {
    /// The stream's number (SPEC §6).
    pub fn id(&self) -> StreamId {
        self.shared.id
    }

    /// From now on a read that has to wait goes on only when about `bytes` wait, or the end or a failure has come. For a
    /// reader that can do nothing with less: over a real link bytes come packet by packet, and being woken for each
    /// costs more than receiving it. What waits already is given out at once, however little.
    pub fn set_low_water(&mut self, bytes: usize) {
        self.low_water = bytes;
    }

    /// The next bytes, as they lie in the receive buffer; `None` at the end. Chunks are never empty.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Chunk>, ReadError>> {
        if let Some(chunk) = self.current.take() {
            return Poll::Ready(Ok(Some(chunk)));
        }
        let popped = lock(&self.shared.recv).poll_pop(cx, self.low_water);
        let Popped { chunk, tell_io } = ready!(popped)?;
        if tell_io {
            self.shared.mark();
        }
        Poll::Ready(Ok(chunk))
    }

    /// The next bytes, as they lie in the receive buffer (up to 256 KiB); `None` at the end.
    pub async fn read_chunk(&mut self) -> Result<Option<Chunk>, ReadError> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Copies the next bytes into `buffer`. The number of bytes; 0 at the end or if `buffer` is empty.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let Some(mut chunk) = self.read_chunk().await? else { return Ok(0) };
        let len = chunk.len().min(buffer.len());
        buffer[..len].copy_from_slice(&chunk[..len]);
        if len < chunk.len() {
            chunk.advance(len);
            self.current = Some(chunk);
        }
        Ok(len)
    }

    /// Fills `buffer`. If the stream ends first, says how many bytes there were.
    pub async fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ReadExactError> {
        let mut got = 0;
        while got < buffer.len() {
            match self.read(&mut buffer[got..]).await? {
                0 => return Err(ReadExactError::Ended { got }),
                len => got += len,
            }
        }
        Ok(())
    }

    /// Puts bytes back in front: the next read starts with `chunk`. For a parser that took a chunk too many.
    /// Panics if bytes were put back already and not read since.
    pub fn put_back(&mut self, chunk: Chunk) {
        assert!(self.current.is_none(), "only one chunk can be put back");
        if !chunk.is_empty() {
            self.current = Some(chunk);
        }
    }

    /// Wants no more: drops what waits and tells the peer `code`. Nothing happens if the stream already ended.
    pub fn stop(&mut self, code: u64) {
        self.current = None;
        if lock(&self.shared.recv).stop(code) {
            self.shared.mark();
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        self.stop(0);
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvStream").field("id", &self.shared.id).finish_non_exhaustive()
    }
}
