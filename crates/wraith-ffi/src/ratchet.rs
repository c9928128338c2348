//! Conversations for peers that are rarely online together: the Double Ratchet, started from
//! prekeys.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use wraith::session::ratchet::{self as inner, PreKeyBundle};
use wraith::session::system_rng;
use zeroize::Zeroizing;

use crate::error::WraithError;
use crate::identity::Identity;
use crate::session::{Opened, not_kept, opened_each, slices};
use crate::vault::{ForeignVault, KeyVault, lock};

/// The secrets of the published prekeys, with which peers can start conversations while this side
/// is offline. They are in memory or kept in a vault ([`PreKeys::keep`]); in a vault, each change
/// is stored before its result is returned. If the vault fails, the state is unchanged.
/// Thread-safe.
#[derive(Debug, uniffi::Object)]
pub struct PreKeys(Mutex<inner::PreKeys>);

#[uniffi::export]
impl PreKeys {
    /// Generates signed prekeys of `identity` and `one_time` one-time prekeys.
    ///
    /// # Errors
    /// [`WraithError::NoRandomness`].
    #[uniffi::constructor]
    pub fn generate(identity: &Identity, one_time: u32) -> Result<Arc<Self>, WraithError> {
        let mut rng = system_rng()?;
        Ok(Self::new(inner::PreKeys::generate(&mut rng, &identity.0, count(one_time))))
    }

    /// Restores prekeys from the bytes of [`PreKeys::save`].
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`] if the bytes are damaged or of another version.
    #[uniffi::constructor]
    pub fn restore(saved: Vec<u8>) -> Result<Arc<Self>, WraithError> {
        let saved = Zeroizing::new(saved);
        Ok(Self::new(inner::PreKeys::restore(&saved)?))
    }

    /// Loads the prekeys of this name from a vault. If two processes share the vault and load the
    /// same prekeys, one of them fails.
    ///
    /// # Errors
    /// As [`crate::Session::load`].
    #[uniffi::constructor]
    pub fn load(vault: Arc<dyn KeyVault>, name: String) -> Result<Arc<Self>, WraithError> {
        Ok(Self::new(inner::PreKeys::load(ForeignVault::of(vault), &name)?))
    }

    /// Keeps these prekeys in the vault from now on, under an unused name of 1 to 64
    /// characters (a-z, A-Z, 0-9, `-`, `_`).
    ///
    /// # Errors
    /// As [`crate::Session::keep`]. After [`WraithError::Vault`] the record may exist all the same,
    /// and can be loaded.
    pub fn keep(&self, vault: Arc<dyn KeyVault>, name: String) -> Result<(), WraithError> {
        Ok(self.lock()?.keep(ForeignVault::of(vault), &name)?)
    }

    /// Returns a bundle to publish, for one initiator. It includes a one-time prekey while some
    /// remain.
    ///
    /// # Errors
    /// [`WraithError::Vault`]: the state is unchanged.
    pub fn bundle(&self) -> Result<Vec<u8>, WraithError> {
        Ok(self.lock()?.bundle()?.encode())
    }

    /// Returns the number of one-time prekeys that are in no bundle yet.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if called from within a vault operation of these prekeys.
    pub fn remaining(&self) -> Result<u32, WraithError> {
        Ok(u32::try_from(self.lock()?.remaining()).unwrap_or(u32::MAX))
    }

    /// Makes one-time prekeys until `one_time` of them are in no bundle.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if the prekeys belong to another identity;
    /// [`WraithError::Exhausted`] if no more can be made; [`WraithError::Vault`].
    pub fn replenish(&self, identity: &Identity, one_time: u32) -> Result<(), WraithError> {
        let mut rng = system_rng()?;
        Ok(self.lock()?.replenish(&mut rng, &identity.0, count(one_time))?)
    }

    /// Replaces the signed prekeys; call this about once a week. The previous ones stay valid until
    /// the next rotation.
    ///
    /// # Errors
    /// As [`PreKeys::replenish`].
    pub fn rotate(&self, identity: &Identity) -> Result<(), WraithError> {
        let mut rng = system_rng()?;
        Ok(self.lock()?.rotate(&mut rng, &identity.0)?)
    }

    /// Returns the whole state for [`PreKeys::restore`], for a caller without a vault. Keep it as
    /// secret as the keys. Save after each change, before you use its result.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the prekeys are in a vault.
    pub fn save(&self) -> Result<Vec<u8>, WraithError> {
        let prekeys = self.lock()?;
        not_kept(prekeys.is_kept())?;
        Ok(prekeys.save().to_vec())
    }
}

impl PreKeys {
    fn new(prekeys: inner::PreKeys) -> Arc<Self> {
        Arc::new(Self(Mutex::new(prekeys)))
    }

    fn lock(&self) -> Result<MutexGuard<'_, inner::PreKeys>, WraithError> {
        lock(&self.0)
    }
}

/// One side of a conversation, in memory or kept in a vault ([`Ratchet::keep`]). In a vault, each
/// call that changes the conversation stores it before it returns. If the vault fails, the state is
/// unchanged. Thread-safe.
#[derive(Debug, uniffi::Object)]
pub struct Ratchet(Mutex<inner::Ratchet>);

/// A conversation that a peer has started, and the text of its first message.
#[derive(Clone, Debug, uniffi::Record)]
pub struct Started {
    /// The conversation.
    pub ratchet: Arc<Ratchet>,
    /// Its first text.
    pub text: Vec<u8>,
}

/// Each call throws [`WraithError::WrongState`] if it comes from within a vault operation of this
/// conversation.
#[uniffi::export]
impl Ratchet {
    /// Starts a conversation with the publisher of `bundle`. Check that [`Ratchet::peer`] is the
    /// intended peer.
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`] if the bytes are no bundle, or are not signed by the identity
    /// that they name. [`WraithError::InvalidInput`] if that identity is invalid or this side's
    /// own.
    #[uniffi::constructor]
    pub fn initiate(identity: &Identity, bundle: Vec<u8>) -> Result<Arc<Self>, WraithError> {
        let bundle = PreKeyBundle::decode(&bundle)?;
        let mut rng = system_rng()?;
        Ok(Self::new(inner::Ratchet::initiate(&mut rng, &identity.0, &bundle)?))
    }

    /// Restores a conversation from the bytes of [`Ratchet::save`].
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`] if the bytes are damaged or of another version.
    #[uniffi::constructor]
    pub fn restore(saved: Vec<u8>) -> Result<Arc<Self>, WraithError> {
        let saved = Zeroizing::new(saved);
        Ok(Self::new(inner::Ratchet::restore(&saved)?))
    }

    /// Loads the conversation of this name from a vault. If two processes share the vault and load
    /// the same conversation, one of them fails.
    ///
    /// # Errors
    /// As [`crate::Session::load`].
    #[uniffi::constructor]
    pub fn load(vault: Arc<dyn KeyVault>, name: String) -> Result<Arc<Self>, WraithError> {
        Ok(Self::new(inner::Ratchet::load(ForeignVault::of(vault), &name)?))
    }

    /// Keeps this conversation in the vault from now on, under an unused name of 1 to
    /// 64 characters (a-z, A-Z, 0-9, `-`, `_`).
    ///
    /// # Errors
    /// As [`PreKeys::keep`].
    pub fn keep(&self, vault: Arc<dyn KeyVault>, name: String) -> Result<(), WraithError> {
        Ok(self.lock()?.keep(ForeignVault::of(vault), &name)?)
    }

    /// Returns the NodeId of the peer. The first message that opens proves it.
    pub fn peer(&self) -> Result<String, WraithError> {
        Ok(self.lock()?.peer().to_string())
    }

    /// Returns 32 bytes that both sides of this conversation share, and no other conversation has.
    pub fn binding(&self) -> Result<Vec<u8>, WraithError> {
        Ok(self.lock()?.binding().to_vec())
    }

    /// Returns whether no message of the peer has opened yet.
    pub fn is_unanswered(&self) -> Result<bool, WraithError> {
        Ok(self.lock()?.is_unanswered())
    }

    /// Sets whether messages are padded, which hides most of their length. In a vault, the next
    /// message stores the setting.
    pub fn set_padding(&self, padding: bool) -> Result<(), WraithError> {
        self.lock()?.set_padding(padding);
        Ok(())
    }

    /// Sets the current time, counted from any fixed moment. Keys of missing messages expire by it.
    /// In a vault, the next message stores the time.
    pub fn set_time(&self, now: Duration) -> Result<(), WraithError> {
        self.lock()?.set_time(now);
        Ok(())
    }

    /// Encrypts `text` and returns the message. `aad` is not sent; the peer must pass the same.
    /// A vault is written before this returns; without one, save the state before you send the
    /// message.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if `text` is too long; [`WraithError::Exhausted`] after too
    /// many messages without an answer; [`WraithError::Vault`]. The state is unchanged.
    pub fn encrypt(&self, aad: Vec<u8>, text: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let (mut rng, mut message) = (system_rng()?, Vec::new());
        self.lock()?.encrypt(&mut rng, &aad, &text, &mut message)?;
        Ok(message)
    }

    /// Decrypts a message. The state changes only if the message is authentic. A vault is written
    /// before this returns.
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`]; [`WraithError::Replayed`]; [`WraithError::TooOld`] if the
    /// message is so late that its key is gone; [`WraithError::Protocol`] if the peer violates the
    /// protocol; [`WraithError::Vault`]. The state is unchanged.
    pub fn decrypt(&self, aad: Vec<u8>, message: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut text = Vec::new();
        self.lock()?.decrypt(&aad, &message, &mut text)?;
        Ok(text)
    }

    /// Encrypts all texts in order. A vault is written once, before this returns.
    ///
    /// # Errors
    /// As [`Ratchet::encrypt`].
    pub fn encrypt_many(
        &self,
        aad: Vec<u8>,
        texts: Vec<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>, WraithError> {
        let mut rng = system_rng()?;
        let batch = self.lock()?.encrypt_many(&mut rng, &aad, &slices(&texts))?;
        Ok(batch.iter().map(<[u8]>::to_vec).collect())
    }

    /// Decrypts all messages. Returns a result for each, numbered by its index in `messages`. A
    /// vault is written once, before this returns.
    ///
    /// # Errors
    /// [`WraithError::Vault`]: the state is unchanged, and no message was opened.
    pub fn decrypt_many(
        &self,
        aad: Vec<u8>,
        messages: Vec<Vec<u8>>,
    ) -> Result<Vec<Opened>, WraithError> {
        Ok(opened_each(&self.lock()?.decrypt_many(&aad, &slices(&messages))?))
    }

    /// Returns the whole state for [`Ratchet::restore`], for a caller without a vault. Keep it as
    /// secret as the conversation. Restoring an older state may break the conversation.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the conversation is in a vault.
    pub fn save(&self) -> Result<Vec<u8>, WraithError> {
        let ratchet = self.lock()?;
        not_kept(ratchet.is_kept())?;
        Ok(ratchet.save().to_vec())
    }
}

/// Starts the conversation that a first message requests, and consumes a prekey. [`Ratchet::peer`]
/// is the authenticated sender.
///
/// # Errors
/// [`WraithError::Unauthentic`] if it is no first message, or was changed;
/// [`WraithError::NotFound`] if the prekey was used or never made; [`WraithError::Replayed`];
/// [`WraithError::Exhausted`] if the prekeys must be rotated first; [`WraithError::WrongState`] if
/// the prekeys are in a vault.
#[uniffi::export]
pub fn respond(
    identity: &Identity,
    prekeys: &PreKeys,
    aad: Vec<u8>,
    message: Vec<u8>,
) -> Result<Started, WraithError> {
    let mut prekeys = prekeys.lock()?;
    let (ratchet, text) = inner::Ratchet::respond(&identity.0, &mut prekeys, &aad, &message)?;
    Ok(Started { ratchet: Ratchet::new(ratchet), text })
}

/// Starts the conversation that a first message requests, keeps it in a vault under an unused name,
/// and then consumes its prekey. The prekeys must be in a vault, too. If the process ends halfway,
/// repeat the call with the same name. To find the same name again, derive it from
/// [`initiator_of`].
///
/// # Errors
/// As [`respond`]; [`WraithError::Conflict`] if a record of this name exists;
/// [`WraithError::Vault`]: the text was not returned; [`WraithError::WrongState`] if the prekeys
/// are in no vault.
#[uniffi::export]
pub fn respond_in_vault(
    vault: Arc<dyn KeyVault>,
    name: String,
    identity: &Identity,
    prekeys: &PreKeys,
    aad: Vec<u8>,
    message: Vec<u8>,
) -> Result<Started, WraithError> {
    let (mut prekeys, vault) = (prekeys.lock()?, ForeignVault::of(vault));
    let (ratchet, text) =
        inner::Ratchet::respond_in_vault(vault, &name, &identity.0, &mut prekeys, &aad, &message)?;
    Ok(Started { ratchet: Ratchet::new(ratchet), text })
}

/// Returns the claimed sender's NodeId if `message` is a first message for [`respond`] or
/// [`respond_in_vault`], otherwise null. Nothing is authenticated.
#[uniffi::export]
pub fn initiator_of(message: Vec<u8>) -> Option<String> {
    inner::Ratchet::initiator_of(&message).map(|peer| peer.to_string())
}

impl Ratchet {
    fn new(ratchet: inner::Ratchet) -> Arc<Self> {
        Arc::new(Self(Mutex::new(ratchet)))
    }

    fn lock(&self) -> Result<MutexGuard<'_, inner::Ratchet>, WraithError> {
        lock(&self.0)
    }
}

fn count(one_time: u32) -> usize {
    usize::try_from(one_time).unwrap_or(usize::MAX)
}
