//! Conversations and prekeys in a vault.
//!
//! Each encrypted or decrypted message or batch is one store. Before a bundle is returned, the
//! vault records it as handed out. Before the plaintext of a first message is returned, the vault
//! records the message's one-time prekeys as used. After a failed store the ratchet or the prekeys
//! return to the last stored state.

use std::mem;
use std::sync::Arc;

use wraith_crypto::{SecretIdentity, equal};
use zeroize::Zeroizing;

use super::double_ratchet::Ratchet;
use super::error::StartError;
use super::prekeys::PreKeys;
use crate::codec::StateError;
use crate::vault::{Durability, KeyVault, PREKEYS, RATCHET, RecordSlot, StoreError, VaultError};

/// Defines how a type moves into a vault and continues from it.
macro_rules! kept_in_vaults {
    ($type:ident, $kind:ident) => {
        impl $type {
            /// Keeps this state in a vault from now on, under an unused name. Each store survives a
            /// power cut ([`Durability::Power`]).
            ///
            /// # Errors
            /// [`StoreError::Name`], [`StoreError::Exists`], [`StoreError::Kept`],
            /// [`StoreError::Vault`]. The state stays in memory. After the last the record may
            /// exist all the same, and can be loaded.
            pub fn keep(&mut self, vault: Arc<dyn KeyVault>, name: &str) -> Result<(), StoreError> {
                if self.is_kept() {
                    return Err(StoreError::Kept);
                }
                self.kept = Some(RecordSlot::create(vault, name, $kind, self.save())?);
                Ok(())
            }

            /// Loads the state of this name. If two processes on any machines share the vault and
            /// load the same state, one of them fails before it returns anything new.
            ///
            /// # Errors
            /// [`StoreError`] for an invalid record; [`StoreError::RolledBack`] if the vault can
            /// detect that.
            pub fn load(vault: Arc<dyn KeyVault>, name: &str) -> Result<Self, StoreError> {
                Ok(Self::stored_in(RecordSlot::load(vault, name, $kind)?)?)
            }

            /// Returns whether the state is kept in a vault.
            #[must_use]
            pub const fn is_kept(&self) -> bool {
                self.kept.is_some()
            }

            /// Returns the stored state of a slot.
            fn stored_in(slot: Box<RecordSlot>) -> Result<Self, StateError> {
                let mut this = Self::restore(&slot.stored)?;
                this.kept = Some(slot);
                Ok(this)
            }
        }
    };
}

kept_in_vaults!(Ratchet, RATCHET);
kept_in_vaults!(PreKeys, PREKEYS);

impl Ratchet {
    /// Sets the durability of later stores, if the conversation is kept in a vault. The default is
    /// [`Durability::Power`]: messages to people are rare, and a forgotten one costs more than the
    /// few milliseconds of a disk write. With [`Durability::Process`] a power cut rolls the
    /// conversation back to the state on disk. The peer then refuses messages with numbers that it
    /// has already opened, and messages received earlier may open again on this side. A vault that
    /// detects rolled-back records ([`KeyVault::latest`]) does not count these stores.
    pub fn set_durability(&mut self, durability: Durability) {
        if let Some(kept) = &mut self.kept {
            kept.durability = durability;
        }
    }

    /// As [`Self::respond`]: starts the conversation that `message` requests, keeps it in a vault
    /// under an unused name, and returns the plaintext. The prekeys are kept in a vault, too, the
    /// same or another one.
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
    /// - Derive the name from the [initiator](Self::initiator_of), so that the same message finds
    ///   the same name.
    /// - Pass a message with an initiator to this function first. On [`StoreError::Exists`],
    ///   [`StartError::UnknownPreKey`] or [`StartError::Replayed`], pass it to
    ///   [`decrypt`](Self::decrypt) of the conversation of that name.
    ///
    /// # Errors
    /// [`StartError`]; its [`Store`](StartError::Store) is as of [`Self::keep`], or of the prekeys.
    /// The plaintext was not returned, and the call can be repeated.
    pub fn respond_in_vault(
        vault: Arc<dyn KeyVault>,
        name: &str,
        identity: &SecretIdentity,
        prekeys: &mut PreKeys,
        aad: &[u8],
        message: &[u8],
    ) -> Result<(Self, Vec<u8>), StartError> {
        if !prekeys.is_kept() {
            return Err(StoreError::OneKept.into());
        }
        let (mut ratchet, plaintext) = Self::start_from(identity, prekeys, aad, message)?;
        let mut plaintext = Zeroizing::new(plaintext);
        if let Err(why) = prekeys.check().and_then(|()| ratchet.keep_or_resume(vault, name)) {
            prekeys.roll_back();
            return Err(why.into());
        }
        prekeys.store().map_err(StoreError::from)?;
        Ok((ratchet, mem::take(&mut *plaintext)))
    }

    /// Keeps this conversation, or continues one that an interrupted call has stored in the same
    /// state.
    fn keep_or_resume(&mut self, vault: Arc<dyn KeyVault>, name: &str) -> Result<(), StoreError> {
        match self.keep(vault.clone(), name) {
            Err(StoreError::Exists) => {}
            kept => return kept,
        }
        let (mut slot, state) = (RecordSlot::load(vault, name, RATCHET)?, self.save());
        if !equal(&slot.stored, &state) {
            return Err(StoreError::Exists);
        }
        // The earlier store may not have reached the disk, and of two concurrent calls one fails at
        // this store.
        slot.put(state, Durability::Power)?;
        self.kept = Some(slot);
        Ok(())
    }

    /// Stores the state, if it is kept in a vault. On failure restores the stored one, except its
    /// settings.
    #[inline]
    pub(super) fn store(&mut self) -> Result<(), VaultError> {
        match self.kept.take() {
            None => Ok(()),
            Some(kept) => self.store_in(kept),
        }
    }

    /// Out of line: a conversation in memory does not pay for the state on the stack.
    #[inline(never)]
    fn store_in(&mut self, mut kept: Box<RecordSlot>) -> Result<(), VaultError> {
        let stored = kept.put(self.save(), kept.durability);
        if stored.is_err() {
            let (padding, time) = (self.padding, self.skipped.time());
            *self = Self::stored_in(kept).expect("a state was saved as this");
            self.set_padding(padding);
            self.set_time(time);
        } else {
            self.kept = Some(kept);
        }
        stored
    }
}

/// If a used one-time prekey reappeared after a power cut, a recorded first message could start its
/// conversation again. So no store of prekeys has a lower durability.
impl PreKeys {
    /// Checks in the vault that no other process writes the record, before a conversation is stored
    /// that these prekeys may not start. Invalid messages of strangers fail before that check.
    fn check(&mut self) -> Result<(), StoreError> {
        Ok(self.kept.as_mut().map_or(Ok(()), |kept| kept.check())?)
    }

    /// Stores the state, if it is kept in a vault and differs from the stored one. On failure
    /// restores the stored one.
    pub(super) fn store(&mut self) -> Result<(), VaultError> {
        let Some(mut kept) = self.kept.take() else { return Ok(()) };
        let state = self.save();
        let stored = match state == kept.stored {
            true => kept.resolve(),
            false => kept.put(state, Durability::Power),
        };
        self.kept = Some(kept);
        stored.inspect_err(|_| self.roll_back())
    }

    /// Stores the change, unless it failed halfway.
    pub(super) fn store_if_ok(&mut self, made: Result<(), StartError>) -> Result<(), StartError> {
        made.inspect_err(|_| self.roll_back())?;
        Ok(self.store().map_err(StoreError::from)?)
    }

    /// Returns to the stored state, if it is kept in a vault.
    fn roll_back(&mut self) {
        if let Some(kept) = self.kept.take() {
            *self = Self::stored_in(kept).expect("prekeys were saved as this");
        }
    }
}
