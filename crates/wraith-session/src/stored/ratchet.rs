//! A conversation in a vault.
//!
//! Each message that is encrypted or decrypted, or each batch, is one store. A store that fails takes the ratchet back to the state that was
//! stored last.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rand_core::CryptoRng;
use wraith_crypto::{SecretIdentity, equal};
use zeroize::{Zeroize, Zeroizing};

use super::StoreError;
use super::prekeys::StoredPreKeys;
use super::slot::{RATCHET, Slot};
use crate::ratchet::{DecryptedBatch, PreKeyBundle, Ratchet};
use crate::session::Batch;
use crate::vault::{Durability, KeyVault};

/// A ratchet that is kept in a vault.
///
/// Stores outlive a power cut ([`Durability::Power`]) unless [told otherwise](Self::set_durability): messages to people are rare, and one that a
/// side has forgotten costs more than the few milliseconds of a disk.
pub struct StoredRatchet {
    ratchet: Ratchet,
    slot: Slot,
    /// What was stored last: the state to go back to.
    stored: Zeroizing<Vec<u8>>,
    durability: Durability,
    /// Settings, which are not gone back on.
    padding: Option<bool>,
    time: Option<Duration>,
}

impl StoredRatchet {
    /// Keeps a conversation that is new, under a name that is not in use.
    ///
    /// # Errors
    /// [`StoreError::Name`], [`StoreError::Exists`], [`StoreError::Vault`]. After the last the record may be there all the same, and can be loaded.
    pub fn create(
        vault: Arc<dyn KeyVault>,
        name: &str,
        ratchet: Ratchet,
    ) -> Result<Self, StoreError> {
        let slot = Slot::create(vault, name, RATCHET)?;
        let mut this = Self::with(slot, ratchet);
        this.put(this.ratchet.save())?;
        Ok(this)
    }

    /// As [`Ratchet::initiate`], kept under a name that is not in use.
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

    /// As [`Ratchet::respond`]: the conversation that `message` asks for, kept under a name that is not in use, and the plaintext.
    ///
    /// First the conversation is stored, then the prekeys, and then the plaintext is given out. A process that is killed, or a vault that fails,
    ///
    /// | when | leaves | so the same message, given to this again, |
    /// |---|---|---|
    /// | before the first store | nothing | starts the conversation |
    /// | between the two | the conversation, and its prekeys unused | comes to the same state, byte for byte, and goes on with it |
    /// | after both | the conversation, and its prekeys used | starts nothing: it counts as opened |
    ///
    /// The other way round a kill in between would use up the prekeys of a conversation that nobody has, and the other side would talk to
    /// nobody. A conversation that has gone on since is not started again: its state is another one, and that is [`StoreError::Exists`].
    ///
    /// Two things are the caller's: the name follows from [who asks](Ratchet::initiator_of), so that the same message finds the same name; and a
    /// message that has an initiator comes here first, and goes to [`decrypt`](Self::decrypt) of the conversation of its name if this says
    /// [`StoreError::Exists`], [`StartError::UnknownPreKey`](crate::ratchet::StartError::UnknownPreKey) or
    /// [`StartError::Replayed`](crate::ratchet::StartError::Replayed).
    ///
    /// # Errors
    /// [`StoreError::Start`], and as [`Self::create`]; [`StoreError::Vault`] of the prekeys, too. Nobody has seen the plaintext, and the call can
    /// be made again.
    pub fn respond(
        vault: Arc<dyn KeyVault>,
        name: &str,
        identity: &SecretIdentity,
        prekeys: &mut StoredPreKeys,
        aad: &[u8],
        message: &[u8],
    ) -> Result<(Self, Vec<u8>), StoreError> {
        let (ratchet, mut plaintext) = prekeys.respond(identity, aad, message)?;
        let kept = Self::create_or_go_on(vault, name, ratchet);
        let done = match kept {
            Ok(kept) => prekeys.store().map(|()| kept),
            Err(why) => {
                prekeys.go_back();
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

    /// Keeps a conversation, or finds that it is kept already, as it is, by a call that did not get to its end.
    fn create_or_go_on(
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
        // The store of that call may not have got to the disk, and of two calls at once one fails here.
        kept.put(state)?;
        Ok(kept)
    }

    /// Goes on with the conversation of this name. Of two that do, on whatever machines, one fails as long as they share the vault, before
    /// it gives out anything.
    ///
    /// # Errors
    /// Says what is wrong with the record; [`StoreError::RolledBack`] where the vault can tell.
    pub fn load(vault: Arc<dyn KeyVault>, name: &str) -> Result<Self, StoreError> {
        let (slot, record) = Slot::load(vault, name, RATCHET)?;
        let ratchet = Ratchet::restore(&record.state)?;
        Ok(Self::with(slot, ratchet))
    }

    fn with(slot: Slot, ratchet: Ratchet) -> Self {
        let (stored, durability) = (ratchet.save(), Durability::Power);
        Self { ratchet, slot, stored, durability, padding: None, time: None }
    }

    /// The ratchet, for all that changes nothing.
    #[must_use]
    pub const fn ratchet(&self) -> &Ratchet {
        &self.ratchet
    }

    /// As [`Ratchet::set_padding`]. It is in the record from the next message on.
    pub fn set_padding(&mut self, padding: bool) {
        self.padding = Some(padding);
        self.ratchet.set_padding(padding);
    }

    /// As [`Ratchet::set_time`]. It is in the record from the next message on.
    pub fn set_time(&mut self, time: Duration) {
        self.time = self.time.max(Some(time));
        self.ratchet.set_time(time);
    }

    /// What the stores from now on outlive: [`Durability::Power`] at first, or [`Durability::Process`], with which a power cut rolls the
    /// conversation back to whatever the disk has. Then the other side does not open what has the numbers of messages it has opened, and
    /// what it was sent before may open here again.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// As [`Ratchet::encrypt`]. The vault is written before this returns.
    ///
    /// # Errors
    /// [`StoreError::Encrypt`], [`StoreError::Vault`]: nothing has changed, and `out` is as it was.
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
    /// [`StoreError::EncryptBatch`], which names the message, and [`StoreError::Vault`]: nothing has changed.
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
    /// [`StoreError::Decrypt`], [`StoreError::Vault`]: nothing has changed, and `out` is as it was.
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

    /// As [`Ratchet::decrypt_many`]. The vault is written once, before this returns, or not at all if no message opens.
    ///
    /// # Errors
    /// [`StoreError::Vault`]: nothing has changed, and no message was opened. Messages that are none are among the results.
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

    /// Stores the state, or goes back to the one that is stored.
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
