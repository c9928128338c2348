//! Bodies of the control messages (SPEC §10.2): their keys and types.
//!
//! A key never changes its meaning; keys that were added later may be missing.

use std::ops::Range;

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use crate::limits::VERSION;
use crate::role::Role;

/// [`Hello::features`]: receipts may report whether the data is on stable storage (SPEC §10.7).
pub const FEATURE_DURABILITY: u64 = 2;

/// [`Hello::features`]: the receiver accepts files with a position-free tree (SPEC §10.4).
pub const FEATURE_POSITION_FREE: u64 = 4;

/// [`Hello::features`]: only the differences are sent of files of which the receiver has an old copy (SPEC §10.11).
pub const FEATURE_DELTA: u64 = 1;

/// Role and version of a side.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Hello {
    /// Highest protocol version that this side supports. The lower one of both sides is used.
    #[n(0)]
    pub version: u64,
    /// Role of this side.
    #[n(1)]
    pub role: Role,
    /// Features beyond version 1. If the field is missing, there are none.
    #[n(2)]
    pub features: Option<u64>,
}

impl Hello {
    /// Returns the Hello of this version as `role`, with `delta` if this side wants deltas. Only
    /// the receiver's [`FEATURE_POSITION_FREE`] has a meaning; the receiver ignores the sender's.
    pub(crate) fn ours(role: Role, delta: bool) -> Self {
        let delta = if delta { FEATURE_DELTA } else { 0 };
        let features = Some(delta | FEATURE_DURABILITY | FEATURE_POSITION_FREE);
        Self { version: VERSION, role, features }
    }

    /// Returns true if the peer supports `feature`.
    pub fn has(&self, feature: u64) -> bool {
        self.features.unwrap_or(0) & feature != 0
    }
}

/// Request for a transfer, with the capability secret of the ticket.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Fetch {
    /// Capability secret of 16 bytes.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub secret: [u8; 16],
    /// A number that is the same on every connection of one run of a receiver. By this number, a
    /// sender with several receivers recognises a receiver that returns.
    #[n(1)]
    pub instance: Option<u64>,
    /// The receiver's output is a single byte stream: if the offer is a single file, the receiver
    /// wants a byte stream (SPEC §10.10).
    #[n(2)]
    pub stream: Option<bool>,
    /// The receiver accepts any offer. Before it requests small files, it accepts up to this many
    /// bytes of their records (SPEC §10.6).
    #[n(3)]
    pub push: Option<u64>,
}

impl std::fmt::Debug for Fetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fetch { .. }")
    }
}

/// Summary of a transfer, before any content is read. Sizes and counts come from a first walk of
/// the tree; the manifest may differ a little (SPEC §10.4).
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Offer {
    /// Transfer ID, the same for every connection of one transfer (SPEC §10.3).
    #[cbor(n(0), with = "minicbor::bytes")]
    pub transfer_id: [u8; 16],
    /// Name of the first path, at most 255 bytes; for display only, never for a path.
    #[n(1)]
    pub name: String,
    /// Number of regular files.
    #[n(2)]
    pub files: u64,
    /// Number of directories.
    #[n(3)]
    pub dirs: u64,
    /// Number of symbolic links.
    #[n(4)]
    pub links: u64,
    /// Total size of the files in bytes.
    #[n(5)]
    pub bytes: u64,
    /// Size of the largest file in bytes.
    #[n(6)]
    pub largest: u64,
    /// Number of data streams that the sender opens after the manifest stream, 1 to 4.
    #[n(7)]
    pub data_streams: u64,
    /// True for a byte stream (SPEC §10.10). Its size is 0 if unknown.
    #[n(8)]
    pub stream: Option<bool>,
    /// Number of files, folders and links that cannot be sent. The other counts do not include
    /// them.
    #[n(9)]
    pub left_out: Option<u64>,
    /// True if the sender does not wait until all data is on the receiver's stable storage.
    #[n(10)]
    pub no_sync: Option<bool>,
    /// Top-level names of the manifest, if they take at most
    /// [`crate::limits::OFFER_NAMES_BYTES_MAX`] bytes. Missing for a byte stream.
    #[n(11)]
    pub names: Option<Vec<ByteVec>>,
}

/// Acceptance of the offer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Accept {
    /// Bytes of the byte stream that the receiver already has.
    #[n(0)]
    pub have: Option<u64>,
    /// Maximum rate requested by the receiver, in bytes per second.
    #[n(1)]
    pub rate: Option<u64>,
    /// Number of parallel connections that the receiver can make (SPEC §10.13). If the field is
    /// missing, it makes none.
    #[n(2)]
    pub parallel: Option<u64>,
}

/// Ports of the sender's address at which it accepts parallel connections of this receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct ParallelPorts {
    /// UDP ports, one per connection; no more than the receiver can make.
    #[n(0)]
    pub ports: Vec<u16>,
}

/// The receiver waits for its disk and will read the received data afterwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct DiskBusy {}

/// Number of bytes of a byte stream that the receiver has written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Taken {
    /// Bytes from the start of the stream.
    #[n(0)]
    pub bytes: u64,
}

/// Decisions about the entries below `upto`: every file appears once, and nothing else does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Want {
    /// Entries below this number are decided.
    #[n(0)]
    pub upto: u64,
    /// Entries wanted completely: ranges, ascending.
    #[n(1)]
    pub whole: Vec<Span>,
    /// Entries with only some wanted chunks, ascending.
    #[n(2)]
    pub parts: Vec<Part>,
    /// Entries that the receiver may already have, ascending.
    #[n(3)]
    pub compare: Vec<Compare>,
    /// Wanted entries of which the receiver has an old copy, ascending.
    #[cbor(n(4), default)]
    pub delta: Vec<u64>,
    /// Entries that are not wanted because another object keeps their names: ranges, ascending.
    #[cbor(n(5), default)]
    pub skipped: Vec<Span>,
    /// Entries that the receiver cannot place: ranges, ascending.
    #[cbor(n(6), default)]
    pub blocked: Vec<Span>,
    /// Entries that are only compared, because another file keeps their names, ascending.
    #[cbor(n(7), default)]
    pub kept: Vec<Compare>,
}

/// Entries that the receiver lacks although they were sent or are not files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Exceptions {
    /// The entries, each at most once.
    #[n(0)]
    pub entries: Vec<Excepted>,
}

/// An entry that the receiver lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Excepted {
    /// Entry number.
    #[n(0)]
    pub entry: u64,
    /// The number of an [`crate::Exception`].
    #[n(1)]
    pub reason: u64,
}

/// `count` numbers from `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Span {
    /// The lowest number.
    #[n(0)]
    pub first: u64,
    /// How many numbers, at least 1.
    #[n(1)]
    pub count: u64,
}

impl Span {
    /// Creates the span of `range`, which must not be empty.
    pub(crate) fn of(range: Range<u64>) -> Self {
        Self { first: range.start, count: range.end - range.start }
    }

    /// Returns the numbers; `None` if the span is empty or overflows.
    pub(crate) fn range(&self) -> Option<Range<u64>> {
        let end = self.first.checked_add(self.count).filter(|_| self.count > 0)?;
        Some(self.first..end)
    }
}

/// Wanted chunks of one entry.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Part {
    /// Entry number.
    #[n(0)]
    pub entry: u64,
    /// Chunk indices, ascending and disjoint. May be empty; then only the root is wanted.
    #[n(1)]
    pub chunks: Vec<Span>,
}

/// An entry for which the receiver has a file: wanted only if its root differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Compare {
    /// Entry number.
    #[n(0)]
    pub entry: u64,
    /// Root of the receiver's file.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub root: [u8; 32],
}

/// Request for the pieces of some ranges of an entry, with another average length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Refine {
    /// Entry number.
    #[n(0)]
    pub entry: u64,
    /// Average piece length in bytes ([`wraith_files::PieceSize`]).
    #[n(1)]
    pub average: u32,
    /// Byte ranges, ascending and disjoint.
    #[n(2)]
    pub spans: Vec<Span>,
}

/// Request for bytes of an entry that the receiver's old copy lacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Lack {
    /// Entry number.
    #[n(0)]
    pub entry: u64,
    /// Chunks below this number are decided.
    #[n(1)]
    pub upto: u64,
    /// Missing bytes of the chunks that this message decides: ascending and disjoint.
    #[n(2)]
    pub spans: Vec<Span>,
}

/// Wire form of [`crate::Receipt`].
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct ReceiptBody {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub transfer_id: [u8; 16],
    #[cbor(n(1), with = "minicbor::bytes")]
    pub manifest: [u8; 32],
    #[cbor(n(2), with = "minicbor::bytes")]
    pub contents: [u8; 32],
    #[n(3)]
    pub verified: u64,
    #[n(4)]
    pub kept: u64,
    #[n(5)]
    pub failed: u64,
    #[n(6)]
    pub bytes: u64,
    #[n(7)]
    pub unix_seconds: u64,
    #[cbor(n(8), with = "minicbor::bytes")]
    pub signature: [u8; 64],
    #[n(9)]
    pub durability: Option<u8>,
    #[cbor(n(10), with = "minicbor::bytes")]
    pub sender: [u8; 32],
}
