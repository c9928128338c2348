//! The application's handles of the two halves of a stream.
//!
//! A half communicates with the I/O thread only through its queue ([`crate::queue`]). Dropping a
//! half before its end notifies the peer: an unfinished sender resets the stream, a receiver with
//! unread bytes stops it.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wraith_core::{RecvSlice, StreamId};

use crate::error::{ReadError, ReadExactError, WriteError};
use crate::lock::lock;
use crate::queue::{PopResult, SendQueue};
use crate::shared::{ConnectionGuard, StreamRef};

/// Maximum size of a copy by [`SendStream::write_all`]: one chunk of a file.
const COPY_MAX: usize = 256 * 1024;

/// Returns the handles of a new stream. Each keeps the connection open.
pub(crate) fn handles(shared: StreamRef, guard: &Arc<ConnectionGuard>) -> (SendStream, RecvStream) {
    if lock(&shared.recv).open() {
        shared.notify_io();
    }
    (
        SendStream { shared: shared.clone(), _guard: Arc::clone(guard) },
        RecvStream { shared, current: None, low_water: 1, _guard: Arc::clone(guard) },
    )
}

/// The sending half of a stream.
///
/// Bytes are queued (1 MiB) and sent as flow and congestion control allow; a write waits while the
/// queue is full. If this handle is dropped without [`finish`](Self::finish), the stream is reset
/// with code 0.
pub struct SendStream {
    shared: StreamRef,
    _guard: Arc<ConnectionGuard>,
}

impl SendStream {
    /// Returns the stream's number (SPEC §6).
    pub fn id(&self) -> StreamId {
        self.shared.id
    }

    /// Ready when the queue has room, or the stream accepts no more bytes.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), WriteError>> {
        self.shared.pass_on_wakes();
        lock(&self.shared.send).poll_room(cx)
    }

    /// Waits for room, then queues all of `chunks` together, without copying. On an error, or if
    /// the future is dropped, no chunk is queued. The queue may exceed its limit by their total
    /// size.
    ///
    /// Cancel safe. The chunks are iterated under the stream's lock, so the iterator must not
    /// block.
    pub async fn write_chunks(
        &mut self,
        chunks: impl IntoIterator<Item = Bytes>,
    ) -> Result<(), WriteError> {
        self.queue_chunks(chunks, |_| Ok(())).await.inspect(|()| self.shared.notify_io())
    }

    /// Waits for room, then queues all of `chunks` and calls `then` under the same lock.
    async fn queue_chunks(
        &mut self,
        chunks: impl IntoIterator<Item = Bytes>,
        then: impl Fn(&mut SendQueue) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let mut chunks = Some(chunks);
        poll_fn(|cx| {
            self.shared.pass_on_wakes();
            let mut queue = lock(&self.shared.send);
            ready!(queue.poll_room(cx))?;
            for chunk in chunks.take().into_iter().flatten() {
                queue.push(chunk);
            }
            Poll::Ready(then(&mut queue))
        })
        .await
    }

    /// Ready when a copy of the first bytes (up to 256 KiB) of `bytes` is queued. Returns their
    /// number. Nothing is queued before.
    pub fn poll_write_bytes(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        self.shared.pass_on_wakes();
        let piece = &bytes[..bytes.len().min(COPY_MAX)];
        let mut queue = lock(&self.shared.send);
        ready!(queue.poll_room(cx))?;
        queue.push_copy(piece);
        drop(queue);
        self.shared.notify_io();
        Poll::Ready(Ok(piece.len()))
    }

    /// Waits for room, then queues a copy of the first bytes (up to 256 KiB) of `bytes`. Returns
    /// their number.
    ///
    /// Cancel safe: if the future is dropped, nothing was queued.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_write_bytes(cx, bytes)).await
    }

    /// Queues a copy of `bytes`, waiting for room as often as needed.
    ///
    /// Not cancel safe: if the future is dropped, any number of the first bytes may be queued.
    pub async fn write_all(&mut self, bytes: &[u8]) -> Result<(), WriteError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let len = self.write(rest).await?;
            rest = &rest[len..];
        }
        Ok(())
    }

    /// Ends the stream after the written bytes. The handle may be dropped afterwards.
    /// [`acked`](Self::acked) waits for the peer.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        lock(&self.shared.send).finish()?;
        self.shared.notify_io_of_message();
        Ok(())
    }

    /// Waits for room, then queues all of `chunks` and the end of the stream together, without
    /// copying. A small message leaves in one packet with its end, which two calls do not ensure.
    ///
    /// Cancel safe, as [`write_chunks`](Self::write_chunks) is.
    pub async fn finish_with(
        &mut self,
        chunks: impl IntoIterator<Item = Bytes>,
    ) -> Result<(), WriteError> {
        self.queue_chunks(chunks, SendQueue::finish)
            .await
            .inspect(|()| self.shared.notify_io_of_message())
    }

    /// Ready when the peer has acknowledged every byte and the end of the finished stream.
    pub fn poll_acked(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), WriteError>> {
        self.shared.pass_on_wakes();
        lock(&self.shared.send).poll_acked(cx)
    }

    /// Waits until the peer has acknowledged every byte and the end of the finished stream. Cancel
    /// safe.
    pub async fn acked(&mut self) -> Result<(), WriteError> {
        poll_fn(|cx| self.poll_acked(cx)).await
    }

    /// Resets the stream: drops the queued bytes and sends `code` to the peer. Has no effect if the
    /// stream has already ended.
    pub fn reset(&mut self, code: u64) {
        if lock(&self.shared.send).reset(code) {
            self.shared.notify_io();
        }
    }
}

/// Shutdown finishes the stream and does not wait for the peer ([`SendStream::acked`] does). Flush
/// has no effect, because written bytes are already queued for sending.
impl AsyncWrite for SendStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_bytes(cx, bytes).map_err(Into::into)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let finished = lock(&self.shared.send).is_finished();
        Poll::Ready(if finished { Ok(()) } else { self.finish().map_err(Into::into) })
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let mut queue = lock(&self.shared.send);
        if queue.is_unfinished() && queue.reset(0) {
            drop(queue);
            self.shared.notify_io();
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
/// Its queue holds at most 1 MiB; beyond that flow control holds the peer back. If this handle is
/// dropped before the end was read, the stream is stopped with code 0, and the peer's
/// [`acked`](SendStream::acked) may fail. So read the end (`None`) even of a stream of known
/// length.
pub struct RecvStream {
    shared: StreamRef,
    /// The rest of a partially read chunk.
    current: Option<RecvSlice>,
    low_water: usize,
    _guard: Arc<ConnectionGuard>,
}

impl RecvStream {
    /// Returns the stream's number (SPEC §6).
    pub fn id(&self) -> StreamId {
        self.shared.id
    }

    /// Makes a waiting read return only once about `bytes` are queued, or the end or a failure is
    /// reached. This suits a reader that cannot use less: over a real link bytes arrive packet by
    /// packet, and a wake-up for each costs more than receiving it. Bytes that are already queued
    /// are returned at once, however few.
    pub fn set_low_watermark(&mut self, bytes: usize) {
        self.low_water = bytes;
    }

    /// Ready with the next bytes without a copy, or `None` at the end. Chunks are never empty.
    pub fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<RecvSlice>, ReadError>> {
        if let Some(chunk) = self.current.take() {
            return Poll::Ready(Ok(Some(chunk)));
        }
        self.shared.pass_on_wakes();
        let popped = lock(&self.shared.recv).poll_pop(cx, self.low_water);
        let PopResult { chunk, notify_io } = ready!(popped)?;
        if notify_io {
            self.shared.notify_io();
        }
        Poll::Ready(Ok(chunk))
    }

    /// Returns the next bytes without a copy (up to 256 KiB), or `None` at the end.
    ///
    /// Cancel safe: no byte is lost.
    pub async fn read_chunk(&mut self) -> Result<Option<RecvSlice>, ReadError> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Ready when the next bytes are copied to `buffer`. Returns their number: 0 at the end, or if
    /// `buffer` is empty.
    pub fn poll_read_bytes(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<usize, ReadError>> {
        if buffer.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let Some(mut chunk) = ready!(self.poll_chunk(cx))? else { return Poll::Ready(Ok(0)) };
        let len = chunk.len().min(buffer.len());
        buffer[..len].copy_from_slice(&chunk[..len]);
        if len < chunk.len() {
            chunk.advance(len);
            self.current = Some(chunk);
        }
        Poll::Ready(Ok(len))
    }

    /// Copies the next bytes into `buffer`. Returns their number: 0 at the end, or if `buffer` is
    /// empty.
    ///
    /// Cancel safe: no byte is lost.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        poll_fn(|cx| self.poll_read_bytes(cx, buffer)).await
    }

    /// Fills `buffer`. If the stream ends first, the error holds the number of bytes read.
    ///
    /// Not cancel safe: if the future is dropped, any number of bytes may be in the buffer already.
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

    /// Puts `chunk` back in front, so that the next read starts with it. For a parser that has read
    /// too far. Panics if another chunk was put back and has not been read yet.
    pub fn put_back(&mut self, chunk: RecvSlice) {
        assert!(self.current.is_none(), "only one chunk can be put back");
        if !chunk.is_empty() {
            self.current = Some(chunk);
        }
    }

    /// Stops reading: drops the queued bytes and sends `code` to the peer. Has no effect if the
    /// stream has already ended.
    pub fn stop(&mut self, code: u64) {
        self.current = None;
        if lock(&self.shared.recv).stop(code) {
            self.shared.notify_io();
        }
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let len = ready!(self.poll_read_bytes(cx, buffer.initialize_unfilled()))?;
        buffer.advance(len);
        Poll::Ready(Ok(()))
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        // Its task may have been the first of a batch, and was cancelled.
        self.shared.pass_on_wakes();
        self.stop(0);
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvStream").field("id", &self.shared.id).finish_non_exhaustive()
    }
}
