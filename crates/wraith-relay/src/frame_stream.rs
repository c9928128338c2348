//! Frames over one TLS connection, both directions in one task.
//!
//! Bytes are read into a buffer that all connections of a thread share, and whole frames are parsed
//! in place. A connection keeps only the received part of an incomplete frame, so an idle
//! connection holds no memory.
//!
//! Invariant: an incomplete frame holds at most [`CONTROL_MAX`] bytes, or one datagram's bytes
//! counted in the shared budget. If the budget has no room, the datagram is skipped.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::budget::Budget;
use crate::frame::{CONTROL_MAX, FRAME_MAX, LENGTH_BYTES, Malformed};
use crate::outbox::Outbox;

/// Bytes read at once: four TLS records.
const READ_BYTES: usize = 64 * 1024;
/// Capacity of the write buffer that is kept between writes.
const WRITE_KEPT: usize = 1024;
/// Type of a datagram frame.
const DATAGRAM: u8 = 0;

thread_local! {
    static READ: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Frame reader and writer of one stream; see the module documentation.
#[derive(Debug)]
pub struct FrameStream<S> {
    stream: S,
    incoming: FrameAssembler,
    outgoing: Vec<u8>,
    written: usize,
    unflushed: bool,
    /// Bytes written to the stream so far.
    bytes_written: u64,
}

impl<S: AsyncRead + AsyncWrite + Unpin> FrameStream<S> {
    /// Wraps a stream whose handshake is complete.
    pub fn new(stream: S, budget: Arc<Budget>) -> Self {
        let incoming = FrameAssembler::new(budget);
        Self {
            stream,
            incoming,
            outgoing: Vec::new(),
            written: 0,
            unflushed: false,
            bytes_written: 0,
        }
    }

    /// Reads once and passes every whole frame, without its length, to `take`.
    ///
    /// # Errors
    /// The connection ended or failed, the bytes are not a frame, or `take` returned an error.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Poll<io::Result<()>> {
        READ.with_borrow_mut(|memory| {
            memory.resize(READ_BYTES, 0);
            let mut buf = ReadBuf::new(memory);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buf))?;
            if buf.filled().is_empty() {
                return Poll::Ready(Err(ErrorKind::UnexpectedEof.into()));
            }
            Poll::Ready(self.incoming.feed(buf.filled(), &mut take))
        })
    }

    /// Reads until the first frame of the connection is whole and passes it to `take`.
    ///
    /// # Errors
    /// No valid frame arrived. The error holds the first two bytes received, which may identify
    /// another protocol.
    pub fn poll_read_first(
        &mut self,
        cx: &mut Context<'_>,
        mut take: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> Poll<Result<(), [u8; LENGTH_BYTES]>> {
        let mut taken = false;
        loop {
            let read = self.poll_read(cx, |frame| {
                // Frames sent before the response to the first one are not allowed.
                if std::mem::replace(&mut taken, true) {
                    return Err(ErrorKind::InvalidData.into());
                }
                take(frame)
            });
            match ready!(read) {
                Ok(()) if taken => return Poll::Ready(Ok(())),
                Ok(()) => {}
                Err(_) => return Poll::Ready(Err(self.incoming.first)),
            }
        }
    }

    /// Reports whether all bytes taken from the outbox are written.
    pub fn is_drained(&self) -> bool {
        self.outgoing.is_empty() && !self.unflushed
    }

    /// Returns the bytes written so far. If this number does not change while [`Self::is_drained`]
    /// is false, the peer has stopped reading.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Returns the stream for its shutdown.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Returns the stream for another protocol.
    pub fn into_inner(self) -> S {
        self.stream
    }

    /// Writes the content of `outbox` until it is empty or the stream accepts no more bytes. If the
    /// outbox is empty, the task is woken on the next frame. Ready only when the connection is
    /// over.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, outbox: &Outbox) -> Poll<io::Error> {
        loop {
            while self.written < self.outgoing.len() {
                let rest = &self.outgoing[self.written..];
                match ready!(Pin::new(&mut self.stream).poll_write(cx, rest)) {
                    Ok(0) => return Poll::Ready(ErrorKind::WriteZero.into()),
                    Ok(written) => {
                        self.written += written;
                        self.bytes_written += written as u64;
                    }
                    Err(error) => return Poll::Ready(error),
                }
                self.unflushed = true;
            }
            self.written = 0;
            self.outgoing.clear();
            if !outbox.take(cx, &mut self.outgoing) {
                return Poll::Ready(ErrorKind::ConnectionAborted.into());
            }
            if self.outgoing.is_empty() {
                self.outgoing.shrink_to(WRITE_KEPT);
                if self.unflushed {
                    match ready!(Pin::new(&mut self.stream).poll_flush(cx)) {
                        Ok(()) => self.unflushed = false,
                        Err(error) => return Poll::Ready(error),
                    }
                }
                return Poll::Pending;
            }
        }
    }
}

/// Splits a stream into frames.
#[derive(Debug)]
struct FrameAssembler {
    /// The incomplete frame, from its length on.
    partial: Vec<u8>,
    /// Remaining bytes of a skipped frame.
    skip: usize,
    budget: Arc<Budget>,
    /// Bytes taken from the budget for `partial`.
    counted: usize,
    /// First two bytes of the stream.
    first: [u8; LENGTH_BYTES],
}

impl FrameAssembler {
    fn new(budget: Arc<Budget>) -> Self {
        Self { partial: Vec::new(), skip: 0, budget, counted: 0, first: [0; LENGTH_BYTES] }
    }

    fn feed(
        &mut self,
        mut bytes: &[u8],
        take: &mut impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.first == [0; LENGTH_BYTES]
            && let Some(first) = bytes.first_chunk()
        {
            self.first = *first;
        }
        loop {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            if bytes.is_empty() {
                return Ok(());
            }
            if self.partial.is_empty()
                && let Some(len) = whole(bytes)?
                && len <= bytes.len()
            {
                take(&bytes[LENGTH_BYTES..len])?;
                bytes = &bytes[len..];
                continue;
            }
            // Appends single bytes until length and type are known, then the whole frame.
            let wanted = match whole(&self.partial)? {
                Some(len) => len,
                None => {
                    self.partial.push(bytes[0]);
                    bytes = &bytes[1..];
                    if let Some(len) = whole(&self.partial)? {
                        self.start(len);
                    }
                    continue;
                }
            };
            let missing = (wanted - self.partial.len()).min(bytes.len());
            self.partial.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if self.partial.len() == wanted {
                take(&self.partial[LENGTH_BYTES..])?;
                self.reset();
            }
        }
    }

    /// Reserves memory for an incomplete frame of `len` bytes including the length, or skips the
    /// rest of it.
    fn start(&mut self, len: usize) {
        if len <= LENGTH_BYTES + CONTROL_MAX {
            self.partial.reserve_exact(len - self.partial.len());
        } else if self.budget.take(0, len) {
            self.counted = len;
            self.partial.reserve_exact(len - self.partial.len());
        } else {
            self.skip = len - self.partial.len();
            self.partial = Vec::new();
        }
    }

    fn reset(&mut self) {
        self.partial = Vec::new();
        self.budget.release(std::mem::take(&mut self.counted));
    }
}

impl Drop for FrameAssembler {
    fn drop(&mut self) {
        self.reset();
    }
}

/// Returns the length of the frame at the start of `bytes`, including the length field. `None`
/// until length and type have arrived.
fn whole(bytes: &[u8]) -> io::Result<Option<usize>> {
    let [high, low, kind, ..] = *bytes else { return Ok(None) };
    let len = usize::from(u16::from_be_bytes([high, low]));
    let most = if kind == DATAGRAM { FRAME_MAX } else { CONTROL_MAX };
    if (1..=most).contains(&len) {
        Ok(Some(LENGTH_BYTES + len))
    } else {
        Err(io::Error::new(ErrorKind::InvalidData, Malformed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{ClientFrame, put_datagram};

    fn assembler(bytes: usize) -> FrameAssembler {
        FrameAssembler::new(Arc::new(Budget::new(bytes)))
    }

    /// Returns a stream of a few frames, and their bodies.
    fn frames() -> (Vec<u8>, Vec<Vec<u8>>) {
        let (mut stream, mut bodies) = (Vec::new(), Vec::new());
        for i in 0..6_u8 {
            let start = stream.len();
            if i.is_multiple_of(2) {
                ClientFrame::Ping(i.into()).encode(&mut stream);
            } else {
                put_datagram(&mut stream, i.into(), &vec![i; 1000 * usize::from(i)]);
            }
            bodies.push(stream[start + 2..].to_vec());
        }
        (stream, bodies)
    }

    fn feed(
        assembler: &mut FrameAssembler,
        stream: &[u8],
        step: usize,
    ) -> io::Result<Vec<Vec<u8>>> {
        let mut got = Vec::new();
        for piece in stream.chunks(step) {
            assembler.feed(piece, &mut |frame| {
                got.push(frame.to_vec());
                Ok(())
            })?;
        }
        Ok(got)
    }

    #[test]
    fn frames_are_parsed_at_any_split_of_the_stream() {
        let (stream, bodies) = frames();
        for step in [1, 2, 3, 7, 500, 5000, stream.len()] {
            let mut assembler = assembler(1 << 20);
            assert_eq!(feed(&mut assembler, &stream, step).unwrap(), bodies, "step {step}");
            assert_eq!(assembler.budget.free(), 1 << 20);
            assert_eq!(assembler.partial.capacity(), 0);
        }
    }

    #[test]
    fn without_memory_datagrams_are_skipped_and_control_frames_arrive() {
        let (stream, bodies) = frames();
        let got = feed(&mut assembler(0), &stream, 100).unwrap();
        assert_eq!(got, [0, 2, 4].map(|i| bodies[i].clone()));
    }

    #[test]
    fn excessive_lengths_end_the_connection_before_memory_is_reserved() {
        for head in [[0, 0, 6], [0xff, 0xff, 6], [0xff, 0xff, 0], [1, 0x91, 6]] {
            let mut assembler = assembler(1 << 20);
            assert!(feed(&mut assembler, &head, 1).is_err());
            assert!(assembler.partial.capacity() <= 8);
        }
    }
}
