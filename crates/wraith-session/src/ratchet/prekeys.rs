//! The secret keys behind the bundles of one responder.
//!
//! Invariant: ids are never reused; 0 is never an id.

use std::collections::VecDeque;

use rand_core::CryptoRng;
use wraith_crypto::identity::SIGNATURE_BYTES;
use wraith_crypto::{NodeId, SecretIdentity, redacted_debug};
use zeroize::Zeroizing;

use super::bundle::{PreKeyBundle, Purpose};
use super::curve;
use super::error::StartError;
use super::keys::Secret;
use crate::codec::StateError;
use crate::codec::{InvalidEncoding, Reader, Writer};
use crate::vault::{RecordSlot, VaultError};

/// Maximum number of held one-time prekeys, handed out or not.
pub const ONE_TIME_MAX: usize = 1000;
/// Maximum number of conversations that start with one set of signed prekeys and no one-time
/// prekeys.
pub const LAST_RESORT_MAX: usize = 4096;

const STATE_VERSION: u8 = 1;

/// A signed X25519 prekey and an ML-KEM prekey of last resort.
pub(super) struct SignedKeys {
    pub(super) id: u32,
    pub(super) secret: Secret,
    signature: [u8; SIGNATURE_BYTES],
    pub(super) kem_seed: Zeroizing<[u8; 64]>,
    kem_signature: [u8; SIGNATURE_BYTES],
    /// Bindings of the conversations that started with these keys alone, so that each starts once.
    started: Vec<[u8; 32]>,
}

/// A one-time X25519 prekey and a one-time ML-KEM prekey.
pub(super) struct OneTimeKeys {
    id: u32,
    pub(super) secret: Secret,
    pub(super) kem_seed: Zeroizing<[u8; 64]>,
    kem_signature: [u8; SIGNATURE_BYTES],
    handed_out: bool,
}

/// The prekeys of one identity, with their secrets, in memory or [kept](Self::keep) in a vault.
/// Wiped when dropped.
///
/// - [`Self::bundle`] hands out one-time prekeys.
/// - [`Ratchet::respond`](super::Ratchet::respond) consumes them.
/// - [`Self::replenish`] makes new ones.
/// - [`Self::rotate`] replaces the signed prekeys; call it about once a week.
///
/// In a vault, each of these changes is stored before its call returns. Without one, [`Self::save`]
/// after each of these. Publish a bundle, or answer a first message, only after the save. A store
/// that is rolled back has consumed one-time prekeys again; a replayed first message then starts a
/// conversation again.
pub struct PreKeys {
    node_id: NodeId,
    next_id: u32,
    current: Box<SignedKeys>,
    previous: Option<Box<SignedKeys>>,
    /// Oldest first, so those handed out are in front. Boxed: the secrets stay in place when the
    /// list moves.
    one_time: VecDeque<Box<OneTimeKeys>>,
    /// The place in a vault, if the prekeys are kept in one.
    pub(super) kept: Option<Box<RecordSlot>>,
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

    fn restore(reader: &mut Reader) -> Result<Box<Self>, InvalidEncoding> {
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
    /// Makes signed prekeys of `identity` and `one_time` one-time prekeys, at most
    /// [`ONE_TIME_MAX`].
    #[must_use]
    pub fn generate(rng: &mut impl CryptoRng, identity: &SecretIdentity, one_time: usize) -> Self {
        let current = Box::new(SignedKeys::new(rng, identity, 1));
        let node_id = identity.node_id();
        let (next_id, previous, empty) = (2, None, VecDeque::new());
        let mut this = Self { node_id, next_id, current, previous, one_time: empty, kept: None };
        this.add_one_time(rng, identity, one_time.min(ONE_TIME_MAX))
            .expect("the first ids are far below 2³²");
        this
    }

    /// Returns the owner of these prekeys.
    #[must_use]
    pub fn node_id(&self) -> NodeId {
        self.node_id
    }

    /// Returns the number of one-time prekeys that were not handed out.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.one_time.iter().filter(|keys| !keys.handed_out).count()
    }

    /// Returns a bundle for one initiator. It includes one-time prekeys while
    /// [some](Self::remaining) remain; a bundle without them can serve many initiators.
    ///
    /// # Errors
    /// [`VaultError`]: the state is unchanged, and no bundle is handed out.
    pub fn bundle(&mut self) -> Result<PreKeyBundle, VaultError> {
        let bundle = self.next_bundle();
        self.store()?;
        Ok(bundle)
    }

    fn next_bundle(&mut self) -> PreKeyBundle {
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

    /// Makes one-time prekeys until `one_time` of them, at most [`ONE_TIME_MAX`], are not handed
    /// out. If the total exceeds [`ONE_TIME_MAX`], those handed out first are discarded.
    ///
    /// # Errors
    /// [`StartError::Identity`] if these are not the prekeys of `identity`;
    /// [`StartError::PreKeysExhausted`] if 2³² prekeys have been made; [`StartError::Store`]. In a
    /// vault, the state is unchanged.
    pub fn replenish(
        &mut self,
        rng: &mut impl CryptoRng,
        identity: &SecretIdentity,
        one_time: usize,
    ) -> Result<(), StartError> {
        self.check_owner(identity)?;
        let missing = one_time.min(ONE_TIME_MAX).saturating_sub(self.remaining());
        let made = self.add_one_time(rng, identity, missing);
        self.store_if_ok(made)
    }

    /// Makes new signed prekeys. The previous ones are kept for first messages in flight; the ones
    /// before them are discarded.
    ///
    /// # Errors
    /// As [`Self::replenish`].
    pub fn rotate(
        &mut self,
        rng: &mut impl CryptoRng,
        identity: &SecretIdentity,
    ) -> Result<(), StartError> {
        self.check_owner(identity)?;
        let id = self.take_id()?;
        let new = Box::new(SignedKeys::new(rng, identity, id));
        self.previous = Some(std::mem::replace(&mut self.current, new));
        self.store_if_ok(Ok(()))
    }

    /// Checks that these are the prekeys of `identity`.
    pub(super) fn check_owner(&self, identity: &SecretIdentity) -> Result<(), StartError> {
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

    /// Checks that a conversation without one-time prekeys may start.
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

    /// Records a started conversation: removes its one-time prekeys, or else remembers its binding.
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

    /// Encodes the state, secrets included, for [`Self::restore`]. At most 434 KiB.
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

    /// Decodes a state written by [`Self::save`].
    ///
    /// # Errors
    /// [`StateError`]. There is no checksum: the caller's storage must detect damage.
    pub fn restore(bytes: &[u8]) -> Result<Self, StateError> {
        let mut reader = Reader::new(bytes);
        reader.version(STATE_VERSION)?;
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
        let this = Self { node_id, next_id, current, previous, one_time, kept: None };
        if this.is_consistent() { Ok(this) } else { Err(StateError::Malformed) }
    }

    /// Returns whether every id was assigned before and appears once.
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

redacted_debug!(|it: PreKeys| node_id: it.node_id, remaining: it.remaining(), kept: it.kept);
