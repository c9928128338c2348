//! Records of a data stream (SPEC §10.6): fixed-width headers, each followed by its body.
//!
//! This module encodes and parses headers only. The sender passes the body to the stream in its own
//! buffer, and the receiver uses it in the receive blocks (`record_buffer.rs`), both without a
//! copy.

use wraith_crypto::wire_enum;
use wraith_files::{CHUNK_BYTES, Change, Root};

use crate::message::Malformed;

/// Maximum length of a record's body in bytes (SPEC §10.6): one chunk of a file. A body is verified
/// as a whole, so a receiver holds all of it.
pub const RECORD_BODY_BYTES_MAX: usize = CHUNK_BYTES;

/// Maximum length in bytes of one piece of a byte stream (SPEC §10.10). Each piece is verified as a
/// whole before it is written, so a receiver holds all of it. As long as a chunk, so that both
/// kinds of transfers need the same memory.
pub const STREAM_PIECE_BYTES_MAX: usize = 256 * 1024;

wire_enum! {
    /// Type of a record: its first byte.
    pub enum RecordKind {
        /// A file of at most one chunk.
        Whole = 1,
        /// One chunk of a larger file.
        Chunk = 2,
        /// Chunks of zeros.
        Hole = 3,
        /// The end of a file.
        End = 4,
        /// The sender reads without sending.
        Pulse = 5,
        /// Pieces of a file.
        Sketch = 6,
        /// Chaining values of chunks.
        Proofs = 7,
        /// Bytes of one chunk.
        Patch = 8,
        /// A file of at most one chunk, sent before it is requested.
        Pushed = 9,
    }
}

impl RecordKind {
    /// Returns the length of the header in bytes, including the type byte.
    pub const fn header_len(self) -> usize {
        match self {
            Self::Whole | Self::Pushed => WHOLE_HEADER_BYTES,
            Self::Chunk => HEADER_BYTES_MAX,
            Self::Hole => 1 + 4 + 8 + 8,
            Self::End => 1 + 4 + 1 + 8 + 32,
            Self::Pulse => 1 + 4 + 8,
            Self::Sketch | Self::Proofs | Self::Patch => 1 + 4 + 8 + 4,
        }
    }
}

fn kind_of(byte: u8) -> Result<RecordKind, Malformed> {
    RecordKind::from_byte(byte).ok_or(Malformed("record type"))
}

/// Length of the header of a whole or pushed file, in bytes.
pub const WHOLE_HEADER_BYTES: usize = 1 + 4 + 4 + 32;

/// Length of the longest header, that of a chunk, in bytes.
pub const HEADER_BYTES_MAX: usize = 1 + 4 + 8 + 4 + 32;

wire_enum! {
    /// How a file ended at the sender.
    pub enum Ending {
        /// The root covers the file as announced in the manifest.
        Complete = 0,
        /// The file changed during reading; the content sent is a mixture.
        Changed = 1,
        /// The file could not be read.
        Unreadable = 2,
        /// The file has the root that the receiver named.
        Identical = 3,
        /// The file was only compared, and has another root than the receiver named.
        Different = 4,
    }
}

/// Encodes the change of a file in the root field of the record that ends it, if there is no root.
pub fn encode_change(change: Option<Change>) -> Root {
    let mut said = [0; 32];
    said[0] = change.map_or(0, Change::number);
    said
}

/// Decodes [`encode_change`]. `None` for an unknown number.
pub fn decode_change(root: &Root) -> Option<Change> {
    Change::from_number(root[0])
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// A whole file of one chunk: `1 ‖ entry(4) ‖ length(4) ‖ root(32) ‖ bytes`.
    Whole { entry: u32, len: u32, root: [u8; 32] },
    /// One chunk: `2 ‖ entry(4) ‖ index(8) ‖ length(4) ‖ chaining value(32) ‖ bytes`.
    Chunk { entry: u32, index: u64, len: u32, cv: [u8; 32] },
    /// Chunks that are all zero: `3 ‖ entry(4) ‖ first(8) ‖ count(8)`.
    Hole { entry: u32, first: u64, count: u64 },
    /// End of a file: `4 ‖ entry(4) ‖ ending(1) ‖ chunks(8) ‖ root(32)`. `chunks` is the number of
    /// chunks sent on all streams. If the file changed or is unreadable, `root` holds
    /// [`encode_change`] instead of the root.
    End { entry: u32, ending: Ending, chunks: u64, root: [u8; 32] },
    /// The sender has read this far without anything to send: `5 ‖ entry(4) ‖ chunks(8)`.
    Pulse { entry: u32, chunks: u64 },
    /// Pieces of the file from byte `at` on: `6 ‖ entry(4) ‖ at(8) ‖ length(4) ‖ (piece length(4) ‖
    /// hash(8))*`.
    Sketch { entry: u32, at: u64, len: u32 },
    /// Chaining values of chunks: `7 ‖ entry(4) ‖ first(8) ‖ length(4) ‖ chaining value(32)*`.
    Proofs { entry: u32, first: u64, len: u32 },
    /// The requested bytes of one chunk, concatenated: `8 ‖ entry(4) ‖ index(8) ‖ length(4) ‖
    /// bytes`.
    Patch { entry: u32, index: u64, len: u32 },
    /// A file of one chunk that was not requested yet: `9 ‖ entry(4) ‖ length(4) ‖ root(32) ‖
    /// bytes`.
    Pushed { entry: u32, len: u32, root: [u8; 32] },
}

impl Header {
    /// Returns the header length of a record that starts with `byte`.
    pub fn len_of(byte: u8) -> Result<usize, Malformed> {
        Ok(kind_of(byte)?.header_len())
    }

    /// Parses exactly the bytes of one header ([`Self::len_of`]).
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields(bytes);
        let [kind] = fields.take()?;
        let header = match kind_of(kind)? {
            RecordKind::Whole => {
                Self::Whole { entry: fields.u32()?, len: fields.u32()?, root: fields.take()? }
            }
            RecordKind::Chunk => Self::Chunk {
                entry: fields.u32()?,
                index: fields.u64()?,
                len: fields.u32()?,
                cv: fields.take()?,
            },
            RecordKind::Hole => {
                Self::Hole { entry: fields.u32()?, first: fields.u64()?, count: fields.u64()? }
            }
            RecordKind::End => {
                let entry = fields.u32()?;
                let [ending] = fields.take()?;
                let ending = Ending::from_byte(ending).ok_or(Malformed("file ending"))?;
                Self::End { entry, ending, chunks: fields.u64()?, root: fields.take()? }
            }
            RecordKind::Pulse => Self::Pulse { entry: fields.u32()?, chunks: fields.u64()? },
            RecordKind::Sketch => {
                Self::Sketch { entry: fields.u32()?, at: fields.u64()?, len: fields.u32()? }
            }
            RecordKind::Proofs => {
                Self::Proofs { entry: fields.u32()?, first: fields.u64()?, len: fields.u32()? }
            }
            RecordKind::Patch => {
                Self::Patch { entry: fields.u32()?, index: fields.u64()?, len: fields.u32()? }
            }
            RecordKind::Pushed => {
                Self::Pushed { entry: fields.u32()?, len: fields.u32()?, root: fields.take()? }
            }
        };
        if !fields.0.is_empty() {
            return Err(Malformed("record header"));
        }
        if header.body_len() > RECORD_BODY_BYTES_MAX {
            return Err(Malformed("record length"));
        }
        Ok(header)
    }

    /// Appends the encoded header to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Whole { entry, len, root } => {
                encode_whole(out, RecordKind::Whole, entry, len, &root);
            }
            Self::Pushed { entry, len, root } => {
                encode_whole(out, RecordKind::Pushed, entry, len, &root);
            }
            Self::Chunk { entry, index, len, cv } => {
                out.push(RecordKind::Chunk.byte());
                out.extend_from_slice(&entry.to_be_bytes());
                out.extend_from_slice(&index.to_be_bytes());
                out.extend_from_slice(&len.to_be_bytes());
                out.extend_from_slice(&cv);
            }
            Self::Hole { entry, first, count } => {
                out.push(RecordKind::Hole.byte());
                out.extend_from_slice(&entry.to_be_bytes());
                out.extend_from_slice(&first.to_be_bytes());
                out.extend_from_slice(&count.to_be_bytes());
            }
            Self::End { entry, ending, chunks, root } => {
                out.push(RecordKind::End.byte());
                out.extend_from_slice(&entry.to_be_bytes());
                out.push(ending.byte());
                out.extend_from_slice(&chunks.to_be_bytes());
                out.extend_from_slice(&root);
            }
            Self::Pulse { entry, chunks } => {
                out.push(RecordKind::Pulse.byte());
                out.extend_from_slice(&entry.to_be_bytes());
                out.extend_from_slice(&chunks.to_be_bytes());
            }
            Self::Sketch { entry, at, len } => encode_at(out, RecordKind::Sketch, entry, at, len),
            Self::Proofs { entry, first, len } => {
                encode_at(out, RecordKind::Proofs, entry, first, len)
            }
            Self::Patch { entry, index, len } => {
                encode_at(out, RecordKind::Patch, entry, index, len)
            }
        }
    }

    /// Returns the length of the body; at most [`RECORD_BODY_BYTES_MAX`] in a parsed header.
    pub fn body_len(&self) -> usize {
        match *self {
            Self::Whole { len, .. }
            | Self::Chunk { len, .. }
            | Self::Sketch { len, .. }
            | Self::Proofs { len, .. }
            | Self::Patch { len, .. }
            | Self::Pushed { len, .. } => len as usize,
            Self::Hole { .. } | Self::End { .. } | Self::Pulse { .. } => 0,
        }
    }

    /// Returns the entry number of the record.
    pub fn entry(&self) -> u32 {
        match *self {
            Self::Whole { entry, .. }
            | Self::Chunk { entry, .. }
            | Self::Hole { entry, .. }
            | Self::End { entry, .. }
            | Self::Pulse { entry, .. }
            | Self::Sketch { entry, .. }
            | Self::Proofs { entry, .. }
            | Self::Patch { entry, .. }
            | Self::Pushed { entry, .. } => entry,
        }
    }
}

/// Appends `kind ‖ entry ‖ length ‖ root`.
fn encode_whole(out: &mut Vec<u8>, kind: RecordKind, entry: u32, len: u32, root: &Root) {
    out.push(kind.byte());
    out.extend_from_slice(&entry.to_be_bytes());
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(root);
}

/// Appends `kind ‖ entry ‖ position ‖ length`.
fn encode_at(out: &mut Vec<u8>, kind: RecordKind, entry: u32, position: u64, len: u32) {
    out.push(kind.byte());
    out.extend_from_slice(&entry.to_be_bytes());
    out.extend_from_slice(&position.to_be_bytes());
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
        let len = 0..=RECORD_BODY_BYTES_MAX as u32;
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
            (any::<u32>(), len.clone(), root).prop_map(|(entry, len, root)| Header::Pushed {
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
                prop_assert!(header.body_len() <= RECORD_BODY_BYTES_MAX);
            }
        }
    }
}
