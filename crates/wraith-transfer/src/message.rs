//! Control messages (SPEC §10.2): `length(4) ‖ CBOR [type, {integer key: value}]`.
//!
//! Unknown types and unknown keys are skipped, so old and new versions talk. Decoding any bytes gives a message or an
//! error, never a panic, and never more memory than a small multiple of the bytes.

use std::ops::Range;

use minicbor::bytes::ByteVec;
use minicbor::{Decode, Decoder, Encode, Encoder};
use thiserror::Error;

use crate::error::Role;
use crate::limits::VERSION;

/// Bytes of a message (SPEC §10.2): a Want or Lack of 16,384 spans fits, each of at most 19 bytes as CBOR, or 44 in place of one
/// that names a root. A receiver of messages allocates no more than this.
pub const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// Bytes that are no message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("malformed {0}")]
pub struct Malformed(pub &'static str);

/// The control messages, in one table: their numbers on the wire, what they carry, and how they are written and read.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident($body:ty) = $number:literal,)+) => {
        /// Types of control messages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u64)]
        pub enum MessageKind {
            $($(#[$doc])* $name = $number,)+
        }

        impl MessageKind {
            /// The number on the wire.
            pub const fn number(self) -> u64 {
                self as u64
            }

            /// What `number` stands for, if anything that this version knows.
            pub const fn from_number(number: u64) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)+
                    _ => None,
                }
            }

            /// A word for errors about a message.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)+
                }
            }
        }

        /// One control message.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Message {
            $($(#[$doc])* $name($body),)+
            /// A type this version does not know; skipped.
            Unknown(u64),
        }

        impl Message {
            /// Its type, if this version knows it.
            pub fn kind(&self) -> Option<MessageKind> {
                match self {
                    $(Self::$name(_) => Some(MessageKind::$name),)+
                    Self::Unknown(_) => None,
                }
            }

            fn encode_body(&self, e: &mut Encoder<&mut Vec<u8>>) -> Result<(), EncodeError> {
                match self {
                    $(Self::$name(body) => e.encode(body)?,)+
                    Self::Unknown(_) => e.map(0)?,
                };
                Ok(())
            }

            fn decode_body(kind: MessageKind, d: &mut Decoder<'_>) -> Result<Self, Malformed> {
                match kind {
                    $(MessageKind::$name => match d.decode() {
                        Ok(body) => Ok(Self::$name(body)),
                        Err(_) => Err(Malformed(stringify!($name))),
                    },)+
                }
            }
        }
    };
}

type EncodeError = minicbor::encode::Error<std::convert::Infallible>;

messages! {
    /// First from both sides.
    Hello(Hello) = 1,
    /// Receiver: what it wants to fetch.
    Fetch(Fetch) = 2,
    /// Sender: a summary of what that is.
    Offer(Offer) = 3,
    /// Receiver: go on.
    Accept(Accept) = 4,
    /// Receiver: entries it lacks.
    Want(Want) = 5,
    /// Receiver: everything asked for has arrived.
    Receipt(ReceiptBody) = 6,
    /// Receiver: so much of a stream is written.
    Taken(Taken) = 7,
    /// Receiver: stretches of a file whose pieces it wants to know more finely.
    Refine(Refine) = 8,
    /// Receiver: bytes of a file that it has not got from its old copy.
    Lack(Lack) = 9,
    /// Sender: where further connections may come.
    ParallelPorts(ParallelPorts) = 10,
    /// Receiver: entries that it does not have although they were sent.
    Exceptions(Exceptions) = 11,
    /// Receiver: its disk takes its time, so it reads nothing just now.
    DiskBusy(DiskBusy) = 12,
}

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

impl Message {
    /// The message with its length in front. At most 4 + [`MESSAGE_BYTES_MAX`] bytes if the caller kept the limits.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        let written = self.encode(&mut Encoder::new(&mut out));
        written.expect("encoding into a Vec cannot fail");
        let len = out.len() - 4;
        debug_assert!(len <= MESSAGE_BYTES_MAX);
        out[..4].copy_from_slice(&(len as u32).to_be_bytes());
        out
    }

    fn encode(&self, e: &mut Encoder<&mut Vec<u8>>) -> Result<(), EncodeError> {
        let number = match self {
            Self::Unknown(number) => *number,
            known => known.kind().map_or(0, MessageKind::number),
        };
        e.array(2)?.u64(number)?;
        self.encode_body(e)
    }

    /// Parses what follows the length.
    pub fn from_bytes(body: &[u8]) -> Result<Self, Malformed> {
        let mut d = Decoder::new(body);
        let envelope = d.array().ok().flatten().filter(|&n| n >= 2);
        envelope.ok_or(Malformed("message envelope"))?;
        let number = d.u64().map_err(|_| Malformed("message type"))?;
        match MessageKind::from_number(number) {
            Some(kind) => Self::decode_body(kind, &mut d),
            None => Ok(Self::Unknown(number)),
        }
    }

    /// A word for errors about an unexpected message.
    pub fn name(&self) -> &'static str {
        self.kind().map_or("an unknown message", MessageKind::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn want() -> impl Strategy<Value = Want> {
        let span = || (any::<u64>(), any::<u64>()).prop_map(|(first, count)| Span { first, count });
        let spans = move || prop::collection::vec(span(), 0..5);
        let part = (any::<u64>(), spans()).prop_map(|(entry, chunks)| Part { entry, chunks });
        let compare =
            (any::<u64>(), any::<[u8; 32]>()).prop_map(|(entry, root)| Compare { entry, root });
        (
            any::<u64>(),
            spans(),
            prop::collection::vec(part, 0..4),
            prop::collection::vec(compare, 0..4),
            prop::collection::vec(any::<u64>(), 0..4),
            (spans(), spans()),
        )
            .prop_map(|(upto, whole, parts, compare, delta, (skipped, blocked))| Want {
                upto,
                whole,
                parts,
                compare,
                delta,
                skipped,
                blocked,
            })
    }

    fn spans() -> impl Strategy<Value = Vec<Span>> {
        let span = (any::<u64>(), any::<u64>()).prop_map(|(first, count)| Span { first, count });
        prop::collection::vec(span, 0..5)
    }

    fn message() -> impl Strategy<Value = Message> {
        let offer =
            (any::<[u8; 16]>(), ".{0,20}", any::<[u64; 7]>()).prop_map(|(transfer_id, name, n)| {
                let [files, dirs, links, bytes, largest, data_streams, left_out] = n;
                Offer {
                    transfer_id,
                    name,
                    files,
                    dirs,
                    links,
                    bytes,
                    largest,
                    data_streams,
                    stream: None,
                    left_out: (left_out % 2 == 0).then_some(left_out),
                    no_sync: (left_out % 3 == 0).then_some(true),
                    names: (left_out % 5 == 0)
                        .then(|| vec![b"a".to_vec().into(), vec![0xff].into()]),
                }
            });
        prop_oneof![
            (any::<u64>(), any::<bool>(), any::<Option<u64>>()).prop_map(
                |(version, sends, features)| {
                    let role = if sends { Role::Sender } else { Role::Receiver };
                    Message::Hello(Hello { version, role, features })
                }
            ),
            (any::<u64>(), any::<u32>(), spans()).prop_map(|(entry, average, spans)| {
                Message::Refine(Refine { entry, average, spans })
            }),
            (any::<u64>(), any::<u64>(), spans())
                .prop_map(|(entry, upto, spans)| Message::Lack(Lack { entry, upto, spans })),
            any::<([u8; 16], Option<u64>, Option<bool>)>().prop_map(
                |(secret, instance, stream)| Message::Fetch(Fetch { secret, instance, stream })
            ),
            offer.prop_map(Message::Offer),
            any::<[Option<u64>; 3]>().prop_map(|[have, rate, parallel]| Message::Accept(Accept {
                have,
                rate,
                parallel
            })),
            any::<Vec<u16>>().prop_map(|ports| Message::ParallelPorts(ParallelPorts { ports })),
            any::<u64>().prop_map(|bytes| Message::Taken(Taken { bytes })),
            prop::collection::vec(any::<(u64, u64)>(), 0..4).prop_map(|all| {
                let excepted = |(entry, reason)| Excepted { entry, reason };
                let entries = all.into_iter().map(excepted).collect();
                Message::Exceptions(Exceptions { entries })
            }),
            Just(Message::DiskBusy(DiskBusy {})),
            want().prop_map(Message::Want),
            (100u64..).prop_map(Message::Unknown),
        ]
    }

    proptest! {
        #[test]
        fn every_message_survives_the_wire(message in message()) {
            let bytes = message.to_bytes();
            prop_assert_eq!(u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize, bytes.len() - 4);
            prop_assert_eq!(Message::from_bytes(&bytes[4..]).unwrap(), message);
        }

        #[test]
        fn arbitrary_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Message::from_bytes(&bytes);
        }

        #[test]
        fn a_damaged_message_is_a_message_or_an_error(
            message in message(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = message.to_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = Message::from_bytes(&bytes[4..]);
            let _ = Message::from_bytes(&bytes[4..4 + cut.index(bytes.len() - 4)]);
        }
    }

    #[test]
    fn unknown_keys_are_skipped() {
        let mut body = Vec::new();
        let mut e = Encoder::new(&mut body);
        e.array(2).unwrap().u64(1).unwrap().map(3).unwrap();
        e.u8(0).unwrap().u8(1).unwrap();
        e.u8(77).unwrap().array(2).unwrap().str("x").unwrap().null().unwrap();
        e.u8(1).unwrap().u8(2).unwrap();
        let hello = Message::Hello(Hello { version: 1, role: Role::Receiver, features: None });
        assert_eq!(Message::from_bytes(&body), Ok(hello));
    }

    /// What a version before deltas says and understands.
    #[test]
    fn a_want_without_deltas_is_understood() {
        let mut body = Vec::new();
        let mut e = Encoder::new(&mut body);
        e.array(2).unwrap().u64(5).unwrap().map(4).unwrap();
        e.u8(0).unwrap().u8(9).unwrap();
        (1..4).for_each(|key| _ = e.u8(key).unwrap().array(0).unwrap());
        let want = Message::Want(Want { upto: 9, ..Want::default() });
        assert_eq!(Message::from_bytes(&body), Ok(want));
    }

    #[test]
    fn an_array_that_claims_to_be_endless_costs_nothing() {
        let mut body = Vec::new();
        let mut e = Encoder::new(&mut body);
        e.array(2).unwrap().u64(5).unwrap().map(2).unwrap();
        e.u8(0).unwrap().u8(1).unwrap().u8(1).unwrap().array(u64::MAX).unwrap();
        assert_eq!(Message::from_bytes(&body), Err(Malformed("Want")));
    }
}
