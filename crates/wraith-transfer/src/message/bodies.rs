//! What each control message carries (SPEC §10.2): its keys and their types, and no way to say anything else.
//!
//! A key has one meaning for ever; whatever was added later may be missing.

use std::ops::Range;

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Encode};

use crate::error::Role;
use crate::limits::VERSION;

/// [`Hello::features`]: receipts may say whether what they cover is on stable storage (SPEC §10.7).
pub const FEATURE_DURABILITY: u64 = 2;

/// [`Hello::features`]: the receiver takes files with a position-free tree (SPEC §10.4).
pub const FEATURE_POSITION_FREE: u64 = 4;

/// [`Hello::features`]: files of which the receiver has an old copy are sent as what differs (SPEC §10.11).
pub const FEATURE_DELTA: u64 = 1;

/// Who speaks, and which version.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Hello {
    /// Highest protocol version the speaker knows; the lower of both is used.
    #[n(0)]
    pub version: u64,
    /// Which end the speaker is.
    #[n(1)]
    pub role: Role,
    /// What the speaker can do beyond version 1; none if it is missing.
    #[n(2)]
    pub features: Option<u64>,
}

impl Hello {
    /// What this version says as `role`; `delta` if it wants what differs of old copies. The receiver's word on
    /// [`FEATURE_POSITION_FREE`] decides, the sender's is read by nobody.
    pub(crate) fn ours(role: Role, delta: bool) -> Self {
        let delta = if delta { FEATURE_DELTA } else { 0 };
        let features = Some(delta | FEATURE_DURABILITY | FEATURE_POSITION_FREE);
        Self { version: VERSION, role, features }
    }

    /// True if the speaker can do this.
    pub fn has(&self, feature: u64) -> bool {
        self.features.unwrap_or(0) & feature != 0
    }
}

/// The capability secret of the ticket.
#[derive(Clone, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Fetch {
    /// 16 bytes.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub secret: [u8; 16],
    /// The same on every connection of one run of a receiver, so that a sender that serves several knows who has come back.
    #[n(1)]
    pub instance: Option<u64>,
    /// It has a place for one stream of bytes only: a single file is wanted as one (SPEC §10.10).
    #[n(2)]
    pub stream: Option<bool>,
    /// It has said yes to whatever is offered, and takes so many bytes of records of small files before it asks for them (SPEC §10.6).
    #[n(3)]
    pub push: Option<u64>,
}

impl std::fmt::Debug for Fetch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fetch { .. }")
    }
}

/// What the sender has, before anything is read. Sizes and counts are those of a first look at the tree; the manifest
/// may differ a little (SPEC §10.4).
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Offer {
    /// The same for every connection of one transfer (SPEC §10.3).
    #[cbor(n(0), with = "minicbor::bytes")]
    pub transfer_id: [u8; 16],
    /// Name of the first thing sent, at most 255 bytes; for show only, never for a path.
    #[n(1)]
    pub name: String,
    /// Regular files.
    #[n(2)]
    pub files: u64,
    /// Directories.
    #[n(3)]
    pub dirs: u64,
    /// Symbolic links.
    #[n(4)]
    pub links: u64,
    /// Sum of the file sizes.
    #[n(5)]
    pub bytes: u64,
    /// Size of the largest file.
    #[n(6)]
    pub largest: u64,
    /// Data streams the sender opens after the manifest stream, 1 to 4.
    #[n(7)]
    pub data_streams: u64,
    /// It is one stream of bytes (SPEC §10.10); its size is 0 where it is not known.
    #[n(8)]
    pub stream: Option<bool>,
    /// Files, folders and links of the tree that cannot be sent and are in none of these counts.
    #[n(9)]
    pub left_out: Option<u64>,
    /// The sender does not wait until everything is on the receiver's stable storage.
    #[n(10)]
    pub no_sync: Option<bool>,
    /// The top-level names of the manifest, if they are at most [`crate::limits::OFFER_NAMES_BYTES_MAX`] bytes. None of a stream.
    #[n(11)]
    pub names: Option<Vec<ByteVec>>,
}

/// The receiver goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Accept {
    /// Bytes of the stream that the receiver has, if it is one.
    #[n(0)]
    pub have: Option<u64>,
    /// The sender should send no more than this many bytes a second.
    #[n(1)]
    pub rate: Option<u64>,
    /// Further connections that the receiver would make for this transfer (SPEC §10.13); none if it is missing.
    #[n(2)]
    pub parallel: Option<u64>,
}

/// The sender takes further connections of this receiver at these ports of its address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct ParallelPorts {
    /// UDP ports, one for each connection; no more than the receiver would make.
    #[n(0)]
    pub ports: Vec<u16>,
}

/// The receiver waits for its disk, and reads what it gets when that goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct DiskBusy {}

/// The receiver has written this much of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Taken {
    /// From its first byte on.
    #[n(0)]
    pub bytes: u64,
}

/// What is decided about the entries below `upto`: every file is named once, and nothing else is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Want {
    /// Entries below this number are decided.
    #[n(0)]
    pub upto: u64,
    /// Entries wanted from the first to the last byte: ranges, ascending.
    #[n(1)]
    pub whole: Vec<Span>,
    /// Entries of which some chunks are wanted, ascending.
    #[n(2)]
    pub parts: Vec<Part>,
    /// Entries the receiver may have already, ascending.
    #[n(3)]
    pub compare: Vec<Compare>,
    /// Entries among those above of which the receiver has an old copy, ascending.
    #[cbor(n(4), default)]
    pub delta: Vec<u64>,
    /// Entries that are not wanted because something else has their names, and stays: ranges, ascending.
    #[cbor(n(5), default)]
    pub skipped: Vec<Span>,
    /// Entries that the receiver has no place for: ranges, ascending.
    #[cbor(n(6), default)]
    pub blocked: Vec<Span>,
}

/// Entries that the receiver does not have, although they were sent or are no files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Exceptions {
    /// Each once at most.
    #[n(0)]
    pub entries: Vec<Excepted>,
}

/// One of them.
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
    /// The lowest.
    #[n(0)]
    pub first: u64,
    /// How many, at least 1.
    #[n(1)]
    pub count: u64,
}

impl Span {
    /// The numbers of `range`, which is not empty.
    pub(crate) fn of(range: Range<u64>) -> Self {
        Self { first: range.start, count: range.end - range.start }
    }

    /// Its numbers; `None` if there are none, or they do not end.
    pub(crate) fn range(&self) -> Option<Range<u64>> {
        let end = self.first.checked_add(self.count).filter(|_| self.count > 0)?;
        Some(self.first..end)
    }
}

/// Chunks wanted of one entry.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(array)]
pub struct Part {
    /// Entry number.
    #[n(0)]
    pub entry: u64,
    /// Chunk indices, ascending, disjoint; may be empty (only the root is wanted).
    #[n(1)]
    pub chunks: Vec<Span>,
}

/// An entry the receiver has a file for: it is wanted only if its root differs.
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

/// The receiver wants the pieces of some stretches of an entry, with another average.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Refine {
    /// Entry number.
    #[n(0)]
    pub entry: u64,
    /// Average of the pieces in bytes ([`wraith_files::PieceSize`]).
    #[n(1)]
    pub average: u32,
    /// Bytes, ascending, disjoint.
    #[n(2)]
    pub spans: Vec<Span>,
}

/// Bytes of an entry that the receiver has not got from its old copy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Lack {
    /// Entry number.
    #[n(0)]
    pub entry: u64,
    /// Chunks below this number are decided.
    #[n(1)]
    pub upto: u64,
    /// Bytes of the chunks that this message decides: ascending, disjoint.
    #[n(2)]
    pub spans: Vec<Span>,
}

/// See [`crate::Receipt`].
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
