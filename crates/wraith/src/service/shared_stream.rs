//! A stream of a raw connection behind `&self`, for callers that share it among threads.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use thiserror::Error;
use wraith_transport::{Bytes, ReadError, RecvStream, SendStream, WriteError};

/// Both halves of a stream, usable by several threads or tasks. Every operation is cancel-safe.
///
/// Operations that wait on one half run one after another. [`reset`](Self::reset) and
/// [`stop`](Self::stop) do not wait, and end the waiting operations of their half.
#[derive(Debug)]
pub struct SharedStream {
    send: Half<SendStream>,
    receive: Half<Reader>,
}

/// Why [`SharedStream::read_to_end`] returned no bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadToEndError {
    /// The stream has more bytes than the limit. [`SharedStream::read`] returns them.
    #[error("the stream has more than {max} bytes")]
    TooLong {
        /// The limit of the caller.
        max: usize,
    },
    /// The stream failed before its end.
    #[error("{0}")]
    Failed(#[from] ReadError),
}

/// One half. An operation locks `stream` for single polls only, so others need not wait for it.
#[derive(Debug)]
struct Half<T> {
    /// Held by the operation that waits; the stream has room for the waker of one.
    turn: tokio::sync::Mutex<()>,
    stream: Mutex<T>,
}

impl<T> Half<T> {
    fn new(stream: T) -> Self {
        Self { turn: tokio::sync::Mutex::new(()), stream: Mutex::new(stream) }
    }

    /// Ignores poisoning: no operation panics between two changes that belong together.
    fn lock(&self) -> MutexGuard<'_, T> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Repeats `poll` until it is ready.
    async fn wait<R>(&self, mut poll: impl FnMut(&mut T, &mut Context<'_>) -> Poll<R>) -> R {
        let _turn = self.turn.lock().await;
        poll_fn(|cx| poll(&mut self.lock(), cx)).await
    }
}

/// The receiving half, and bytes that an operation took from it and did not return.
#[derive(Debug)]
struct Reader {
    stream: RecvStream,
    held: VecDeque<u8>,
}

impl SharedStream {
    /// Wraps the halves that [`Connection::open_stream`](crate::Connection::open_stream) and
    /// [`accept_stream`](crate::Connection::accept_stream) return. Dropping this drops both.
    pub fn new((send, receive): (SendStream, RecvStream)) -> Self {
        let receive = Reader { stream: receive, held: VecDeque::new() };
        Self { send: Half::new(send), receive: Half::new(receive) }
    }

    /// Waits for room in the queue of the stream (1 MiB), then queues all of `bytes`.
    ///
    /// # Errors
    /// The peer has stopped the stream, this side has ended it, or the connection has ended.
    pub async fn write(&self, bytes: Bytes) -> Result<(), WriteError> {
        self.send
            .wait(|stream, cx| pin!(stream.write_chunks([bytes.clone()])).as_mut().poll(cx))
            .await
    }

    /// Ends the stream after the written bytes, as [`SendStream::finish`] does.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn finish(&self) -> Result<(), WriteError> {
        self.send.lock().finish()
    }

    /// Waits until the peer has acknowledged every byte and the end of the finished stream.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub async fn acked(&self) -> Result<(), WriteError> {
        self.send.wait(SendStream::poll_acked).await
    }

    /// Resets the sending half, as [`SendStream::reset`] does.
    pub fn reset(&self, code: u64) {
        self.send.lock().reset(code);
    }

    /// Returns the next bytes, at least one and at most `max`. No bytes: the end of the stream, or
    /// `max` is 0.
    ///
    /// # Errors
    /// The peer has reset the stream, this side has stopped it, or the connection has ended.
    pub async fn read(&self, max: usize) -> Result<Vec<u8>, ReadError> {
        self.receive.wait(|reader, cx| reader.poll_read(cx, max)).await
    }

    /// Returns all bytes up to the end of the stream, at most `max`. Bytes that a failed or cancelled
    /// call has received stay available to later calls.
    ///
    /// # Errors
    /// There are more than `max` bytes; or as [`Self::read`].
    pub async fn read_to_end(&self, max: usize) -> Result<Vec<u8>, ReadToEndError> {
        self.receive.wait(|reader, cx| reader.poll_read_to_end(cx, max)).await
    }

    /// Stops the receiving half, as [`RecvStream::stop`] does, and drops received bytes.
    pub fn stop(&self, code: u64) {
        let mut reader = self.receive.lock();
        reader.held = VecDeque::new();
        reader.stream.stop(code);
    }
}

impl Reader {
    fn poll_read(&mut self, cx: &mut Context<'_>, max: usize) -> Poll<Result<Vec<u8>, ReadError>> {
        if max == 0 {
            return Poll::Ready(Ok(Vec::new()));
        }
        if !self.held.is_empty() {
            let len = max.min(self.held.len());
            return Poll::Ready(Ok(self.held.drain(..len).collect()));
        }
        let Some(mut chunk) = ready!(self.stream.poll_chunk(cx))? else {
            return Poll::Ready(Ok(Vec::new()));
        };
        let bytes = chunk[..chunk.len().min(max)].to_vec();
        chunk.advance(bytes.len());
        self.stream.put_back(chunk);
        Poll::Ready(Ok(bytes))
    }

    fn poll_read_to_end(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Vec<u8>, ReadToEndError>> {
        loop {
            // Exceeds the limit by at most one chunk of 256 KiB.
            if self.held.len() > max {
                return Poll::Ready(Err(ReadToEndError::TooLong { max }));
            }
            match ready!(self.stream.poll_chunk(cx))? {
                Some(chunk) => self.held.extend(&chunk[..]),
                None => return Poll::Ready(Ok(std::mem::take(&mut self.held).into())),
            }
        }
    }
}
