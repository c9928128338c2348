//! Parts of some datagrams for tests that compare them with each other: both ends, the length, and
//! a number that grows with time.

use super::position::TAIL;

/// First bytes whose windows are compared at every offset.
pub const UNALIGNED: usize = 64;

/// A datagram of the sample.
#[derive(Clone, Debug)]
pub struct SampledDatagram {
    /// Length in bytes.
    pub len: usize,
    /// Packet number within its series, or the time of the dial.
    pub ordinal: u64,
    /// The connection; 0 if each datagram belongs to another one.
    pub connection: usize,
    head: Vec<u8>,
    tail: Vec<u8>,
}

/// One datagram in every `every`.
#[derive(Clone, Debug)]
pub struct Sample {
    every: usize,
    head: usize,
    seen: usize,
    /// The kept datagrams.
    pub kept: Vec<SampledDatagram>,
}

/// Start of a window in datagrams, counted from the beginning or from the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// From the beginning.
    Head(usize),
    /// From the end: a window that ends with the datagram starts at its own width.
    Tail(usize),
}

impl Sample {
    /// Keeps one datagram in `every`, and `head` bytes of each.
    pub fn new(every: usize, head: usize) -> Self {
        Self { every, head, seen: 0, kept: Vec::new() }
    }

    /// Adds a datagram if it is the next to keep.
    pub fn add(&mut self, connection: usize, ordinal: u64, bytes: &[u8]) {
        self.seen += 1;
        if self.seen.is_multiple_of(self.every) {
            let head = bytes[..bytes.len().min(self.head)].to_vec();
            let tail = bytes[bytes.len().saturating_sub(TAIL)..].to_vec();
            self.kept.push(SampledDatagram { len: bytes.len(), ordinal, connection, head, tail });
        }
    }

    /// Returns the starts of windows of this width: each of the first [`UNALIGNED`] bytes, then
    /// multiples of 4, and each of the last bytes.
    pub fn starts(&self, width: usize) -> Vec<Start> {
        let head = (0..self.head).filter(|at| *at < UNALIGNED || at.is_multiple_of(4));
        let tail = width..=TAIL;
        head.map(Start::Head).chain(tail.map(Start::Tail)).collect()
    }
}

impl SampledDatagram {
    /// Returns the window, if the datagram is long enough.
    pub fn window(&self, start: Start, width: usize) -> Option<&[u8]> {
        match start {
            Start::Head(at) => self.head.get(at..at + width),
            Start::Tail(at) => self.tail.len().checked_sub(at).map(|at| &self.tail[at..at + width]),
        }
    }
}

impl std::fmt::Display for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Head(at) => write!(f, "offset {at}"),
            Self::Tail(at) => write!(f, "offset {at} from the end"),
        }
    }
}
