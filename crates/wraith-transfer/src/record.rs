//! Records of a data stream (SPEC §10.6): fixed-width headers, then the bytes.
//!
//! The header is encoded and parsed here; the bytes are never touched: the sender hands them to the stream as they are
//! in its buffer, the receiver takes them as they are in the receive blocks ([`crate::gather`]).

use crate::limits::WHOLE_BYTES_MAX;
use crate::message::Malformed;

const WHOLE: u8 = 1;
const CHUNK: u8 = 2;
const HOLE: u8 = 3;
const END: u8 = 4;
const PULSE: u8 = 5;
const SKETCH: u8 = 6;
const PROOFS: u8 = 7;
const PATCH: u8 = 8;

/// Bytes of the header of a whole file.
pub const WHOLE_HEADER_BYTES: usize = 41;

/// Bytes of the longest header.
pub const HEADER_BYTES_MAX: usize = 49;

/// How a file ended at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The root covers the file as it was announced in the manifest.
    Complete,
    /// It changed while it was read; what was sent is a mixture.
    Changed,
    /// It could not be read.
    Unreadable,
    /// It has the root that the receiver named.
    Identical,
}

/// What comes before the bytes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// A whole file of one chunk: `1 ‖ entry(4) ‖ length(4) ‖ root(32) ‖ bytes`.
    Whole { entry: u32, len: u32, root: [u8; 32] },
    /// One chunk: `2 ‖ entry(4) ‖ index(8) ‖ length(4) ‖ chaining value(32) ‖ bytes`.
    Chunk { entry: u32, index: u64, len: u32, cv: [u8; 32] },
    /// Chunks that are all zero: `3 ‖ entry(4) ‖ first(8) ‖ count(8)`.
    Hole { entry: u32, first: u64, count: u64 },
    /// No more of this file: `4 ‖ entry(4) ‖ ending(1) ‖ chunks(8) ‖ root(32)`. `chunks` is how many were sent, on whatever
    /// stream; the root is zero unless the file is complete or identical.
    End { entry: u32, ending: Ending, chunks: u64, root: [u8; 32] },
    /// The sender has read this far without anything to send: `5 ‖ entry(4) ‖ chunks(8)`.
    Pulse { entry: u32, chunks: u64 },
    /// Pieces of the file from byte `at` on: `6 ‖ entry(4) ‖ at(8) ‖ length(4) ‖ (piece length(4) ‖ hash(8))*`.
    Sketch { entry: u32, at: u64, len: u32 },
    /// Chaining values of chunks: `7 ‖ entry(4) ‖ first(8) ‖ length(4) ‖ chaining value(32)*`.
    Proofs { entry: u32, first: u64, len: u32 },
    /// The bytes asked for of one chunk, one after the other: `8 ‖ entry(4) ‖ index(8) ‖ length(4) ‖ bytes`.
    Patch { entry: u32, index: u64, len: u32 },
}

impl Header {
    /// Header bytes for a record that starts with `kind`.
    pub fn len_of(kind: u8) -> Result<usize, Malformed> {
        Ok(match kind {
            WHOLE => 1 + 4 + 4 + 32,
            CHUNK => 1 + 4 + 8 + 4 + 32,
            HOLE => 1 + 4 + 8 + 8,
            END => 1 + 4 + 1 + 8 + 32,
            PULSE => 1 + 4 + 8,
            SKETCH | PROOFS | PATCH => 1 + 4 + 8 + 4,
            _ => return Err(Malformed("record type")),
        })
    }

    /// Parses exactly the bytes of one header ([`Self::len_of`]).
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(bytes);
        let [kind] = fields.take()?;
        let header = match kind {
            WHOLE => Self::Whole { entry: fields.u32()?, len: fields.u32()?, root: fields.take()? },
            CHUNK => Self::Chunk {
                entry: fields.u32()?,
                index: fields.u64()?,
                len: fields.u32()?,
                cv: fields.take()?,
            },
            HOLE => Self::Hole { entry: fields.u32()?, first: fields.u64()?, count: fields.u64()? },
            END => {
                let entry = fields.u32()?;
                let ending = match fields.take()? {
                    [0] => Ending::Complete,
                    [1] => Ending::Changed,
                    [2] => Ending::Unreadable,
                    [3] => Ending::Identical,
                    _ => return Err(Malformed("file ending")),
                };
                Self::End { entry, ending, chunks: fields.u64()?, root: fields.take()? }
            }
            PULSE => Self::Pulse { entry: fields.u32()?, chunks: fields.u64()? },
            SKETCH => Self::Sketch { entry: fields.u32()?, at: fields.u64()?, len: fields.u32()? },
            PROOFS => {
                Self::Proofs { entry: fields.u32()?, first: fields.u64()?, len: fields.u32()? }
            }
            PATCH => Self::Patch { entry: fields.u32()?, index: fields.u64()?, len: fields.u32()? },
            _ => return Err(Malformed("record type")),
        };
        if !fields.0.is_empty() {
            return Err(Malformed("record header"));
        }
        if header.body_len() > WHOLE_BYTES_MAX {
            return Err(Malformed("record length"));
        }
        Ok(header)
    }

    /// Appends the header to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Whole { entry, len, root } => {
                out.push(WHOLE);
                out.extend_from_slice(&entry.to_be_bytes());
                out.extend_from_slice(&len.to_be_bytes());
                out.extend_from_slice(&root);
            }
            Self::Chunk { entry, index, len, cv } => {
                out.push(CHUNK);
                out.extend_from_slice(&entry.to_be_bytes());
                out.extend_from_slice(&index.to_be_bytes());
                out.extend_from_slice(&len.to_be_bytes());
                out.extend_from_slice(&cv);
            }
            Self::Hole { entry, first, count } => {
                out.push(HOLE);
                out.extend_from_slice(&entry.to_be_bytes());
                out.extend_from_slice(&first.to_be_bytes());
                out.extend_from_slice(&count.to_be_bytes());
            }
            Self::End { entry, ending, chunks, root } => {
                out.push(END);
                out.extend_from_slice(&entry.to_be_bytes());
                out.push(match ending {
                    Ending::Complete => 0,
                    Ending::Changed => 1,
                    Ending::Unreadable => 2,
                    Ending::Identical => 3,
                });
                out.extend_from_slice(&chunks.to_be_bytes());
                out.extend_from_slice(&root);
            }
            Self::Pulse { entry, chunks } => {
                out.push(PULSE);
                out.extend_from_slice(&entry.to_be_bytes());
                out.extend_from_slice(&chunks.to_be_bytes());
            }
            Self::Sketch { entry, at, len } => placed(out, SKETCH, entry, at, len),
            Self::Proofs { entry, first, len } => placed(out, PROOFS, entry, first, len),
            Self::Patch { entry, index, len } => placed(out, PATCH, entry, index, len),
        }
    }

    /// Bytes that follow the header; at most [`WHOLE_BYTES_MAX`] in a parsed one.
    pub fn body_len(&self) -> usize {
        match *self {
            Self::Whole { len, .. }
            | Self::Chunk { len, .. }
            | Self::Sketch { len, .. }
            | Self::Proofs { len, .. }
            | Self::Patch { len, .. } => len as usize,
            Self::Hole { .. } | Self::End { .. } | Self::Pulse { .. } => 0,
        }
    }

    /// The entry it belongs to.
    pub fn entry(&self) -> u32 {
        match *self {
            Self::Whole { entry, .. }
            | Self::Chunk { entry, .. }
            | Self::Hole { entry, .. }
            | Self::End { entry, .. }
            | Self::Pulse { entry, .. }
            | Self::Sketch { entry, .. }
            | Self::Proofs { entry, .. }
            | Self::Patch { entry, .. } => entry,
        }
    }
}

/// `kind ‖ entry ‖ place ‖ length`.
fn placed(out: &mut Vec<u8>, kind: u8, entry: u32, place: u64, len: u32) {
    out.push(kind);
    out.extend_from_slice(&entry.to_be_bytes());
    out.extend_from_slice(&place.to_be_bytes());
    out.extend_from_slice(&len.to_be_bytes());
}

/// Fixed-width fields from the front of a slice.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (front, rest) = self.0.split_first_chunk().ok_or(Malformed("record header"))?;
        self.0 = rest;
        Ok(*front)
    }
    fn u32(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.take()?))
    }
    fn u64(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.take()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> impl Strategy<Value = Header> {
        let len = 0..=WHOLE_BYTES_MAX as u32;
        let root = any::<[u8; 32]>();
        let ending = prop_oneof![
            Just(Ending::Complete),
            Just(Ending::Changed),
            Just(Ending::Unreadable),
            Just(Ending::Identical)
        ];
        prop_oneof![
            (any::<u32>(), len.clone(), root).prop_map(|(entry, len, root)| Header::Whole {
                entry,
                len,
                root
            }),
            (any::<u32>(), any::<u64>(), len.clone(), root)
                .prop_map(|(entry, index, len, cv)| Header::Chunk { entry, index, len, cv }),
            (any::<u32>(), any::<u64>(), len.clone()).prop_map(|(entry, at, len)| Header::Sketch {
                entry,
                at,
                len
            }),
            (any::<u32>(), any::<u64>(), len.clone())
                .prop_map(|(entry, first, len)| Header::Proofs { entry, first, len }),
            (any::<u32>(), any::<u64>(), len).prop_map(|(entry, index, len)| Header::Patch {
                entry,
                index,
                len
            }),
            (any::<u32>(), any::<u64>(), any::<u64>())
                .prop_map(|(entry, first, count)| Header::Hole { entry, first, count }),
            (any::<u32>(), ending, any::<u64>(), root).prop_map(|(entry, ending, chunks, root)| {
                Header::End { entry, ending, chunks, root }
            }),
            (any::<u32>(), any::<u64>())
                .prop_map(|(entry, chunks)| Header::Pulse { entry, chunks }),
        ]
    }

    proptest! {
        #[test]
        fn every_header_survives_the_wire(header in header()) {
            let mut bytes = Vec::new();
            header.encode(&mut bytes);
            prop_assert!(bytes.len() <= HEADER_BYTES_MAX);
            prop_assert_eq!(Header::len_of(bytes[0]).unwrap(), bytes.len());
            prop_assert_eq!(Header::parse(&bytes).unwrap(), header);
        }

        #[test]
        fn arbitrary_bytes_are_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(header) = Header::parse(&bytes) {
                prop_assert!(header.body_len() <= WHOLE_BYTES_MAX);
            }
        }
    }
}
