//! The secrets behind the bundles of one responder.
//!
//! Invariant: ids are never used twice; 0 is no id.

use std::collections::VecDeque;
use std::fmt;

use rand_core::CryptoRng;
use wraith_crypto::identity::SIGNATURE_BYTES;
use wraith_crypto::{NodeId, SecretIdentity};
use zeroize::Zeroizing;

use super::bundle::{PreKeyBundle, Purpose};
use super::codec::{BadBytes, Reader, Writer};
use super::curve;
use super::error::StartError;
use super::keys::Secret;
use crate::bytes::StateError;

/// How many one-time prekeys are held, handed out or not.
pub const ONE_TIME_MAX: usize = 1000;
/// How many conversations can start with one set of signed prekeys and no one-time prekeys.
pub const LAST_RESORT_MAX: usize = 4096;

const STATE_VERSION: u8 = 1;

/// A signed X25519 prekey and an ML-KEM prekey of last resort.
pub(super) struct SignedKeys {
    pub(super) id: u32,
    pub(super) secret: Secret,
    signature: [u8; SIGNATURE_BYTES],
    pub(super) kem_seed: Zeroizing<[u8; 64]>,
    kem_signature: [u8; SIGNATURE_BYTES],
    /// What conversations started with these keys alone, by their binding: they start once.
    started: Vec<[u8; 32]>,
}

/// An X25519 and an ML-KEM prekey that are used once.
pub(super) struct OneTimeKeys {
    id: u32,
    pub(super) secret: Secret,
    pub(super) kem_seed: Zeroizing<[u8; 64]>,
    kem_signature: [u8; SIGNATURE_BYTES],
    handed_out: bool,
}

/// The prekeys of one identity, with their secrets. Wiped when dropped.
///
/// [`Self::bundle`] hands out one-time prekeys, [`Ratchet::respond`](super::Ratchet::respond) uses them up, [`Self::replenish`]
/// makes new ones, and [`Self::rotate`], called every week or so, replaces the signed ones. [`Self::save`] after each of these;
/// a bundle leaves only after it was saved, and so does the answer to a first message. A store that is rolled back has used
/// one-time keys again, so that a replayed first message starts a conversation again.
pub struct PreKeys {
    node_id: NodeId,
    next_id: u32,
    current: Box<SignedKeys>,
    previous: Option<Box<SignedKeys>>,
    /// Oldest first; those handed out are in front. They do not move when the list does.
    one_time: VecDeque<Box<OneTimeKeys>>,
}

impl SignedKeys {
    fn new(rng: &mut impl CryptoRng, identity: &SecretIdentity, id: u32) -> Self {
        let (secret, public) = curve::new_pair(rng);
        let kem_seed = new_seed(rng);
        let kem = curve::encapsulation_key(&kem_seed);
        Self {
            id,
            secret,
            signature: Purpose::SignedDh.sign(identity, id, &public),
            kem_seed,
            kem_signature: Purpose::LastResortKem.sign(identity, id, &kem),
            started: Vec::new(),
        }
    }

    fn save(&self, writer: &mut Writer) {
        writer.u32(self.id).bytes(&self.secret[..]).bytes(&self.signature);
        writer.bytes(&self.kem_seed[..]).bytes(&self.kem_signature).count(self.started.len());
        for started in &self.started {
            writer.bytes(started);
        }
    }

    fn restore(reader: &mut Reader) -> Result<Box<Self>, BadBytes> {
        let mut this = Self {
            id: reader.u32()?,
            secret: reader.secret()?,
            signature: reader.array()?,
            kem_seed: Zeroizing::new(reader.array()?),
            kem_signature: reader.array()?,
            started: Vec::new(),
        };
        for _ in 0..reader.count(LAST_RESORT_MAX)? {
            this.started.push(reader.array()?);
        }
        Ok(Box::new(this))
    }
}

impl OneTimeKeys {
    fn new(rng: &mut impl CryptoRng, identity: &SecretIdentity, id: u32) -> Self {
        let mut secret = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut *secret);
        let kem_seed = new_seed(rng);
        let kem = curve::encapsulation_key(&kem_seed);
        let kem_signature = Purpose::OneTimeKem.sign(identity, id, &kem);
        Self { id, secret, kem_seed, kem_signature, handed_out: false }
    }
}

fn new_seed(rng: &mut impl CryptoRng) -> Zeroizing<[u8; 64]> {
    let mut seed = Zeroizing::new([0; 64]);
    rng.fill_bytes(&mut *seed);
    seed
}

impl PreKeys {
    /// New signed prekeys of `identity` and `one_time` one-time prekeys, at most [`ONE_TIME_MAX`].
    #[must_use]
    pub fn generate(rng: &mut impl CryptoRng, identity: &SecretIdentity, one_time: usize) -> Self {
        let current = Box::new(SignedKeys::new(rng, identity, 1));
        let node_id = identity.node_id();
        let (next_id, previous, empty) = (2, None, VecDeque::new());
        let mut this = Self { node_id, next_id, current, previous, one_time: empty };
        this.add_one_time(rng, identity, one_time.min(ONE_TIME_MAX))
            .expect("the first ids are far below 2³²");
        this
    }

    /// Whose prekeys these are.
    #[must_use]
    pub fn node_id(&self) -> NodeId {
        self.node_id
    }

    /// How many one-time prekeys have not been handed out.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.one_time.iter().filter(|keys| !keys.handed_out).count()
    }

    /// A bundle for one initiator. It takes one-time prekeys with it as long as [some](Self::remaining) remain; without, it can
    /// be given to many.
    pub fn bundle(&mut self) -> PreKeyBundle {
        let one_time = self.one_time.iter_mut().find(|keys| !keys.handed_out);
        let (one_time, seed, kem_signature) = match one_time {
            Some(keys) => {
                keys.handed_out = true;
                let public = curve::public_of(&keys.secret);
                (Some((keys.id, public)), &keys.kem_seed, keys.kem_signature)
            }
            None => (None, &self.current.kem_seed, self.current.kem_signature),
        };
        PreKeyBundle {
            node_id: self.node_id,
            signed_id: self.current.id,
            signed: curve::public_of(&self.current.secret),
            signature: self.current.signature,
            one_time,
            kem: Box::new(curve::encapsulation_key(seed)),
            kem_signature,
        }
    }

    /// Makes one-time prekeys until `one_time` of them, at most [`ONE_TIME_MAX`], have not been handed out. If all together
    /// become more than [`ONE_TIME_MAX`], those go that were handed out first.
    ///
    /// # Errors
    /// [`StartError::Identity`] if these are not the prekeys of `identity`; [`StartError::PreKeysExhausted`] if 2³² prekeys
    /// have been made.
    pub fn replenish(
        &mut self,
        rng: &mut impl CryptoRng,
        identity: &SecretIdentity,
        one_time: usize,
    ) -> Result<(), StartError> {
        self.check(identity)?;
        let missing = one_time.min(ONE_TIME_MAX).saturating_sub(self.remaining());
        self.add_one_time(rng, identity, missing)
    }

    /// Makes new signed prekeys. Those before stay for first messages that are under way; those before them go.
    ///
    /// # Errors
    /// As [`Self::replenish`].
    pub fn rotate(
        &mut self,
        rng: &mut impl CryptoRng,
        identity: &SecretIdentity,
    ) -> Result<(), StartError> {
        self.check(identity)?;
        let id = self.take_id()?;
        let new = Box::new(SignedKeys::new(rng, identity, id));
        self.previous = Some(std::mem::replace(&mut self.current, new));
        Ok(())
    }

    /// Whether these are the prekeys of `identity`.
    pub(super) fn check(&self, identity: &SecretIdentity) -> Result<(), StartError> {
        if identity.node_id() == self.node_id { Ok(()) } else { Err(StartError::Identity) }
    }

    fn add_one_time(
        &mut self,
        rng: &mut impl CryptoRng,
        identity: &SecretIdentity,
        count: usize,
    ) -> Result<(), StartError> {
        for _ in 0..count {
            let id = self.take_id()?;
            self.one_time.push_back(Box::new(OneTimeKeys::new(rng, identity, id)));
            if self.one_time.len() > ONE_TIME_MAX {
                self.one_time.pop_front();
            }
        }
        Ok(())
    }

    fn take_id(&mut self) -> Result<u32, StartError> {
        let id = self.next_id;
        self.next_id = id.checked_add(1).ok_or(StartError::PreKeysExhausted)?;
        Ok(id)
    }

    pub(super) fn signed(&self, id: u32) -> Option<&SignedKeys> {
        [Some(&self.current), self.previous.as_ref()]
            .into_iter()
            .flatten()
            .find(|keys| keys.id == id)
            .map(|keys| &**keys)
    }

    pub(super) fn one_time(&self, id: u32) -> Option<&OneTimeKeys> {
        self.one_time.iter().find(|keys| keys.id == id).map(|keys| &**keys)
    }

    /// Whether a conversation without one-time prekeys may start.
    pub(super) fn may_start(&self, signed_id: u32, binding: &[u8; 32]) -> Result<(), StartError> {
        let keys = self.signed(signed_id).ok_or(StartError::UnknownPreKey)?;
        if keys.started.contains(binding) {
            return Err(StartError::Replayed);
        }
        if keys.started.len() >= LAST_RESORT_MAX {
            return Err(StartError::PreKeysExhausted);
        }
        Ok(())
    }

    /// A conversation has started: its one-time prekeys are gone, or else its binding is remembered.
    pub(super) fn started(&mut self, signed_id: u32, one_time: u32, binding: [u8; 32]) {
        if one_time != 0 {
            self.one_time.retain(|keys| keys.id != one_time);
            return;
        }
        let all = [Some(&mut self.current), self.previous.as_mut()];
        if let Some(keys) = all.into_iter().flatten().find(|keys| keys.id == signed_id) {
            keys.started.push(binding);
        }
    }

    /// The state as bytes, secrets included, for [`Self::restore`]. At most 434 KiB.
    #[must_use]
    pub fn save(&self) -> Zeroizing<Vec<u8>> {
        let signed = [Some(&self.current), self.previous.as_ref()];
        let started: usize = signed.into_iter().flatten().map(|keys| keys.started.len()).sum();
        let mut writer = Writer::with_capacity(1024 + 32 * started + 165 * self.one_time.len());
        writer.u8(STATE_VERSION).bytes(self.node_id.as_bytes()).u32(self.next_id);
        self.current.save(&mut writer);
        writer.option(self.previous.as_ref(), |writer, keys| keys.save(writer));
        writer.count(self.one_time.len());
        for keys in &self.one_time {
            writer.u32(keys.id).bytes(&keys.secret[..]).bytes(&keys.kem_seed[..]);
            writer.bytes(&keys.kem_signature).bool(keys.handed_out);
        }
        writer.finish()
    }

    /// Reads what [`Self::save`] wrote.
    ///
    /// # Errors
    /// [`StateError`]. There is no checksum: whoever stores the bytes has to notice when they change.
    pub fn restore(bytes: &[u8]) -> Result<Self, StateError> {
        let mut reader = Reader::new(bytes);
        match reader.u8()? {
            STATE_VERSION => {}
            other => return Err(StateError::Version(other)),
        }
        let (node_id, next_id) = (NodeId(reader.array()?), reader.u32()?);
        let current = SignedKeys::restore(&mut reader)?;
        let previous = reader.option(SignedKeys::restore)?;
        let mut one_time = VecDeque::new();
        for _ in 0..reader.count(ONE_TIME_MAX)? {
            one_time.push_back(Box::new(OneTimeKeys {
                id: reader.u32()?,
                secret: reader.secret()?,
                kem_seed: Zeroizing::new(reader.array()?),
                kem_signature: reader.array()?,
                handed_out: reader.bool()?,
            }));
        }
        reader.finish()?;
        let this = Self { node_id, next_id, current, previous, one_time };
        if this.is_consistent() { Ok(this) } else { Err(StateError::Malformed) }
    }

    /// Whether every id is one that was taken, once.
    fn is_consistent(&self) -> bool {
        let signed = [Some(&self.current), self.previous.as_ref()].into_iter().flatten();
        let one_time = self.one_time.iter().map(|keys| keys.id);
        let mut ids: Vec<u32> = signed.map(|keys| keys.id).chain(one_time).collect();
        ids.sort_unstable();
        self.node_id.noise_public().is_ok()
            && ids.iter().all(|&id| id != 0 && id < self.next_id)
            && ids.windows(2).all(|pair| pair[0] != pair[1])
    }
}

impl fmt::Debug for PreKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreKeys")
            .field("node_id", &self.node_id)
            .field("remaining", &self.remaining())
            .finish_non_exhaustive()
    }
}
