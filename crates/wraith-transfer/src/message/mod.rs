//! Control messages (SPEC §10.2): `length(4) ‖ CBOR [type, {integer key: value}]`.
//!
//! Unknown types and unknown keys are skipped, so old and new versions interoperate. Decoding
//! arbitrary bytes returns a message or an error. Decoding never panics and never uses more memory
//! than a small multiple of the input. `bodies.rs` defines the content of each message.

mod bodies;

use minicbor::{Decoder, Encoder};
use thiserror::Error;

pub use bodies::{
    Accept, Compare, DiskBusy, Excepted, Exceptions, FEATURE_DELTA, FEATURE_DURABILITY,
    FEATURE_POSITION_FREE, Fetch, Hello, Lack, Offer, ParallelPorts, Part, ReceiptBody, Refine,
    Span, Taken, Want,
};

/// Maximum length of a message in bytes (SPEC §10.2): a Want or Lack of 16,384 spans fits. Each
/// span has at most 19 bytes as CBOR, or 44 if it names a root instead. A receiver of messages
/// allocates no more than this.
pub const MESSAGE_BYTES_MAX: usize = 1024 * 1024;

/// Bytes that are not a valid message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("malformed {0}")]
pub struct Malformed(pub &'static str);

/// Table of the control messages: their numbers on the wire, bodies, encoders and decoders.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident($body:ty) = $number:literal,)+) => {
        /// Types of control messages.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u64)]
        pub enum MessageKind {
            $($(#[$doc])* $name = $number,)+
        }

        impl MessageKind {
            /// Returns the number used on the wire.
            pub const fn number(self) -> u64 {
                self as u64
            }

            /// Returns the type for `number`, if this version knows it.
            pub const fn from_number(number: u64) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)+
                    _ => None,
                }
            }

            /// Returns the name, for errors about a message.
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
            /// A type that this version does not know; skipped.
            Unknown(u64),
        }

        impl Message {
            /// Returns its type, if this version knows it.
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
    /// Both sides: the first message.
    Hello(Hello) = 1,
    /// Receiver: requests a transfer.
    Fetch(Fetch) = 2,
    /// Sender: summarises the transfer.
    Offer(Offer) = 3,
    /// Receiver: accepts the offer.
    Accept(Accept) = 4,
    /// Receiver: lists the entries it lacks.
    Want(Want) = 5,
    /// Receiver: confirms that every requested entry has arrived.
    Receipt(ReceiptBody) = 6,
    /// Receiver: reports how many bytes of a stream are written.
    Taken(Taken) = 7,
    /// Receiver: requests finer pieces of some ranges of a file.
    Refine(Refine) = 8,
    /// Receiver: requests bytes of a file that its old copy lacks.
    Lack(Lack) = 9,
    /// Sender: names the ports for parallel connections.
    ParallelPorts(ParallelPorts) = 10,
    /// Receiver: lists entries that it lacks although they were sent.
    Exceptions(Exceptions) = 11,
    /// Receiver: reports that it waits for its disk and is not reading.
    DiskBusy(DiskBusy) = 12,
}

impl Message {
    /// Encodes the message with its length in front. At most 4 + [`MESSAGE_BYTES_MAX`] bytes if the
    /// caller keeps the limits.
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

    /// Decodes the bytes after the length.
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

    /// Returns a name for errors about an unexpected message.
    pub fn name(&self) -> &'static str {
        self.kind().map_or("an unknown message", MessageKind::name)
    }
}

/// Derives the transfer ID from the capability secret (SPEC §10.3).
pub(crate) fn transfer_id(secret: &[u8; 16]) -> [u8; 16] {
    let id = wraith_crypto::kdf::derive("wraith/1 transfer id", secret);
    *id.first_chunk().expect("a key has 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;
    use proptest::prelude::*;

    fn want() -> impl Strategy<Value = Want> {
        let span = || (any::<u64>(), any::<u64>()).prop_map(|(first, count)| Span { first, count });
        let spans = move || prop::collection::vec(span(), 0..5);
        let part = (any::<u64>(), spans()).prop_map(|(entry, chunks)| Part { entry, chunks });
        let compare =
            || (any::<u64>(), any::<[u8; 32]>()).prop_map(|(entry, root)| Compare { entry, root });
        (
            any::<u64>(),
            spans(),
            prop::collection::vec(part, 0..4),
            (prop::collection::vec(compare(), 0..4), prop::collection::vec(compare(), 0..4)),
            prop::collection::vec(any::<u64>(), 0..4),
            (spans(), spans()),
        )
            .prop_map(
                |(upto, whole, parts, (compare, kept), delta, (skipped, blocked))| Want {
                    upto,
                    whole,
                    parts,
                    compare,
                    delta,
                    skipped,
                    blocked,
                    kept,
                },
            )
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
            any::<([u8; 16], Option<u64>, Option<bool>, Option<u64>)>().prop_map(
                |(secret, instance, stream, push)| Message::Fetch(Fetch {
                    secret,
                    instance,
                    stream,
                    push
                })
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

    /// The encoding of versions before deltas.
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
