//! The Double Ratchet: the state of a conversation, and the state change of each message.
//!
//! Names in the specification ("The Double Ratchet Algorithm", §4) and in this module: RK `root`,
//! DHs `own`, DHr `remote`, CKs/HKs/Ns `sending`, CKr/HKr/Nr `receiving`, NHKs/NHKr
//! `next_sending_header`/`next_receiving_header`, PN `previous_len`, MKSKIPPED `skipped`.
//!
//! A turn is a change of the sender: a message after one from the peer. A sending chain begins with
//! the first message after a turn, not with the arrival of the peer's key. This has three effects:
//! - The new key exists for the shortest possible time.
//! - After a theft of the state, security returns one turn earlier: the peer encrypts its next
//!   answer to a key that the stolen state lacks.
//! - Decryption needs no randomness.
//!
//! A message that begins no chain, for its sender or its receiver, costs no curve operation.
//!
//! Invariants: `own` is present exactly while the peer may still answer it; `remote` is present
//! whenever a sending chain can begin. The state changes only after a message has authenticated.

use std::time::Duration;

use rand_core::CryptoRng;
use wraith_crypto::{AeadKey, NodeId, Suite, TAG_BYTES, redacted_debug};
use zeroize::Zeroize;

use super::chain::MessageChain;
use super::curve;
use super::error::{DecryptError, EncryptError};
use super::hybrid::{Hybrid, KemPart, ReceivedKem};
use super::keys::{self, HeaderKey, RootStep, Secret};
use super::message::{
    Envelope, HEADER_BYTES, Header, INITIAL_BYTES, KIND_INITIAL, KIND_MESSAGE, KemKind,
    OVERHEAD_BYTES, PLAINTEXT_BYTES_MAX, SALT_BYTES, header_nonce,
};
use super::padding;
use super::skipped::{KnownChain, SKIP_MAX, SkippedKeys};
use crate::vault::{RecordSlot, VaultError};

/// Nonce of body and ML-KEM part: each of their keys seals one text.
pub(super) const ONLY_NONCE: [u8; 12] = [0; 12];

/// The sending chain since the last turn.
pub(super) struct SendingChain {
    /// At the next message.
    pub(super) keys: MessageChain,
    pub(super) header: HeaderKey,
    /// Public key of `own`.
    pub(super) ratchet_key: [u8; 32],
}

/// The peer's sending chain since its last turn.
pub(super) struct ReceivingChain {
    /// At the next message, if none is skipped.
    pub(super) keys: MessageChain,
    pub(super) header: HeaderKey,
}

/// One side of a conversation with one peer, in memory or [kept](Self::keep) in a vault.
///
/// [`Self::initiate`](Self::initiate) and [`Self::respond`](Self::respond) start a conversation.
/// Only [`Self::encrypt`] and [`Self::decrypt`] advance it. Without a vault, [save](Self::save) it
/// after each of the two, before the message is sent or acted on. The state is wiped when dropped.
///
/// In memory it takes 3.2 KiB while no message is missing. It takes 1.2 KiB more while an ML-KEM
/// key or ciphertext or the initial part is in use, and about 33 bytes more for each missing
/// message. A chain with missing or forgotten messages takes 0.1 to 0.4 KiB. It never takes more
/// than 0.7 MB.
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
    pub(super) skipped: SkippedKeys,
    pub(super) hybrid: Hybrid,
    /// Initial part, carried by each message until the first answer.
    pub(super) initial: Option<Box<[u8; INITIAL_BYTES]>>,
    pub(super) padding: bool,
    /// The place in a vault, if the conversation is kept in one.
    pub(super) kept: Option<Box<RecordSlot>>,
}

/// The chain of the key that opened a header.
enum HeaderMatch {
    Known(KnownChain),
    Next,
}

/// The state change of a message, applied once its body authenticates.
enum StateChange {
    Skipped {
        chain: KnownChain,
    },
    /// The next message, without a gap. It needs no copy of the chain.
    Next,
    Advance {
        chain: AdvancedChain,
    },
    RatchetStep(Box<ReceivedChain>),
}

/// A new receiving chain, and the end of the one before.
struct ReceivedChain {
    root: RootStep,
    arrived: ReceivedKem,
    old: Option<AdvancedChain>,
    chain: AdvancedChain,
}

/// An advanced receiving chain, with the keys skipped on the way.
struct AdvancedChain {
    keys: MessageChain,
    /// Number of the first message in `skipped`.
    first: u32,
    /// Whether more messages are missing than have keys in `skipped`.
    is_cut: bool,
    skipped: Box<[Option<Secret>]>,
}

impl AdvancedChain {
    /// Advances `chain` to `number`. Keeps the last [`SKIP_MAX`] of the missing keys: a chain with
    /// more losses must not block the conversation.
    fn to(chain: &MessageChain, number: u32) -> Self {
        let mut keys = chain.clone();
        let start = keys.number();
        let first = number.saturating_sub(SKIP_MAX).max(start);
        keys.seek(first);
        let mut skipped = Vec::with_capacity(number.saturating_sub(first) as usize);
        for _ in first..number {
            skipped.push(Some(keys.next_key()));
        }
        Self { keys, first, is_cut: first > start, skipped: skipped.into_boxed_slice() }
    }
}

impl Ratchet {
    /// Returns the peer's identity.
    #[must_use]
    pub fn peer(&self) -> NodeId {
        self.peer
    }

    /// Returns the identity of this side.
    #[must_use]
    pub fn local_id(&self) -> NodeId {
        self.me
    }

    /// Returns the suite, which the initiator chose.
    #[must_use]
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// Returns 32 bytes that both sides of this conversation share and no other conversation has:
    /// the hash of all public values of its start. Comparing them over another channel rules out a
    /// man in the middle.
    #[must_use]
    pub fn binding(&self) -> &[u8; 32] {
        &self.binding
    }

    /// Returns whether messages still carry the initial part, because no message of the peer has
    /// opened yet.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.initial.is_some()
    }

    /// Returns the number of held keys of missing messages.
    #[must_use]
    pub fn missing(&self) -> usize {
        self.skipped.held()
    }

    /// Sets whether bodies are padded to Padmé buckets ([`padme`](super::padme)). Padding hides
    /// their length, for up to 12 % more bytes. Off by default. The peer needs no setting.
    pub fn set_padding(&mut self, padding: bool) {
        self.padding = padding;
    }

    /// Sets the current time, from any fixed origin. Keys of missing messages expire by it
    /// ([`SKIPPED_LIFETIME`](super::SKIPPED_LIFETIME)). A time before the current one is ignored.
    /// If the caller never sets the time, keys expire by the number of messages only
    /// ([`SKIPPED_LIFETIME_MESSAGES`](super::SKIPPED_LIFETIME_MESSAGES)).
    pub fn set_time(&mut self, time: Duration) {
        self.skipped.set_time(time);
    }

    /// Encrypts `plaintext` and appends the message to `out`. `aad` is not sent; the peer must pass
    /// the same. Draws 16 bytes from `rng`, and new keys for the first message after a turn. In a
    /// vault, the conversation is stored before this returns.
    ///
    /// # Errors
    /// [`EncryptError`]; the state and `out` are unchanged.
    pub fn encrypt(
        &mut self,
        rng: &mut impl CryptoRng,
        aad: &[u8],
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), EncryptError> {
        let start = out.len();
        self.encrypt_step(rng, aad, plaintext, out)?;
        self.store().map_err(|why| take_back(out, start, why).into())
    }

    /// As [`Self::encrypt`], without a store.
    pub(super) fn encrypt_step(
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
            self.send_ratchet_step(rng)?;
        }
        let sending = self.sending.as_ref().expect("it has begun");
        if sending.keys.number() == u32::MAX {
            return Err(EncryptError::ChainExhausted);
        }
        let body_len =
            if self.padding { padding::padded_len(plaintext.len()) } else { plaintext.len() };
        let start = out.len();
        out.reserve(self.front_len() + body_len + TAG_BYTES);
        self.write_front(rng, out);

        let sending = self.sending.as_mut().expect("it has begun");
        let body_at = out.len();
        let message_key = sending.keys.next_key();
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
        self.hybrid.count_sent(plaintext.len());
        Ok(())
    }

    /// Returns the number of bytes in front of the body.
    fn front_len(&self) -> usize {
        let initial = self.initial.as_ref().map_or(0, |_| INITIAL_BYTES);
        let kem = self.hybrid.part.as_ref().map_or(0, |part| part.bytes().len() + TAG_BYTES);
        OVERHEAD_BYTES - TAG_BYTES + initial + kem
    }

    /// Appends all fields in front of the body of the next message.
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
            number: sending.keys.number(),
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

    /// Performs the sending half of a DH ratchet step.
    pub(super) fn send_ratchet_step(
        &mut self,
        rng: &mut impl CryptoRng,
    ) -> Result<(), EncryptError> {
        let remote = self.remote.as_ref().ok_or(EncryptError::PublicKey)?;
        let (own, ratchet_key) = curve::new_pair(rng);
        let dh = curve::agree(&own, remote).ok_or(EncryptError::PublicKey)?;
        let (part, share) = self.hybrid.send_ratchet_step(rng)?;
        let step = keys::root_step(&self.root, &dh, share.as_ref());
        self.hybrid.chain_began(part);
        self.root = step.root;
        self.own = Some(own);
        let header = std::mem::replace(&mut self.next_sending_header, step.next_header);
        let header = HeaderKey::new(self.suite, header);
        self.sending =
            Some(SendingChain { keys: MessageChain::new(step.chain), header, ratchet_key });
        Ok(())
    }

    /// Decrypts `message` and appends its plaintext to `out`. In a vault, the conversation is
    /// stored before this returns.
    ///
    /// Cost of a forged message: one header decryption each for the current chain, the next, and
    /// each recognized old chain. These are [`COMPLETE_CHAINS_MAX`](super::COMPLETE_CHAINS_MAX)
    /// chains without losses, [`MISSING_CHAINS_MAX`](super::MISSING_CHAINS_MAX) with missing
    /// messages and [`FORGOTTEN_CHAINS_MAX`](super::FORGOTTEN_CHAINS_MAX) with forgotten ones. An
    /// attacker that puts the header of an observed message in front of another body can cause more
    /// work: half a ratchet step, and at most 2 × [`SKIP_MAX`](super::SKIP_MAX) message keys. A
    /// peer that announces huge numbers causes no more.
    ///
    /// # Errors
    /// [`DecryptError`]; the state and `out` are unchanged.
    pub fn decrypt(
        &mut self,
        aad: &[u8],
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), DecryptError> {
        let start = out.len();
        self.decrypt_step(aad, message, out)?;
        self.store().map_err(|why| take_back(out, start, why).into())
    }

    /// As [`Self::decrypt`], without a store.
    pub(super) fn decrypt_step(
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

    /// Tries all held header keys. Returns the header with the key that opened it.
    fn open_header(
        &self,
        envelope: &Envelope,
    ) -> Result<(HeaderMatch, &Secret, Header), DecryptError> {
        let (nonce, sealed) = (header_nonce(envelope.salt()), envelope.sealed_header());
        let open = |cipher: &AeadKey| {
            let mut bytes = *sealed;
            cipher.open(nonce, &[], &mut bytes).ok()?;
            Some(*bytes.first_chunk::<HEADER_BYTES>().expect("the rest is the tag"))
        };
        let current = self.receiving.as_ref().and_then(|chain| {
            Some((
                HeaderMatch::Known(KnownChain::Current),
                &chain.header.secret,
                open(&chain.header.cipher)?,
            ))
        });
        let try_others = || {
            let next = (HeaderMatch::Next, &self.next_receiving_header);
            let ended = self.skipped.ended_headers();
            let ended = ended.map(|(chain, secret)| (HeaderMatch::Known(chain), secret));
            std::iter::once(next).chain(ended).find_map(|(source, secret)| {
                Some((source, secret, open(&keys::quick_key(self.suite, secret))?))
            })
        };
        let (source, secret, bytes) =
            current.or_else(try_others).ok_or(DecryptError::Unauthentic)?;
        let header = Header::decode(&bytes).ok_or(DecryptError::Violation)?;
        Ok((source, secret, header))
    }

    /// Returns the opened ML-KEM part, empty if there is none. It is opened even where it is not
    /// used, because the body does not bind its tag.
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

    /// Returns the state change that a message with this header causes, and its message key.
    fn step(
        &self,
        source: &HeaderMatch,
        header: &Header,
        part: &[u8],
    ) -> Result<(StateChange, Secret), DecryptError> {
        match (source, &self.receiving) {
            (HeaderMatch::Known(KnownChain::Current), Some(chain))
                if header.number >= chain.keys.number() =>
            {
                let number = in_chain(header.number)?;
                if number == chain.keys.number() {
                    return Ok((StateChange::Next, chain.keys.key()));
                }
                let mut chain = AdvancedChain::to(&chain.keys, number);
                let message_key = chain.keys.next_key();
                Ok((StateChange::Advance { chain }, message_key))
            }
            (HeaderMatch::Known(chain), _) => {
                let key = self.skipped.get(*chain, header.number)?;
                Ok((StateChange::Skipped { chain: *chain }, key.clone()))
            }
            (HeaderMatch::Next, _) => self.receive_ratchet_step(header, part),
        }
    }

    /// Computes the receiving half of a DH ratchet step.
    fn receive_ratchet_step(
        &self,
        header: &Header,
        part: &[u8],
    ) -> Result<(StateChange, Secret), DecryptError> {
        // The peer begins a new chain only in answer to a key of this side.
        let own = self.own.as_ref().ok_or(DecryptError::Violation)?;
        let dh = curve::agree(own, &header.ratchet_key).ok_or(DecryptError::Violation)?;
        let arrived = self.hybrid.arrive(header.kem, part)?;
        let root = keys::root_step(&self.root, &dh, arrived.share.as_ref());
        let chain = MessageChain::new(root.chain.clone());
        let mut chain = AdvancedChain::to(&chain, in_chain(header.number)?);
        let old = self.receiving.as_ref();
        let old = old.map(|old| AdvancedChain::to(&old.keys, header.previous_len));
        let message_key = chain.keys.next_key();
        let received = Box::new(ReceivedChain { root, arrived, old, chain });
        Ok((StateChange::RatchetStep(received), message_key))
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

    /// Applies the state change of an authentic message.
    fn commit(&mut self, step: StateChange, header: &Header) {
        self.initial = None;
        match step {
            StateChange::Skipped { chain } => self.skipped.remove(chain, header.number),
            StateChange::Next => {
                self.receiving.as_mut().expect("it has a next message").keys.advance();
            }
            StateChange::Advance { chain } => {
                let receiving = self.receiving.as_mut().expect("it has moved on");
                receiving.keys = chain.keys;
                self.skipped.add(chain.first, chain.skipped, chain.is_cut);
            }
            StateChange::RatchetStep(received) => self.commit_ratchet_step(*received, header),
        }
        self.skipped.count_received();
    }

    fn commit_ratchet_step(&mut self, received: ReceivedChain, header: &Header) {
        let ReceivedChain { root, arrived, old, chain } = received;
        if let (Some(receiving), Some(old)) = (self.receiving.take(), old) {
            self.skipped.add(old.first, old.skipped, old.is_cut);
            self.skipped.end_chain(receiving.header.secret, old.keys.number());
        }
        self.skipped.add(chain.first, chain.skipped, chain.is_cut);
        self.root = root.root;
        let header_key = std::mem::replace(&mut self.next_receiving_header, root.next_header);
        self.receiving = Some(ReceivingChain {
            keys: chain.keys,
            header: HeaderKey::new(self.suite, header_key),
        });
        self.previous_len = self.sending.take().map_or(0, |sending| sending.keys.number());
        self.own = None;
        self.remote = Some(header.ratchet_key);
        self.hybrid.chain_arrived(arrived);
    }
}

/// Wipes and removes the bytes of `out` from `start` on, which were not stored.
#[cold]
fn take_back(out: &mut Vec<u8>, start: usize, why: VaultError) -> VaultError {
    out[start..].zeroize();
    out.truncate(start);
    why
}

/// Checks that a chain has a message of this number.
fn in_chain(number: u32) -> Result<u32, DecryptError> {
    if number < u32::MAX { Ok(number) } else { Err(DecryptError::Violation) }
}

redacted_debug!(Ratchet, me, peer, kept);
