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

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use bytes::Bytes;

use crate::limits::KEPT_BYTES_MAX;
use crate::lock::lock;
use crate::record::STREAM_PIECE_BYTES_MAX;

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
    Failed(String),
    /// The transfer is over.
    Stopped,
}

/// A byte stream to send. Cheap to clone.
#[derive(Clone)]
pub struct StreamSource(Arc<Inner>);

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
    ended: Option<Result<[u8; 32], String>>,
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
        };
        let (state, changed) = (Mutex::new(state), Condvar::new());
        Self(Arc::new(Inner { name, size, state, changed }))
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
        if let Some(input) = state.input.take() {
            let inner = Arc::clone(&self.0);
            std::thread::spawn(move || inner.read(input));
        }
        drop(state);
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
                    return NextPiece::Failed("the stream has changed; send it again".into());
                }
                return NextPiece::Piece { bytes: piece.bytes.clone(), check: piece.check };
            }
            match &state.ended {
                Some(Ok(root)) if at == state.read => {
                    return NextPiece::End { total: at, root: *root };
                }
                Some(Ok(_)) => {
                    return NextPiece::Failed("the stream is shorter than it was".into());
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
    /// Reads to the end, pausing while there is no room.
    fn read(&self, mut input: Box<dyn Read + Send>) {
        let mut hasher = blake3::Hasher::new();
        let mut buffer = Vec::new();
        loop {
            self.wait_for_room();
            buffer.resize(STREAM_PIECE_BYTES_MAX, 0);
            let read = match input.read(&mut buffer) {
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return self.end(Err(format!("cannot read {}: {error}", self.name)));
                }
            };
            if read == 0 {
                return self.end(Ok(*hasher.finalize().as_bytes()));
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
    }

    fn wait_for_room(&self) {
        let mut state = lock(&self.state);
        while state.kept_bytes >= KEPT_BYTES_MAX {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self, how: Result<[u8; 32], String>) {
        lock(&self.state).ended = Some(how);
        self.changed.notify_all();
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
