//! Source of a byte stream: the stream is read once, hashed once, and kept until the receiver has
//! it.
//!
//! Data from a pipe cannot be read again, so a piece stays in memory until the receiver confirms
//! it. The stream thus survives lost connections, as long as both processes live. Reading pauses
//! while [`KEPT_BYTES_MAX`] are kept: this is the backpressure on the program that writes to the
//! pipe.
//!
//! Each piece carries the BLAKE3 hash of all bytes up to its end. This hash proves that the stream
//! is unbroken from its first byte. The hash of the last piece is the root.
//!
//! A thread of its own calls the reader, which may block for any time. The thread ends with the
//! stream, with an error or a panic of the reader, or at the first return of the reader after the
//! last [`StreamSource`] was dropped.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use bytes::Bytes;
use wraith_files::plain;

use crate::error::TransferError;
use crate::limits::KEPT_BYTES_MAX;
use crate::lock::lock;
use crate::record::STREAM_PIECE_BYTES_MAX;
use crate::role::Role;

/// Maximum length in bytes of a piece that is copied, so that single bytes do not cost a whole
/// buffer each.
const COPIED_BYTES_MAX: usize = STREAM_PIECE_BYTES_MAX / 2;

/// Memory of a piece in bytes besides its content.
const PIECE_OVERHEAD_BYTES: usize = 128;

/// Result of [`StreamSource::next`].
pub(crate) enum NextPiece {
    Piece {
        bytes: Bytes,
        check: [u8; 32],
    },
    End {
        total: u64,
        root: [u8; 32],
    },
    Failed(TransferError),
    /// The transfer is over.
    Stopped,
}

/// A byte stream to send. Cheap to clone.
#[derive(Clone)]
pub struct StreamSource(Arc<SourceHandle>);

/// The part that all clones share, but not the thread that reads. Drop stops that thread.
struct SourceHandle(Arc<Inner>);

impl Deref for SourceHandle {
    type Target = Inner;
    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Drop for SourceHandle {
    fn drop(&mut self) {
        lock(&self.state).is_closed = true;
        self.changed.notify_all();
    }
}

struct Inner {
    name: String,
    size: Option<u64>,
    state: Mutex<SourceState>,
    changed: Condvar,
}

struct SourceState {
    /// Set until the reader has started.
    input: Option<Box<dyn Read + Send>>,
    /// Pieces that the receiver may still need, in order.
    kept: VecDeque<Piece>,
    kept_bytes: usize,
    /// The receiver has all bytes before this one.
    confirmed: u64,
    /// Number of bytes read.
    read: u64,
    ended: Option<Result<[u8; 32], TransferError>>,
    /// Nobody waits for the stream any more.
    is_closed: bool,
}

struct Piece {
    start: u64,
    bytes: Bytes,
    check: [u8; 32],
}

impl Piece {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn cost(&self) -> usize {
        self.bytes.len() + PIECE_OVERHEAD_BYTES
    }
}

impl StreamSource {
    /// Creates a stream with the content of `input`, and a name for display (and for a receiver
    /// that stores it). Nothing is read before a receiver has accepted.
    pub fn new(name: String, size: Option<u64>, input: impl Read + Send + 'static) -> Self {
        let state = SourceState {
            input: Some(Box::new(input)),
            kept: VecDeque::new(),
            kept_bytes: 0,
            confirmed: 0,
            read: 0,
            ended: None,
            is_closed: false,
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Self(Arc::new(SourceHandle(Arc::new(Inner { name, size, state, changed }))))
    }

    /// Creates a stream with the content of a regular file.
    pub(crate) fn of_file(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let name = wraith_files::root_name(path).unwrap_or_default();
        Ok(Self::new(name, Some(size), file))
    }

    pub(crate) fn name(&self) -> String {
        wraith_files::shown(self.0.name.as_bytes())
    }

    pub(crate) fn offered_name(&self) -> &str {
        &self.0.name
    }

    pub(crate) fn size(&self) -> Option<u64> {
        self.0.size
    }

    /// Continues reading for a receiver that has all bytes before `at`.
    pub(crate) fn resume_at(&self, at: u64) -> Result<(), &'static str> {
        let mut state = lock(&self.0.state);
        if at < state.confirmed {
            return Err("the receiver lacks bytes that are no longer kept; send the stream again");
        }
        state.confirm(at);
        let input = state.input.take();
        drop(state);
        if let Some(input) = input {
            let inner = Arc::clone(&self.0.0);
            let reader = thread::Builder::new().name("wraith-reader".into());
            if let Err(error) = reader.spawn(move || inner.run(input)) {
                self.0.end(Err(self.0.failure("cannot start a thread", Some(error))));
            }
        }
        self.wake();
        Ok(())
    }

    /// Records that the receiver has all bytes before `at`.
    pub(crate) fn confirm(&self, at: u64) -> Result<(), &'static str> {
        let mut state = lock(&self.0.state);
        if at > state.read {
            return Err("it confirms more bytes than were sent");
        }
        state.confirm(at);
        drop(state);
        self.wake();
        Ok(())
    }

    /// Waits for the piece that begins at byte `at`, or until `is_over` returns true after
    /// [`Self::wake`].
    pub(crate) fn next(&self, at: u64, is_over: impl Fn() -> bool) -> NextPiece {
        let mut state = lock(&self.0.state);
        loop {
            if is_over() {
                return NextPiece::Stopped;
            }
            // Pieces are ascending and without gaps.
            let first = state.kept.partition_point(|piece| piece.start < at);
            if let Some(piece) = state.kept.get(first) {
                if piece.start != at {
                    return NextPiece::Failed(self.0.failure("the stream has changed", None));
                }
                return NextPiece::Piece { bytes: piece.bytes.clone(), check: piece.check };
            }
            match &state.ended {
                Some(Ok(root)) if at == state.read => {
                    return NextPiece::End { total: at, root: *root };
                }
                Some(Ok(_)) => {
                    return NextPiece::Failed(
                        self.0.failure("the stream has become shorter", None),
                    );
                }
                Some(Err(why)) => return NextPiece::Failed(why.clone()),
                None => {}
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes all waiting threads to check again.
    pub(crate) fn wake(&self) {
        drop(lock(&self.0.state));
        self.0.changed.notify_all();
    }
}

impl Inner {
    /// Reads to the end, and records how it ended.
    fn run(&self, input: Box<dyn Read + Send>) {
        // The reader is the application's. It is dropped in the call, also after a panic.
        let result = catch_unwind(AssertUnwindSafe(|| self.read(input)));
        self.end(
            result.unwrap_or_else(|panic| Err(TransferError::panicked(Role::Sender, &*panic))),
        );
    }

    /// Reads to the end, pausing while there is no room. Returns the root.
    fn read(&self, mut input: Box<dyn Read + Send>) -> Result<[u8; 32], TransferError> {
        let mut hasher = blake3::Hasher::new();
        let mut buffer = Vec::new();
        while self.wait_for_room() {
            buffer.resize(STREAM_PIECE_BYTES_MAX, 0);
            let read = match input.read(&mut buffer) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.failure(&plain(&error), Some(error))),
            };
            if read == 0 {
                return Ok(*hasher.finalize().as_bytes());
            }
            if read > buffer.len() {
                let why = "the reader returned more bytes than it was asked for";
                return Err(self.failure(why, Some(io::Error::other(why))));
            }
            hasher.update(&buffer[..read]);
            let check = *hasher.finalize().as_bytes();
            let bytes = if read <= COPIED_BYTES_MAX {
                Bytes::copy_from_slice(&buffer[..read])
            } else {
                buffer.truncate(read);
                Bytes::from(std::mem::take(&mut buffer))
            };
            lock(&self.state).push(bytes, check);
            self.changed.notify_all();
        }
        Err(self.failure("nobody waits for it any more", None))
    }

    /// Waits for room. Returns false if nobody waits for the stream any more.
    fn wait_for_room(&self) -> bool {
        let mut state = lock(&self.state);
        while state.kept_bytes >= KEPT_BYTES_MAX && !state.is_closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.is_closed
    }

    fn end(&self, how: Result<[u8; 32], TransferError>) {
        lock(&self.state).ended = Some(how);
        self.changed.notify_all();
    }

    fn failure(&self, why: &str, error: Option<io::Error>) -> TransferError {
        let what = format!("cannot read {}: {why}", wraith_files::shown(self.name.as_bytes()));
        TransferError::Stream { role: Role::Sender, what, source: error.map(Into::into) }
    }
}

impl SourceState {
    fn push(&mut self, bytes: Bytes, check: [u8; 32]) {
        let piece = Piece { start: self.read, bytes, check };
        self.read = piece.end();
        // When a file is read again from its start, the receiver already has this piece.
        if piece.end() > self.confirmed {
            self.kept_bytes += piece.cost();
            self.kept.push_back(piece);
        }
    }

    fn confirm(&mut self, at: u64) {
        self.confirmed = self.confirmed.max(at);
        while self.kept.front().is_some_and(|piece| piece.end() <= at) {
            let piece = self.kept.pop_front().expect("there is a front");
            self.kept_bytes -= piece.cost();
        }
    }
}

impl std::fmt::Debug for StreamSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamSource").field("name", &self.0.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns its bytes in reads of this length.
    struct Dribble(Vec<u8>, usize);

    impl Read for Dribble {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let n = self.1.min(out.len()).min(self.0.len());
            out[..n].copy_from_slice(&self.0[..n]);
            self.0.drain(..n);
            Ok(n)
        }
    }

    fn all_from(source: &StreamSource, mut at: u64) -> (Vec<u8>, [u8; 32]) {
        let mut all = Vec::new();
        loop {
            match source.next(at, || false) {
                NextPiece::Piece { bytes, .. } => {
                    at += bytes.len() as u64;
                    all.extend_from_slice(&bytes);
                }
                NextPiece::End { root, .. } => return (all, root),
                NextPiece::Failed(why) => panic!("{why}"),
                NextPiece::Stopped => panic!("stopped"),
            }
        }
    }

    #[test]
    fn a_later_connection_gets_the_unconfirmed_bytes() {
        let bytes: Vec<u8> = (0..100_000u32).map(|n| n as u8).collect();
        let source = StreamSource::new("x".into(), None, Dribble(bytes.clone(), 1000));
        source.resume_at(0).unwrap();
        let root = *blake3::hash(&bytes).as_bytes();
        assert_eq!(all_from(&source, 0), (bytes.clone(), root));
        source.confirm(40_000).unwrap();
        assert!(source.resume_at(39_000).is_err());
        source.resume_at(70_000).unwrap();
        assert_eq!(all_from(&source, 70_000), (bytes[70_000..].to_vec(), root));
        assert!(source.confirm(100_001).is_err());
    }

    /// Reads with the function, and reports its drop.
    struct Custom<F>(F, #[expect(dead_code, reason = "dropped")] std::sync::mpsc::Sender<()>);

    impl<F: FnMut(&mut [u8]) -> io::Result<usize>> Read for Custom<F> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            self.0(out)
        }
    }

    fn source_of(
        read: impl FnMut(&mut [u8]) -> io::Result<usize> + Send + 'static,
    ) -> (StreamSource, std::sync::mpsc::Receiver<()>) {
        let (alive, dropped) = std::sync::mpsc::channel();
        (StreamSource::new("x".into(), None, Custom(read, alive)), dropped)
    }

    #[test]
    fn a_reader_that_fails_panics_or_returns_too_much_ends_the_stream() {
        fn failure(
            read: impl FnMut(&mut [u8]) -> io::Result<usize> + Send + 'static,
        ) -> TransferError {
            let (source, dropped) = source_of(read);
            source.resume_at(0).unwrap();
            let NextPiece::Failed(error) = source.next(0, || false) else { panic!("no failure") };
            assert!(dropped.recv().is_err(), "the reader is dropped");
            error
        }
        let panicked = failure(|_| panic!("boom {}", 1));
        let what = "boom 1".to_owned();
        assert_eq!(panicked, TransferError::Panicked { role: Role::Sender, what });
        for error in [failure(|_| Err(io::Error::other("odd"))), failure(|out| Ok(out.len() + 1))] {
            let TransferError::Stream { role: Role::Sender, source: Some(_), .. } = error else {
                panic!("{error:?}");
            };
        }
    }

    #[test]
    fn the_reader_is_dropped_with_the_last_handle_of_its_stream() {
        let (source, dropped) = source_of(|out| Ok(out.len()));
        let other = source.clone();
        source.resume_at(0).unwrap();
        drop(source);
        assert!(matches!(other.next(0, || false), NextPiece::Piece { .. }));
        drop(other);
        assert!(dropped.recv().is_err(), "its thread ends, although nobody takes the pieces");
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        struct Endless;
        impl Read for Endless {
            fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
                Ok(out.len())
            }
        }
        let source = StreamSource::new("x".into(), None, Endless);
        source.resume_at(0).unwrap();
        let mut at = 0;
        while at < 4 * KEPT_BYTES_MAX as u64 {
            let NextPiece::Piece { bytes, .. } = source.next(at, || false) else {
                panic!("no piece")
            };
            at += bytes.len() as u64;
            let kept = lock(&source.0.state).kept_bytes;
            assert!(kept < KEPT_BYTES_MAX + STREAM_PIECE_BYTES_MAX + PIECE_OVERHEAD_BYTES);
            source.confirm(at).unwrap();
        }
    }
}
