//! UDP address binding: a client proves to its relay where it receives UDP (SPEC §13.6).
//!
//! The messages are sealed, with the header of any other datagram. The ID of a client's message is
//! derived from its counter and used once: the relay knows the next [`BIND_WINDOW`] IDs of every
//! session, at any address of the client. No other party can link an ID to a session.
//!
//! ```text
//! client                                   relay
//!   Bind(3)                  ─────────▶      from an unproved address
//!                            ◀─────────    Challenge(3, cookie of this address and of 3)
//!   Bind(4, answers 3)       ─────────▶      proved: the client's datagrams go to this address
//!                            ◀─────────    Bound(4, the observed address)
//! ```
//!
//! Until the path is bound, a Bind has the length of a large datagram, and Bound has the length of
//! its Bind. So a path that drops large datagrams is never bound, and they go over TLS.
//!
//! Invariants: the counters of a session rise strictly, whatever a message's outcome, so a replay
//! has no effect. A response is never longer than its request.

use std::net::SocketAddr;
use std::ops::RangeInclusive;

use wraith_crypto::aead::NONCE_BYTES;
use wraith_crypto::{AeadKey, MaskKey, Suite, TAG_BYTES, kdf};
use zeroize::ZeroizeOnDrop;

use crate::header::{self, Direction, HEADER_BYTES, TagKey, WireId};
use crate::random::Random;
use crate::wire::{ADDRESS_BYTES, Reader, put_address};

/// Length of the cookie that ties a client's response to the challenged address.
pub const COOKIE_BYTES: usize = 16;
/// Plaintext of every kind before padding, in bytes: kind, two counters, and a cookie or an
/// address.
const BODY_BYTES: usize = 1 + 8 + 8 + ADDRESS_BYTES;
/// Length of a datagram without padding. Every message has at least this length, so a response
/// never exceeds its request.
pub const BINDING_MIN: usize = HEADER_BYTES + NONCE_BYTES + BODY_BYTES + TAG_BYTES;
/// Number of counters after the highest one that the relay recognises. A client that gets no answer
/// reports its counter over TLS before it has used them up.
pub const BIND_WINDOW: u64 = 16;
/// Lengths of requests that confirm a bound path. Without padding all would have one length.
const CONFIRMATION_BYTES: RangeInclusive<usize> = BINDING_MIN..=BINDING_MIN + 160;
/// Lengths of requests that test a path: from the longest datagram of a short handshake (SPEC §3.4,
/// 720 bytes and a header) to the largest UDP payload of every IPv6 path.
const TEST_BYTES: RangeInclusive<usize> = 736..=1232;
/// Longest message accepted: the longest that a client sends.
pub const BINDING_MAX: usize = *TEST_BYTES.end();

/// Messages of the binding protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Client: announces its address. With the counter and cookie of a challenge it proves the
    /// address.
    Bind {
        /// Higher than all earlier counters, by at most [`BIND_WINDOW`].
        counter: u64,
        /// Counter of the answered challenge; 0 for none.
        answers: u64,
        /// Cookie of that challenge.
        cookie: [u8; COOKIE_BYTES],
    },
    /// Relay: asks the client to prove that it receives at the source address.
    Challenge {
        /// Counter of the challenged message.
        counter: u64,
        /// Cookie to return from that address.
        cookie: [u8; COOKIE_BYTES],
    },
    /// Relay: confirms that the client's datagrams go to the source address.
    Bound {
        /// Counter of the confirmed message.
        counter: u64,
        /// The observed address.
        observed: SocketAddr,
    },
}

/// Keys of one session's binding messages, for either end.
#[derive(Debug)]
pub struct BindingKeys {
    id: WireId,
    up: AeadKey,
    down: AeadKey,
    up_tag: TagKey,
    down_tag: TagKey,
    up_ids: UpIds,
}

/// Derives the IDs of a client's binding messages.
#[derive(Clone, Debug, ZeroizeOnDrop)]
pub struct UpIds([u8; 32]);

impl UpIds {
    /// Creates the IDs of the session with `secret`.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(kdf::derive("wraith/1 relay binding id", secret))
    }

    /// Returns the ID of the message with this counter.
    pub fn of(&self, counter: u64) -> WireId {
        let id = kdf::keyed(&self.0, &counter.to_be_bytes());
        u64::from_be_bytes(*id.first_chunk().expect("longer than an ID"))
    }
}

impl BindingKeys {
    /// Derives the keys of the session with `secret` and binding ID `id`.
    pub fn new(secret: &[u8; 32], id: WireId) -> Self {
        let key =
            |context| AeadKey::library(Suite::ChaCha20Poly1305, &kdf::derive(context, secret));
        Self {
            id,
            up: key("wraith/1 relay binding up"),
            down: key("wraith/1 relay binding down"),
            up_tag: TagKey::new(secret, id, Direction::Up),
            down_tag: TagKey::new(secret, id, Direction::Down),
            up_ids: UpIds::new(secret),
        }
    }

    /// Seals a client's message in a datagram of `len` bytes, at least [`BINDING_MIN`].
    pub fn seal_up(&self, message: &Binding, len: usize, random: &mut Random) -> Vec<u8> {
        let mut datagram = self.seal(Direction::Up, message, len, random);
        let (Binding::Bind { counter, .. }
        | Binding::Challenge { counter, .. }
        | Binding::Bound { counter, .. }) = message;
        header::write_plain(&self.up_tag, self.up_ids.of(*counter), &mut datagram);
        datagram
    }

    /// Seals a response in a datagram of `len` bytes, with the ID under `mask`. A response must not
    /// be longer than its request.
    pub fn seal_down(
        &self,
        mask: &MaskKey,
        message: &Binding,
        len: usize,
        random: &mut Random,
    ) -> Vec<u8> {
        let mut datagram = self.seal(Direction::Down, message, len, random);
        header::write(mask, &self.down_tag, self.id, &mut datagram);
        datagram
    }

    /// Draws the length of a client's message. Before the path `is_bound`, the message tests whether
    /// the path carries large datagrams.
    pub fn draw_len(is_bound: bool, random: &mut Random) -> usize {
        let range = if is_bound { CONFIRMATION_BYTES } else { TEST_BYTES };
        range.start() + random.below((range.end() - range.start() + 1) as u64) as usize
    }

    /// Seals `message` behind an empty header, in a datagram of `len` bytes, at least
    /// [`BINDING_MIN`].
    fn seal(
        &self,
        direction: Direction,
        message: &Binding,
        len: usize,
        random: &mut Random,
    ) -> Vec<u8> {
        let (key, _) = self.keys(direction);
        let mut datagram = Vec::with_capacity(len);
        datagram.extend_from_slice(&[0; HEADER_BYTES]);
        let nonce: [u8; NONCE_BYTES] = random.bytes();
        datagram.extend_from_slice(&nonce);
        message.encode(&mut datagram);
        datagram.resize(len.max(BINDING_MIN) - TAG_BYTES, 0);
        let sealed =
            key.seal(nonce, &self.id.to_be_bytes(), &mut datagram[HEADER_BYTES + NONCE_BYTES..]);
        datagram.extend_from_slice(&sealed);
        datagram
    }

    /// Opens a datagram with this binding ID in place. Returns `None` if it is not authentic.
    pub fn open(&self, direction: Direction, datagram: &mut [u8]) -> Option<Binding> {
        let (key, tag) = self.keys(direction);
        if !(BINDING_MIN..=BINDING_MAX).contains(&datagram.len()) || !tag.matches(datagram) {
            return None;
        }
        let (nonce, sealed) = datagram[HEADER_BYTES..].split_first_chunk_mut::<NONCE_BYTES>()?;
        key.open(*nonce, &self.id.to_be_bytes(), sealed).ok()?;
        Binding::decode(direction, &sealed[..sealed.len() - TAG_BYTES])
    }

    fn keys(&self, direction: Direction) -> (&AeadKey, &TagKey) {
        match direction {
            Direction::Up => (&self.up, &self.up_tag),
            Direction::Down => (&self.down, &self.down_tag),
        }
    }
}

impl Binding {
    fn encode(&self, out: &mut Vec<u8>) {
        let (kind, counter, answers) = match self {
            Self::Bind { counter, answers, .. } => (1, *counter, *answers),
            Self::Challenge { counter, .. } => (2, *counter, 0),
            Self::Bound { counter, .. } => (3, *counter, 0),
        };
        out.push(kind);
        out.extend_from_slice(&counter.to_be_bytes());
        out.extend_from_slice(&answers.to_be_bytes());
        match self {
            Self::Bind { cookie, .. } | Self::Challenge { cookie, .. } => {
                out.extend_from_slice(cookie);
            }
            Self::Bound { observed, .. } => put_address(out, *observed),
        }
    }

    fn decode(direction: Direction, plain: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(plain);
        let kind = reader.u8()?;
        let (counter, answers) = (reader.u64()?, reader.u64()?);
        match (direction, kind) {
            (Direction::Up, 1) => Some(Self::Bind { counter, answers, cookie: reader.array()? }),
            (Direction::Down, 2) => Some(Self::Challenge { counter, cookie: reader.array()? }),
            (Direction::Down, 3) => Some(Self::Bound { counter, observed: reader.address()? }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: [(Direction, Binding); 3] = [
        (Direction::Up, Binding::Bind { counter: 5, answers: 4, cookie: [7; 16] }),
        (Direction::Down, Binding::Challenge { counter: 6, cookie: [8; 16] }),
        (
            Direction::Down,
            Binding::Bound {
                counter: 7,
                observed: SocketAddr::new(std::net::IpAddr::V6(std::net::Ipv6Addr::LOCALHOST), 9),
            },
        ),
    ];

    fn sealed(
        keys: &BindingKeys,
        mask: &MaskKey,
        direction: Direction,
        message: &Binding,
        random: &mut Random,
    ) -> Vec<u8> {
        match direction {
            Direction::Up => keys.seal_up(message, BINDING_MIN, random),
            Direction::Down => keys.seal_down(mask, message, BINDING_MIN, random),
        }
    }

    #[test]
    fn messages_open_only_at_the_other_end_and_in_their_direction() {
        let mask = MaskKey::new([1; 32]);
        let mut random = Random::new().unwrap();
        let (keys, others) = (BindingKeys::new(&[2; 32], 3), BindingKeys::new(&[4; 32], 3));
        for (direction, message) in MESSAGES {
            let datagram = sealed(&keys, &mask, direction, &message, &mut random);
            match direction {
                Direction::Up => {
                    let id = UpIds::new(&[2; 32]).of(5);
                    assert_eq!(header::read_plain_id(&datagram), Some(id));
                }
                Direction::Down => assert_eq!(header::read_id(&mask, &datagram), Some(3)),
            }
            assert_eq!(others.open(direction, &mut datagram.clone()), None);
            let other_way =
                if direction == Direction::Up { Direction::Down } else { Direction::Up };
            assert_eq!(keys.open(other_way, &mut datagram.clone()), None);
            assert_eq!(keys.open(direction, &mut datagram.clone()), Some(message));
        }
    }

    #[test]
    fn a_message_with_a_modified_byte_does_not_open() {
        let mask = MaskKey::new([1; 32]);
        let keys = BindingKeys::new(&[2; 32], 3);
        let datagram = keys.seal_down(&mask, &MESSAGES[1].1, 200, &mut Random::new().unwrap());
        for i in 8..datagram.len() {
            let mut changed = datagram.clone();
            changed[i] ^= 0x40;
            assert_eq!(keys.open(Direction::Down, &mut changed), None, "byte {i}");
        }
    }

    #[test]
    fn a_message_has_the_length_that_was_drawn_for_it() {
        let (mask, keys) = (MaskKey::new([1; 32]), BindingKeys::new(&[2; 32], 3));
        let mut random = Random::new().unwrap();
        for is_bound in [true, false] {
            for _ in 0..100 {
                let len = BindingKeys::draw_len(is_bound, &mut random);
                let range = if is_bound { CONFIRMATION_BYTES } else { TEST_BYTES };
                assert!(range.contains(&len) && (BINDING_MIN..=BINDING_MAX).contains(&len));
                let mut bind = keys.seal_up(&MESSAGES[0].1, len, &mut random);
                assert_eq!(bind.len(), len);
                assert_eq!(keys.open(Direction::Up, &mut bind), Some(MESSAGES[0].1));
                assert_eq!(keys.seal_down(&mask, &MESSAGES[2].1, len, &mut random).len(), len);
            }
        }
    }
}
