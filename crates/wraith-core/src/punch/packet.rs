//! Packets of hole punching and address observation (SPEC §14.1): `salt(8) ‖ tag(8) ‖ sealed`. To a
//! host without the secret, they look like random bytes of random length.
//!
//! The tag shows at the cost of one hash whether a datagram belongs to a secret; the seal
//! authenticates the whole datagram. Each direction has its own keys, so a packet that is reflected
//! to its sender does not authenticate. Invariant: an unauthentic packet changes nothing, and no
//! answer is longer than its question.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use rand_core::Rng;
use wraith_crypto::aead::{AeadKey, Suite, TAG_BYTES};
use wraith_crypto::{equal, kdf};
use wraith_noise::draw_len;

use crate::frame::{ADDRESS_BYTES, decode_address, encode_address};
use crate::streams::Role;

/// Length of the random salt, which is the nonce.
pub(super) const SALT_BYTES: usize = 8;
/// Random value that the sender draws; it identifies the packet.
pub(super) type Salt = [u8; SALT_BYTES];

const HEADER: usize = SALT_BYTES + 8;
/// Length of the body: flags ‖ salt that is answered ‖ address.
const BODY: usize = 1 + SALT_BYTES + ADDRESS_BYTES;
/// Length of the shortest packet, without padding.
const LEN_MIN: usize = HEADER + BODY + TAG_BYTES;
/// Lengths of questions. They are small, because the budget of strangers is counted in packets.
const QUESTION: RangeInclusive<usize> = 64..=160;

const ASKS: u8 = 1;
const ANSWERS: u8 = 2;
/// Flag of a question to a reflector: answer from the other port.
const FROM_OTHER_PORT: u8 = 4;
/// In a question to a reflector, the bits from here on are the pause before the answer, in units of
/// [`PAUSE_UNIT`].
const PAUSE_SHIFT: u32 = 3;
/// Maximum pause, in these units.
const PAUSE_MAX: u8 = u8::MAX >> PAUSE_SHIFT;
/// Unit of the pause. NAT mappings live from half a minute to a few minutes.
const PAUSE_UNIT: Duration = Duration::from_secs(8);

/// Content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// The sender requests an answer.
    pub(super) asks: bool,
    /// This packet answers the packet with this salt, which came from that address.
    pub(super) answers: Option<(Salt, SocketAddr)>,
}

/// Manner of a reflector's answer; by default at once, from the address asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    /// Answer from the other port.
    pub(super) from_other_port: bool,
    /// Answer after this many [`PAUSE_UNIT`]s.
    pause: u8,
}

impl Wish {
    /// Requests an answer from the other port.
    pub(super) fn from_other_port() -> Self {
        Self { from_other_port: true, pause: 0 }
    }

    /// Requests an answer after `pause`, rounded down to the encodable value.
    pub(super) fn after(pause: Duration) -> Self {
        let units = pause.as_secs() / PAUSE_UNIT.as_secs();
        let pause = u8::try_from(units).unwrap_or(PAUSE_MAX).min(PAUSE_MAX);
        Self { from_other_port: false, pause }
    }

    pub(super) fn pause(self) -> Duration {
        PAUSE_UNIT * u32::from(self.pause)
    }

    fn to_flags(self) -> u8 {
        let port = if self.from_other_port { FROM_OTHER_PORT } else { 0 };
        port | self.pause << PAUSE_SHIFT
    }

    fn from_flags(flags: u8) -> Self {
        Self { from_other_port: flags & FROM_OTHER_PORT != 0, pause: flags >> PAUSE_SHIFT }
    }
}

/// Keys of one direction.
struct Direction {
    tag: [u8; 32],
    seal: AeadKey,
}

impl Direction {
    fn new(secret: &[u8; 32], from: Role) -> Self {
        let (tag, seal) = match from {
            Role::Initiator => ("wraith/1 punch tag 1", "wraith/1 punch key 1"),
            Role::Responder => ("wraith/1 punch tag 2", "wraith/1 punch key 2"),
        };
        let seal = AeadKey::library(Suite::ChaCha20Poly1305, &kdf::derive(seal, secret));
        Self { tag: kdf::derive(tag, secret), seal }
    }

    fn tag(&self, salt: &[u8]) -> [u8; 8] {
        let tag = kdf::keyed(&self.tag, salt);
        *tag.first_chunk().expect("32 bytes hold 8")
    }
}

/// Keys of both directions, from one side's point of view.
pub(super) struct Keys {
    send: Direction,
    recv: Direction,
}

impl Keys {
    pub(super) fn new(secret: &[u8; 32], role: Role) -> Self {
        Self { send: Direction::new(secret, role), recv: Direction::new(secret, role.peer()) }
    }

    /// Returns a question of random length, and its salt.
    pub(super) fn question(&self, message: &Message, rng: &mut impl Rng) -> (Salt, Vec<u8>) {
        let len = draw_len(rng, QUESTION);
        self.seal(message, Wish::default(), len, rng)
    }

    /// Like [`question`](Self::question), for a reflector.
    pub(super) fn ask(&self, wish: Wish, rng: &mut impl Rng) -> (Salt, Vec<u8>) {
        let len = draw_len(rng, QUESTION);
        self.seal(&Message { asks: true, answers: None }, wish, len, rng)
    }

    /// Returns an answer to a packet of `asked` bytes, no longer than that.
    pub(super) fn answer(
        &self,
        message: &Message,
        asked: usize,
        rng: &mut impl Rng,
    ) -> (Salt, Vec<u8>) {
        let len = draw_len(rng, LEN_MIN..=asked.clamp(LEN_MIN, *QUESTION.end()));
        self.seal(message, Wish::default(), len, rng)
    }

    fn seal(
        &self,
        message: &Message,
        wish: Wish,
        len: usize,
        rng: &mut impl Rng,
    ) -> (Salt, Vec<u8>) {
        let mut salt = [0; SALT_BYTES];
        rng.fill_bytes(&mut salt);
        let mut packet = vec![0; len];
        let (header, body) = packet.split_at_mut(HEADER);
        header[..SALT_BYTES].copy_from_slice(&salt);
        header[SALT_BYTES..].copy_from_slice(&self.send.tag(&salt));
        let (body, tag) = body.split_at_mut(len - HEADER - TAG_BYTES);
        body[0] = wish.to_flags() | if message.asks { ASKS } else { 0 };
        if let Some((answered, seen_at)) = message.answers {
            body[0] |= ANSWERS;
            body[1..1 + SALT_BYTES].copy_from_slice(&answered);
            body[1 + SALT_BYTES..BODY].copy_from_slice(&encode_address(seen_at));
        }
        tag.copy_from_slice(&self.send.seal.seal(nonce(&salt), header, body));
        (salt, packet)
    }

    /// Opens a packet of the other side. Any other datagram costs one hash.
    pub(super) fn open(&self, datagram: &[u8]) -> Option<(Salt, Message)> {
        self.open_all(datagram).map(|(salt, message, _)| (salt, message))
    }

    /// Opens a question to a reflector. Returns `None` for any other datagram.
    pub(super) fn open_question(&self, datagram: &[u8]) -> Option<(Salt, Wish)> {
        let (salt, message, wish) = self.open_all(datagram)?;
        (message.asks && message.answers.is_none()).then_some((salt, wish))
    }

    fn open_all(&self, datagram: &[u8]) -> Option<(Salt, Message, Wish)> {
        if !is_length(datagram.len()) {
            return None;
        }
        let (header, sealed) = datagram.split_at(HEADER);
        let (salt, tag) = header.split_first_chunk::<SALT_BYTES>()?;
        if !equal(&self.recv.tag(salt), tag) {
            return None;
        }
        let mut body = [0; *QUESTION.end()];
        let body = &mut body[..sealed.len()];
        body.copy_from_slice(sealed);
        self.recv.seal.open(nonce(salt), header, body).ok()?;
        let answers = if body[0] & ANSWERS == 0 {
            None
        } else {
            let (answered, rest) = body[1..].split_first_chunk()?;
            Some((*answered, decode_address(rest.first_chunk()?)?))
        };
        let message = Message { asks: body[0] & ASKS != 0, answers };
        Some((*salt, message, Wish::from_flags(body[0])))
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

/// Returns true if packets can have this length.
pub(super) fn is_length(len: usize) -> bool {
    (LEN_MIN..=*QUESTION.end()).contains(&len)
}

fn nonce(salt: &Salt) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..SALT_BYTES].copy_from_slice(salt);
    nonce
}

#[cfg(test)]
mod tests {
    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;

    use super::*;

    const MESSAGE: Message = Message { asks: true, answers: None };

    fn rng() -> ChaCha20Rng {
        ChaCha20Rng::from_seed([1; 32])
    }

    fn sides() -> [Keys; 2] {
        [Role::Initiator, Role::Responder].map(|role| Keys::new(&[7; 32], role))
    }

    #[test]
    fn only_the_other_side_opens_a_packet() {
        let [one, other] = sides();
        let seen_at = "[2001:db8::1]:9".parse().unwrap();
        for message in [MESSAGE, Message { asks: false, answers: Some(([3; 8], seen_at)) }] {
            let (salt, packet) = one.question(&message, &mut rng());
            assert_eq!(other.open(&packet), Some((salt, message)));
            assert_eq!(one.open(&packet), None, "sent back");
            let stranger = Keys::new(&[8; 32], Role::Responder);
            assert_eq!(stranger.open(&packet), None);
        }
    }

    #[test]
    fn a_reflector_reads_how_it_is_to_answer_and_answers_are_no_questions() {
        let [one, other] = sides();
        for wish in [Wish::default(), Wish::from_other_port(), Wish::after(Duration::from_secs(24))]
        {
            let (salt, packet) = one.ask(wish, &mut rng());
            assert_eq!(other.open_question(&packet), Some((salt, wish)));
            assert_eq!(other.open(&packet), Some((salt, MESSAGE)));
        }
        for message in [
            Message { asks: false, answers: None },
            Message { asks: true, answers: Some(([3; 8], ([192, 0, 2, 1], 9).into())) },
        ] {
            assert_eq!(other.open_question(&one.question(&message, &mut rng()).1), None);
        }
        for (wanted, said) in [(7, 0), (31, 24), (248, 248), (9999, 248)] {
            assert_eq!(Wish::after(Duration::from_secs(wanted)).pause().as_secs(), said);
        }
    }

    #[test]
    fn no_bit_of_a_packet_can_be_another_and_no_byte_can_be_missing() {
        let [one, other] = sides();
        let (_, packet) = one.question(&MESSAGE, &mut rng());
        for i in 0..packet.len() {
            let mut forged = packet.clone();
            forged[i] ^= 1 << (i % 8);
            assert_eq!(other.open(&forged), None, "{i}");
            assert_eq!(other.open(&packet[..i]), None, "{i}");
        }
    }

    #[test]
    fn an_answer_is_never_longer_than_its_question_and_lengths_vary() {
        let [one, other] = sides();
        let mut rng = rng();
        let mut lengths = std::collections::HashSet::new();
        for _ in 0..500 {
            let (_, question) = one.question(&MESSAGE, &mut rng);
            let (_, answer) = other.answer(&MESSAGE, question.len(), &mut rng);
            assert!(answer.len() <= question.len());
            assert!(one.open(&answer).is_some());
            lengths.insert(question.len());
        }
        assert!(lengths.len() > 60, "{}", lengths.len());
    }

    #[test]
    fn every_byte_of_a_packet_is_anything_with_the_same_content() {
        let [one, _] = sides();
        let mut rng = rng();
        let mut seen = vec![[false; 256]; 60];
        for _ in 0..4000 {
            let (_, packet) = one.question(&MESSAGE, &mut rng);
            seen.iter_mut().zip(&packet).for_each(|(seen, byte)| seen[usize::from(*byte)] = true);
        }
        // 4000 draws of 256 values: each value is missing with probability 2e-7.
        assert!(seen.iter().all(|seen| seen.iter().all(|seen| *seen)));
    }
}
