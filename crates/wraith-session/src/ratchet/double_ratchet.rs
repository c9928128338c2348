//! The Double Ratchet itself: what a conversation's state is, and how a message moves it.
//!
//! Names of the specification ("The Double Ratchet Algorithm", §4) and here: RK `root`, DHs `own`, DHr `remote`, CKs/HKs/Ns
//! `sending`, CKr/HKr/Nr `receiving`, NHKs/NHKr `next_sending_header`/`next_receiving_header`, PN `previous_len`, MKSKIPPED
//! `skipped`.
//!
//! A sending chain begins with the first message after a turn, not when the peer's key arrives. So the new key exists for as
//! short as possible, a stolen state heals one turn earlier (the peer's next answer is to a key that was not in it), and
//! opening takes no randomness. All other messages cost no operation on the curve.
//!
//! Invariants: `own` is there exactly while the peer may still answer it; `remote` is there where `sending` can begin. Nothing
//! changes before a message has authenticated.

use std::fmt;
use std::time::Duration;

use rand_core::CryptoRng;
use wraith_crypto::{AeadKey, NodeId, Suite, TAG_BYTES};
use zeroize::Zeroize;

use super::curve;
use super::error::{DecryptError, EncryptError};
use super::hybrid::{Arrived, Hybrid, KemPart};
use super::keys::{self, HeaderKey, RootStep, Secret};
use super::message::{
    Envelope, HEADER_BYTES, Header, INITIAL_BYTES, KIND_INITIAL, KIND_MESSAGE, KemKind,
    OVERHEAD_BYTES, PLAINTEXT_BYTES_MAX, SALT_BYTES, header_nonce,
};
use super::padding;
use super::skipped::{SKIP_MAX, SkippedKeys};

/// Body and ML-KEM part are sealed with keys that seal nothing else.
pub(super) const ONLY_NONCE: [u8; 12] = [0; 12];

/// What is sent since the last turn.
pub(super) struct SendingChain {
    pub(super) key: Secret,
    pub(super) header: HeaderKey,
    /// The number of the next message.
    pub(super) number: u32,
    /// The public side of `own`.
    pub(super) ratchet_key: [u8; 32],
}

/// What the peer sends since its last turn.
pub(super) struct ReceivingChain {
    /// Tells the chains of skipped keys apart; nobody else knows it.
    pub(super) id: u32,
    pub(super) key: Secret,
    pub(super) header: HeaderKey,
    /// The number of the next message, unless some are missing.
    pub(super) number: u32,
}

/// One side of a conversation with one peer.
///
/// [`Self::initiate`](Self::initiate) and [`Self::respond`](Self::respond) start it; [`Self::encrypt`] and [`Self::decrypt`]
/// are all that moves it. [`Self::save`](Self::save) it after each of the two, before a message leaves or is acted on. Wiped
/// when dropped.
///
/// In memory it is less than 2 KiB while nothing is missing, 1.2 KiB more while a key or ciphertext of ML-KEM or the initial
/// part is under way, and about 33 bytes more for each missing message.
pub struct Ratchet {
    pub(super) suite: Suite,
    pub(super) me: NodeId,
    pub(super) peer: NodeId,
    pub(super) binding: [u8; 32],
    pub(super) root: Secret,
    pub(super) own: Option<Secret>,
    pub(super) remote: Option<[u8; 32]>,
    pub(super) sending: Option<SendingChain>,
    pub(super) previous_len: u32,
    pub(super) next_sending_header: Secret,
    pub(super) receiving: Option<ReceivingChain>,
    pub(super) next_receiving_header: Secret,
    /// How many receiving chains there were.
    pub(super) chains: u32,
    pub(super) skipped: SkippedKeys,
    pub(super) hybrid: Hybrid,
    /// What each message carries until the first answer.
    pub(super) initial: Option<Box<[u8; INITIAL_BYTES]>>,
    pub(super) padding: bool,
}

/// Which key opened a header.
enum Source {
    Old(u32),
    Current,
    Next,
}

/// Where a message leads if its body is authentic.
enum Step {
    Skipped { chain: u32 },
    Advance { chain: ChainAt },
    Turn { root: Box<RootStep>, arrived: Arrived, old: Option<ChainAt>, chain: ChainAt },
}

/// A receiving chain moved on, and the keys that were skipped on the way.
struct ChainAt {
    key: Secret,
    first: u32,
    skipped: Box<[Option<Secret>]>,
}

impl ChainAt {
    /// Moves `key`, which stands at `number`, on to `target`.
    fn at(key: &Secret, number: u32, target: u32) -> Result<Self, DecryptError> {
        let count = target.saturating_sub(number);
        if count > SKIP_MAX {
            return Err(DecryptError::TooManySkipped);
        }
        Ok(Self::skip(key, number, count))
    }

    /// Moves `key`, which stands at `number`, to the end of its chain. Of what is missing there, it has the first
    /// [`SKIP_MAX`]: a chain that lost more than that must not keep the conversation from going on.
    fn at_end(key: &Secret, number: u32, len: u32) -> Self {
        Self::skip(key, number, len.saturating_sub(number).min(SKIP_MAX))
    }

    fn skip(key: &Secret, number: u32, count: u32) -> Self {
        let mut key = key.clone();
        let mut skipped = Vec::with_capacity(count as usize);
        for _ in 0..count {
            skipped.push(Some(keys::chain_step(&mut key)));
        }
        Self { key, first: number, skipped: skipped.into_boxed_slice() }
    }
}

impl Ratchet {
    /// Who the other side is.
    #[must_use]
    pub fn peer(&self) -> NodeId {
        self.peer
    }

    /// Who this side is.
    #[must_use]
    pub fn me(&self) -> NodeId {
        self.me
    }

    /// The suite, which the initiator has chosen.
    #[must_use]
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// 32 bytes that both sides of this conversation have and no other conversation has: the hash of everything public that
    /// started it. Comparing it over another medium shows that nobody is in between.
    #[must_use]
    pub fn binding(&self) -> &[u8; 32] {
        &self.binding
    }

    /// Whether messages still carry the initial part: nothing of the peer has opened yet.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.initial.is_some()
    }

    /// How many keys of missing messages are held.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.skipped.held()
    }

    /// Whether bodies are padded to Padmé buckets ([`padme`](super::padme)), which hides their length for up to 12 % more
    /// bytes. Off at first. The other side needs no setting.
    pub fn set_padding(&mut self, padding: bool) {
        self.padding = padding;
    }

    /// Tells the time, from any zero that stays the same: keys of missing messages expire by it
    /// ([`SKIPPED_LIFETIME`](super::SKIPPED_LIFETIME)). An earlier time than before is ignored. Without, they expire by the
    /// number of messages only ([`SKIPPED_LIFETIME_MESSAGES`](super::SKIPPED_LIFETIME_MESSAGES)).
    pub fn set_time(&mut self, time: Duration) {
        self.skipped.set_time(time);
    }

    /// Appends the message of `plaintext` to `out`. `aad` is not sent; the other side must give the same. 16 bytes are drawn
    /// from `rng`, and keys for the first message after a turn.
    ///
    /// # Errors
    /// [`EncryptError`]; nothing has changed then.
    pub fn encrypt(
        &mut self,
        rng: &mut impl CryptoRng,
        aad: &[u8],
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EncryptError> {
        if plaintext.len() > PLAINTEXT_BYTES_MAX {
            return Err(EncryptError::TooLong);
        }
        if self.sending.is_none() {
            self.begin_chain(rng)?;
        }
        let sending = self.sending.as_ref().expect("it has begun");
        let next = sending.number.checked_add(1).ok_or(EncryptError::ChainExhausted)?;
        let body_len =
            if self.padding { padding::padded_len(plaintext.len()) } else { plaintext.len() };
        let start = out.len();
        out.reserve(self.front_len() + body_len + TAG_BYTES);
        self.write_front(rng, out);

        let sending = self.sending.as_mut().expect("it has begun");
        let body_at = out.len();
        let message_key = keys::chain_step(&mut sending.key);
        let bound = &out[start..body_at - TAG_BYTES];
        let key = keys::body_key(self.suite, &message_key, bound, body_len);
        out.resize(body_at + body_len, 0);
        let body = &mut out[body_at..];
        let tag = if self.padding {
            body[..plaintext.len()].copy_from_slice(plaintext);
            padding::pad(&mut body[plaintext.len()..]);
            key.seal(ONLY_NONCE, aad, body)
        } else {
            key.seal_from(ONLY_NONCE, aad, body, 0, plaintext)
        };
        out.extend_from_slice(&tag);
        sending.number = next;
        self.hybrid.count_sent(plaintext.len());
        Ok(())
    }

    /// Bytes in front of the body.
    fn front_len(&self) -> usize {
        let initial = self.initial.as_ref().map_or(0, |_| INITIAL_BYTES);
        let kem = self.hybrid.part.as_ref().map_or(0, |part| part.bytes().len() + TAG_BYTES);
        OVERHEAD_BYTES - TAG_BYTES + initial + kem
    }

    /// Appends what stands in front of the body of the next message.
    fn write_front(&self, rng: &mut impl CryptoRng, out: &mut Vec<u8>) {
        let sending = self.sending.as_ref().expect("it has begun");
        match &self.initial {
            None => out.push(KIND_MESSAGE),
            Some(initial) => {
                out.push(KIND_INITIAL);
                out.extend_from_slice(&initial[..]);
            }
        }
        let mut salt = [0; SALT_BYTES];
        rng.fill_bytes(&mut salt);
        out.extend_from_slice(&salt);
        let mut header = Header {
            padded: self.padding,
            kem: self.hybrid.part.as_ref().map(KemPart::kind),
            ratchet_key: sending.ratchet_key,
            number: sending.number,
            previous_len: self.previous_len,
        }
        .encode();
        let tag = sending.header.cipher.seal(header_nonce(&salt), &[], &mut header);
        out.extend_from_slice(&header);
        out.extend_from_slice(&tag);
        if let Some(part) = &self.hybrid.part {
            let at = out.len();
            out.extend_from_slice(part.bytes());
            let key = keys::kem_part_key(self.suite, &sending.header.secret, &salt);
            let tag = key.seal(ONLY_NONCE, &[], &mut out[at..]);
            out.extend_from_slice(&tag);
        }
    }

    /// The sending half of a DH ratchet step.
    pub(super) fn begin_chain(&mut self, rng: &mut impl CryptoRng) -> Result<(), EncryptError> {
        let remote = self.remote.as_ref().ok_or(EncryptError::PublicKey)?;
        let (own, ratchet_key) = curve::new_pair(rng);
        let dh = curve::agree(&own, remote).ok_or(EncryptError::PublicKey)?;
        let (part, share) = self.hybrid.begin_chain(rng)?;
        let step = keys::root_step(&self.root, &dh, share.as_ref());
        self.hybrid.chain_began(part);
        self.root = step.root;
        self.own = Some(own);
        let header = std::mem::replace(&mut self.next_sending_header, step.next_header);
        let header = HeaderKey::new(self.suite, header);
        self.sending = Some(SendingChain { key: step.chain, header, number: 0, ratchet_key });
        Ok(())
    }

    /// Appends the plaintext of `message` to `out`.
    ///
    /// What a forged message costs: a header key is tried for the current chain, for the next, and for at most
    /// [`OLD_CHAINS_MAX`](super::OLD_CHAINS_MAX) old ones. Only who has seen an authentic message and puts its header in front of
    /// another body makes this side compute more: half a ratchet step, and at most 2 × [`SKIP_MAX`](super::SKIP_MAX) message keys.
    ///
    /// # Errors
    /// [`DecryptError`]; nothing has changed then, and `out` is as before.
    pub fn decrypt(
        &mut self,
        aad: &[u8],
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), DecryptError> {
        let envelope = Envelope::parse(message)?;
        let (source, header_key, header) = self.open_header(&envelope)?;
        let part = self.open_kem_part(header_key, &envelope, header.kem)?;
        let (step, message_key) = self.step(&source, &header, &part)?;
        self.open_body(&message_key, &envelope, &header, aad, out)?;
        self.commit(step, &header);
        Ok(())
    }

    /// Tries the header keys there are; that which opened the header comes with it.
    fn open_header(&self, envelope: &Envelope) -> Result<(Source, &Secret, Header), DecryptError> {
        let (nonce, sealed) = (header_nonce(envelope.salt()), envelope.sealed_header());
        let open = |cipher: &AeadKey| {
            let mut bytes = *sealed;
            cipher.open(nonce, &[], &mut bytes).ok()?;
            Some(*bytes.first_chunk::<HEADER_BYTES>().expect("the rest is the tag"))
        };
        let current = self.receiving.as_ref().and_then(|chain| {
            Some((Source::Current, &chain.header.secret, open(&chain.header.cipher)?))
        });
        let try_others = || {
            let next = (Source::Next, &self.next_receiving_header);
            let old = self.skipped.old_headers().map(|(id, secret)| (Source::Old(id), secret));
            std::iter::once(next).chain(old).find_map(|(source, secret)| {
                Some((source, secret, open(&keys::quick_key(self.suite, secret))?))
            })
        };
        let (source, secret, bytes) =
            current.or_else(try_others).ok_or(DecryptError::Unauthentic)?;
        let header = Header::decode(&bytes).ok_or(DecryptError::Violation)?;
        Ok((source, secret, header))
    }

    /// The ML-KEM part, empty if there is none. It is opened where nothing is done with it, too: its tag is not bound by the
    /// body.
    fn open_kem_part(
        &self,
        header_key: &Secret,
        envelope: &Envelope,
        kind: Option<KemKind>,
    ) -> Result<Vec<u8>, DecryptError> {
        let Some(kind) = kind else { return Ok(Vec::new()) };
        let key = keys::kem_part_key(self.suite, header_key, envelope.salt());
        let mut part = envelope.sealed_kem(kind)?.to_vec();
        key.open(ONLY_NONCE, &[], &mut part).map_err(|_| DecryptError::Unauthentic)?;
        part.truncate(kind.len());
        Ok(part)
    }

    /// Where a message with this header leads, and its message key.
    fn step(
        &self,
        source: &Source,
        header: &Header,
        part: &[u8],
    ) -> Result<(Step, Secret), DecryptError> {
        let skipped = |chain| {
            let key = self.skipped.get(chain, header.number).ok_or(DecryptError::KeyGone)?;
            Ok((Step::Skipped { chain }, key.clone()))
        };
        match (source, &self.receiving) {
            (Source::Old(chain), _) => skipped(*chain),
            (Source::Current, Some(chain)) if header.number < chain.number => skipped(chain.id),
            (Source::Current, Some(chain)) => {
                let mut chain = ChainAt::at(&chain.key, chain.number, header.number)?;
                let message_key = keys::chain_step(&mut chain.key);
                Ok((Step::Advance { chain }, message_key))
            }
            _ => self.turn(header, part),
        }
    }

    /// The receiving half of a DH ratchet step.
    fn turn(&self, header: &Header, part: &[u8]) -> Result<(Step, Secret), DecryptError> {
        // Without a key of ours to answer, the peer has no reason for a new chain.
        let own = self.own.as_ref().ok_or(DecryptError::Violation)?;
        let dh = curve::agree(own, &header.ratchet_key).ok_or(DecryptError::Violation)?;
        let arrived = self.hybrid.arrive(header.kem, part)?;
        let root = Box::new(keys::root_step(&self.root, &dh, arrived.share.as_ref()));
        let mut chain = ChainAt::at(&root.chain, 0, header.number)?;
        let old = self.receiving.as_ref();
        let old = old.map(|old| ChainAt::at_end(&old.key, old.number, header.previous_len));
        let message_key = keys::chain_step(&mut chain.key);
        Ok((Step::Turn { root, arrived, old, chain }, message_key))
    }

    /// Verifies the body and appends its plaintext to `out`.
    fn open_body(
        &self,
        message_key: &Secret,
        envelope: &Envelope,
        header: &Header,
        aad: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), DecryptError> {
        let (bound, body) = envelope.split_body(header.kem)?;
        let body_len = body.len() - TAG_BYTES;
        let key = keys::body_key(self.suite, message_key, bound, body_len);
        let start = out.len();
        out.extend_from_slice(body);
        let opened = match key.open(ONLY_NONCE, aad, &mut out[start..]) {
            Err(_) => Err(DecryptError::Unauthentic),
            Ok(()) if header.padded => {
                let body = &out[start..start + body_len];
                padding::unpadded_len(body).ok_or(DecryptError::Violation)
            }
            Ok(()) => Ok(body_len),
        };
        match opened {
            Ok(len) => out.truncate(start + len),
            Err(_) => {
                out[start..].zeroize();
                out.truncate(start);
            }
        }
        opened.map(|_| ())
    }

    /// The message is authentic: the state moves.
    fn commit(&mut self, step: Step, header: &Header) {
        self.initial = None;
        match step {
            Step::Skipped { chain } => self.skipped.remove(chain, header.number),
            Step::Advance { chain: ChainAt { key, first, skipped } } => {
                let receiving = self.receiving.as_mut().expect("it has moved on");
                self.skipped.add(receiving.id, first, skipped);
                receiving.key = key;
                // A chain ends before its numbers do.
                receiving.number = header.number.saturating_add(1);
            }
            Step::Turn { root, arrived, old, chain } => {
                self.commit_turn(*root, arrived, old, chain, header);
            }
        }
        self.skipped.count_received();
    }

    fn commit_turn(
        &mut self,
        root: RootStep,
        arrived: Arrived,
        old: Option<ChainAt>,
        chain: ChainAt,
        header: &Header,
    ) {
        if let (Some(receiving), Some(old)) = (self.receiving.take(), old) {
            self.skipped.add(receiving.id, old.first, old.skipped);
            self.skipped.retire(receiving.id, receiving.header.secret);
        }
        self.chains = self.chains.wrapping_add(1);
        self.skipped.add(self.chains, chain.first, chain.skipped);
        self.root = root.root;
        let header_key = std::mem::replace(&mut self.next_receiving_header, root.next_header);
        self.receiving = Some(ReceivingChain {
            id: self.chains,
            key: chain.key,
            header: HeaderKey::new(self.suite, header_key),
            number: header.number.saturating_add(1),
        });
        self.previous_len = self.sending.take().map_or(0, |sending| sending.number);
        self.own = None;
        self.remote = Some(header.ratchet_key);
        self.hybrid.chain_arrived(arrived);
    }
}

impl fmt::Debug for Ratchet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ratchet")
            .field("me", &self.me)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}
