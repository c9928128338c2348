//! A conversation in a vault.
//!
//! Each encrypted or decrypted message or batch is one store. After a failed store the ratchet
//! returns to the last stored state.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rand_core::CryptoRng;
use wraith_crypto::{SecretIdentity, equal};
use zeroize::{Zeroize, Zeroizing};

use super::StoreError;
use super::prekeys::StoredPreKeys;
use super::slot::{RATCHET, RecordSlot};
use crate::ratchet::{DecryptedBatch, PreKeyBundle, Ratchet};
use crate::session::Batch;
use crate::vault::{Durability, KeyVault};

/// A ratchet that is kept in a vault.
///
/// By default stores survive a power cut ([`Durability::Power`]; see [`Self::set_durability`]).
/// Messages to people are rare, and a forgotten one costs more than the few milliseconds of a disk
/// write.
pub struct StoredRatchet {
    ratchet: Ratchet,
    slot: RecordSlot,
    /// The last stored state, for rollback.
    stored: Zeroizing<Vec<u8>>,
    durability: Durability,
    /// Settings, which survive a rollback.
    padding: Option<bool>,
    time: Option<Duration>,
}

impl StoredRatchet {
    /// Stores a new conversation under an unused name.
    ///
    /// # Errors
    /// [`StoreError::Name`], [`StoreError::Exists`], [`StoreError::Vault`]. After the last the
    /// record may exist all the same, and can be loaded.
    pub fn create(
        vault: Arc<dyn KeyVault>,
        name: &str,
        ratchet: Ratchet,
    ) -> Result<Self, StoreError> {
        let slot = RecordSlot::create(vault, name, RATCHET)?;
        let mut this = Self::with(slot, ratchet);
        this.put(this.ratchet.save())?;
        Ok(this)
    }

    /// As [`Ratchet::initiate`], stored under an unused name.
    ///
    /// # Errors
    /// [`StoreError::Start`], and as [`Self::create`].
    pub fn initiate(
        vault: Arc<dyn KeyVault>,
        name: &str,
        rng: &mut impl CryptoRng,
        identity: &SecretIdentity,
        bundle: &PreKeyBundle,
    ) -> Result<Self, StoreError> {
        Self::create(vault, name, Ratchet::initiate(rng, identity, bundle)?)
    }

    /// As [`Ratchet::respond`]: starts the conversation that `message` requests, stores it under an
    /// unused name, and returns the plaintext.
    ///
    /// The conversation is stored first, then the prekeys, and then the plaintext is returned. If
    /// the process is killed or the vault fails:
    ///
    /// | when | vault holds | the same message, passed again, |
    /// |---|---|---|
    /// | before the first store | nothing | starts the conversation |
    /// | between the two | the conversation, and its prekeys unused | reaches the same state, byte for byte, and continues |
    /// | after both | the conversation, and its prekeys used | starts nothing: it was already opened |
    ///
    /// In the opposite order a kill in between would consume the prekeys of a conversation that was
    /// never stored, and the peer's messages would be lost. A conversation that has advanced after
    /// its start is not restarted: its state differs, and the result is [`StoreError::Exists`].
    ///
    /// The caller has two duties:
    /// - Derive the name from the [initiator](Ratchet::initiator_of), so that the same message
    ///   finds the same name.
    /// - Pass a message with an initiator to this function first. On [`StoreError::Exists`],
    ///   [`StartError::UnknownPreKey`](crate::ratchet::StartError::UnknownPreKey) or
    ///   [`StartError::Replayed`](crate::ratchet::StartError::Replayed), pass it to
    ///   [`decrypt`](Self::decrypt) of the conversation of that name.
    ///
    /// # Errors
    /// [`StoreError::Start`], and as [`Self::create`]; also [`StoreError::Vault`] of the prekeys.
    /// The plaintext was not returned, and the call can be repeated.
    pub fn respond(
        vault: Arc<dyn KeyVault>,
        name: &str,
        identity: &SecretIdentity,
        prekeys: &mut StoredPreKeys,
        aad: &[u8],
        message: &[u8],
    ) -> Result<(Self, Vec<u8>), StoreError> {
        let (ratchet, mut plaintext) = prekeys.respond(identity, aad, message)?;
        let kept = Self::create_or_resume(vault, name, ratchet);
        let done = match kept {
            Ok(kept) => prekeys.store().map(|()| kept),
            Err(why) => {
                prekeys.restore_stored();
                Err(why)
            }
        };
        match done {
            Ok(kept) => Ok((kept, plaintext)),
            Err(why) => {
                plaintext.zeroize();
                Err(why)
            }
        }
    }

    /// Stores a conversation, or continues one that an interrupted call has stored in the same
    /// state.
    fn create_or_resume(
        vault: Arc<dyn KeyVault>,
        name: &str,
        ratchet: Ratchet,
    ) -> Result<Self, StoreError> {
        let state = ratchet.save();
        match Self::create(vault.clone(), name, ratchet) {
            Err(StoreError::Exists) => {}
            created => return created,
        }
        let mut kept = Self::load(vault, name)?;
        if !equal(&kept.stored, &state) {
            return Err(StoreError::Exists);
        }
        // The earlier store may not have reached the disk, and of two concurrent calls one fails at
        // this store.
        kept.put(state)?;
        Ok(kept)
    }

    /// Loads the conversation of this name. If two processes on any machines share the vault and
    /// load the same conversation, one of them fails before it returns anything.
    ///
    /// # Errors
    /// [`StoreError`] for an invalid record; [`StoreError::RolledBack`] if the vault can detect
    /// that.
    pub fn load(vault: Arc<dyn KeyVault>, name: &str) -> Result<Self, StoreError> {
        let (slot, record) = RecordSlot::load(vault, name, RATCHET)?;
        let ratchet = Ratchet::restore(&record.state)?;
        Ok(Self::with(slot, ratchet))
    }

    fn with(slot: RecordSlot, ratchet: Ratchet) -> Self {
        let (stored, durability) = (ratchet.save(), Durability::Power);
        Self { ratchet, slot, stored, durability, padding: None, time: None }
    }

    /// Returns the ratchet, for read access.
    #[must_use]
    pub const fn ratchet(&self) -> &Ratchet {
        &self.ratchet
    }

    /// As [`Ratchet::set_padding`]. The next message stores the setting.
    pub fn set_padding(&mut self, padding: bool) {
        self.padding = Some(padding);
        self.ratchet.set_padding(padding);
    }

    /// As [`Ratchet::set_time`]. The next message stores the time.
    pub fn set_time(&mut self, time: Duration) {
        self.time = self.time.max(Some(time));
        self.ratchet.set_time(time);
    }

    /// Sets the durability of later stores; the default is [`Durability::Power`]. With
    /// [`Durability::Process`] a power cut rolls the conversation back to the state on disk. The
    /// peer then refuses messages with numbers that it has already opened, and messages received
    /// earlier may open again on this side.
    /// A vault that detects rolled-back records ([`KeyVault::latest`]) does not count these stores.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// As [`Ratchet::encrypt`]. The vault is written before this returns.
    ///
    /// # Errors
    /// [`StoreError::Encrypt`], [`StoreError::Vault`]: the state and `out` are unchanged.
    pub fn encrypt(
        &mut self,
        rng: &mut impl CryptoRng,
        aad: &[u8],
        plaintext: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let start = out.len();
        self.ratchet.encrypt(rng, aad, plaintext, out)?;
        self.store_or_take_back(out, start)
    }

    /// As [`Ratchet::encrypt_many`]. The vault is written once, before this returns.
    ///
    /// # Errors
    /// [`StoreError::EncryptBatch`], which names the message, and [`StoreError::Vault`]: the state
    /// is unchanged.
    pub fn encrypt_many(
        &mut self,
        rng: &mut impl CryptoRng,
        aad: &[u8],
        plaintexts: &[&[u8]],
    ) -> Result<Batch, StoreError> {
        let batch = self.ratchet.encrypt_many(rng, aad, plaintexts)?;
        self.store()?;
        Ok(batch)
    }

    /// As [`Ratchet::decrypt`]. The vault is written before this returns.
    ///
    /// # Errors
    /// [`StoreError::Decrypt`], [`StoreError::Vault`]: the state and `out` are unchanged.
    pub fn decrypt(
        &mut self,
        aad: &[u8],
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let start = out.len();
        self.ratchet.decrypt(aad, message, out)?;
        self.store_or_take_back(out, start)
    }

    /// As [`Ratchet::decrypt_many`]. The vault is written once before this returns, or not at all
    /// if no message opens.
    ///
    /// # Errors
    /// [`StoreError::Vault`]: the state is unchanged, and no message was opened. Errors of single messages are among the results.
    pub fn decrypt_many(
        &mut self,
        aad: &[u8],
        messages: &[&[u8]],
    ) -> Result<DecryptedBatch, StoreError> {
        let batch = self.ratchet.decrypt_many(aad, messages);
        if batch.iter().any(|result| result.is_ok()) {
            self.store()?;
        }
        Ok(batch)
    }

    fn store_or_take_back(&mut self, out: &mut Vec<u8>, start: usize) -> Result<(), StoreError> {
        let stored = self.store();
        if stored.is_err() {
            out[start..].zeroize();
            out.truncate(start);
        }
        stored
    }

    /// Stores the state. On failure restores the stored one.
    fn store(&mut self) -> Result<(), StoreError> {
        let state = self.ratchet.save();
        let stored = self.put(state);
        if stored.is_err() {
            self.ratchet = Ratchet::restore(&self.stored).expect("a state was saved as this");
            if let Some(padding) = self.padding {
                self.ratchet.set_padding(padding);
            }
            if let Some(time) = self.time {
                self.ratchet.set_time(time);
            }
        }
        stored
    }

    fn put(&mut self, state: Zeroizing<Vec<u8>>) -> Result<(), StoreError> {
        self.slot.put(&state, self.durability)?;
        self.stored = state;
        Ok(())
    }
}

impl fmt::Debug for StoredRatchet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredRatchet")
            .field("name", &self.slot)
            .field("ratchet", &self.ratchet)
            .finish_non_exhaustive()
    }
}
