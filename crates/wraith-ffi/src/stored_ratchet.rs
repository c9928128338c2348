//! Prekeys and conversations that survive their process: a vault holds each state change before its
//! effect becomes visible.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use wraith::session as inner;
use wraith::session::ratchet::{DecryptError, PreKeyBundle, PreKeys};

use crate::error::WraithError;
use crate::identity::Identity;
use crate::random;
use crate::ratchet::count;
use crate::session::{Opened, Rejection};
use crate::vault::{ForeignVault, KeyVault, lock};

/// The prekeys of one identity, kept in a vault. Each change is stored before its result is
/// returned. If the vault fails, the state is unchanged. Thread-safe.
#[derive(Debug, uniffi::Object)]
pub struct StoredPreKeys(Mutex<inner::StoredPreKeys>);

#[uniffi::export]
impl StoredPreKeys {
    /// Generates prekeys of `identity` with `one_time` one-time prekeys, and stores them under an
    /// unused name: 1 to 64 of a-z, A-Z, 0-9, - and _.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] for an invalid name; [`WraithError::Conflict`] if a record of
    /// this name exists; [`WraithError::Vault`], after which the record may exist all the same, and
    /// can be loaded.
    #[uniffi::constructor]
    pub fn create(
        vault: Arc<dyn KeyVault>,
        name: String,
        identity: &Identity,
        one_time: u32,
    ) -> Result<Arc<Self>, WraithError> {
        let keys = PreKeys::generate(&mut random::generator()?, &identity.0, count(one_time));
        Ok(Self::new(inner::StoredPreKeys::create(Arc::new(ForeignVault(vault)), &name, keys)?))
    }

    /// Loads the prekeys of this name. If two processes share the vault and load the same prekeys,
    /// one of them fails.
    ///
    /// # Errors
    /// As [`crate::StoredSession::load`].
    #[uniffi::constructor]
    pub fn load(vault: Arc<dyn KeyVault>, name: String) -> Result<Arc<Self>, WraithError> {
        Ok(Self::new(inner::StoredPreKeys::load(Arc::new(ForeignVault(vault)), &name)?))
    }

    /// As [`crate::PreKeys::bundle`].
    ///
    /// # Errors
    /// [`WraithError::Vault`]: the state is unchanged.
    pub fn bundle(&self) -> Result<Vec<u8>, WraithError> {
        Ok(lock(&self.0)?.bundle()?.encode())
    }

    /// Returns the number of one-time prekeys that are in no bundle yet.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if called from within a vault operation of these prekeys.
    pub fn remaining(&self) -> Result<u32, WraithError> {
        Ok(u32::try_from(lock(&self.0)?.remaining()).unwrap_or(u32::MAX))
    }

    /// As [`crate::PreKeys::replenish`].
    ///
    /// # Errors
    /// As [`crate::PreKeys::replenish`], and [`WraithError::Vault`]: the state is unchanged.
    pub fn replenish(&self, identity: &Identity, one_time: u32) -> Result<(), WraithError> {
        let mut rng = random::generator()?;
        Ok(lock(&self.0)?.replenish(&mut rng, &identity.0, count(one_time))?)
    }

    /// As [`crate::PreKeys::rotate`].
    ///
    /// # Errors
    /// As [`crate::PreKeys::rotate`], and [`WraithError::Vault`]: the state is unchanged.
    pub fn rotate(&self, identity: &Identity) -> Result<(), WraithError> {
        let mut rng = random::generator()?;
        Ok(lock(&self.0)?.rotate(&mut rng, &identity.0)?)
    }
}

impl StoredPreKeys {
    fn new(keys: inner::StoredPreKeys) -> Arc<Self> {
        Arc::new(Self(Mutex::new(keys)))
    }
}

/// One side of a conversation, kept in a vault. Each call that changes the conversation stores it
/// before it returns. If the vault fails, the state is unchanged. Thread-safe.
#[derive(Debug, uniffi::Object)]
pub struct StoredRatchet(Mutex<inner::StoredRatchet>);

/// A stored conversation that a peer has started, and the text of its first message.
#[derive(Clone, Debug, uniffi::Record)]
pub struct StoredStarted {
    /// The conversation.
    pub ratchet: Arc<StoredRatchet>,
    /// Its first text.
    pub text: Vec<u8>,
}

#[uniffi::export]
impl StoredRatchet {
    /// As [`crate::Ratchet::initiate`], stored under an unused name.
    ///
    /// # Errors
    /// As [`crate::Ratchet::initiate`] and [`StoredPreKeys::create`].
    #[uniffi::constructor]
    pub fn initiate(
        vault: Arc<dyn KeyVault>,
        name: String,
        identity: &Identity,
        bundle: Vec<u8>,
    ) -> Result<Arc<Self>, WraithError> {
        let bundle = PreKeyBundle::decode(&bundle)?;
        let (mut rng, vault) = (random::generator()?, Arc::new(ForeignVault(vault)));
        let made = inner::StoredRatchet::initiate(vault, &name, &mut rng, &identity.0, &bundle)?;
        Ok(Self::new(made))
    }

    /// Loads the conversation of this name. If two processes share the vault and load the same
    /// conversation, one of them fails.
    ///
    /// # Errors
    /// As [`crate::StoredSession::load`].
    #[uniffi::constructor]
    pub fn load(vault: Arc<dyn KeyVault>, name: String) -> Result<Arc<Self>, WraithError> {
        Ok(Self::new(inner::StoredRatchet::load(Arc::new(ForeignVault(vault)), &name)?))
    }

    /// Returns the NodeId of the peer. The first message that opens proves it.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if called from within a vault operation of this conversation.
    pub fn peer(&self) -> Result<String, WraithError> {
        Ok(lock(&self.0)?.ratchet().peer().to_string())
    }

    /// Returns 32 bytes that both sides of this conversation share, and no other conversation has.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if called from within a vault operation of this conversation.
    pub fn binding(&self) -> Result<Vec<u8>, WraithError> {
        Ok(lock(&self.0)?.ratchet().binding().to_vec())
    }

    /// Returns whether no message of the peer has opened yet.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if called from within a vault operation of this conversation.
    pub fn is_unanswered(&self) -> Result<bool, WraithError> {
        Ok(lock(&self.0)?.ratchet().is_unanswered())
    }

    /// As [`crate::Ratchet::set_padding`]. The next message stores the setting.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if called from within a vault operation of this conversation.
    pub fn set_padding(&self, padding: bool) -> Result<(), WraithError> {
        lock(&self.0)?.set_padding(padding);
        Ok(())
    }

    /// As [`crate::Ratchet::set_time`]. The next message stores the time.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if called from within a vault operation of this conversation.
    pub fn set_time(&self, now: Duration) -> Result<(), WraithError> {
        lock(&self.0)?.set_time(now);
        Ok(())
    }

    /// As [`crate::Ratchet::encrypt`]. The vault is written before this returns.
    ///
    /// # Errors
    /// As [`crate::Ratchet::encrypt`], and [`WraithError::Vault`]: the state is unchanged.
    pub fn encrypt(&self, aad: Vec<u8>, text: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let (mut rng, mut message) = (random::generator()?, Vec::new());
        lock(&self.0)?.encrypt(&mut rng, &aad, &text, &mut message)?;
        Ok(message)
    }

    /// As [`crate::Ratchet::decrypt`]. The vault is written before this returns.
    ///
    /// # Errors
    /// As [`crate::Ratchet::decrypt`], and [`WraithError::Vault`]: the state is unchanged.
    pub fn decrypt(&self, aad: Vec<u8>, message: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut text = Vec::new();
        lock(&self.0)?.decrypt(&aad, &message, &mut text)?;
        Ok(text)
    }

    /// Encrypts all texts in order. The vault is written once, before this returns.
    ///
    /// # Errors
    /// As [`StoredRatchet::encrypt`]: the state is unchanged.
    pub fn encrypt_many(
        &self,
        aad: Vec<u8>,
        texts: Vec<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>, WraithError> {
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let batch = lock(&self.0)?.encrypt_many(&mut random::generator()?, &aad, &texts)?;
        Ok(batch.iter().map(<[u8]>::to_vec).collect())
    }

    /// Decrypts all messages. Returns a result for each, numbered by its index in `messages`. The
    /// vault is written once, before this returns.
    ///
    /// # Errors
    /// [`WraithError::Vault`]: the state is unchanged, and no message was opened.
    pub fn decrypt_many(
        &self,
        aad: Vec<u8>,
        messages: Vec<Vec<u8>>,
    ) -> Result<Vec<Opened>, WraithError> {
        let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let batch = lock(&self.0)?.decrypt_many(&aad, &messages)?;
        let each = (0..).zip(batch.iter()).map(|(number, each)| match each {
            Ok(text) => Opened::Text { number, text: text.to_vec() },
            Err(why) => Opened::Rejected { kind: why.into(), why: why.to_string() },
        });
        Ok(each.collect())
    }
}

impl StoredRatchet {
    fn new(ratchet: inner::StoredRatchet) -> Arc<Self> {
        Arc::new(Self(Mutex::new(ratchet)))
    }
}

/// Starts the conversation that a first message requests, stores it under an unused name, and then
/// consumes its prekey. If the process ends halfway, repeat the call with the same name. To find
/// the same name again, derive it from [`initiator_of`].
///
/// # Errors
/// As [`crate::respond`]; [`WraithError::Conflict`] if a record of this name exists;
/// [`WraithError::Vault`]: the text was not returned.
#[uniffi::export]
pub fn respond_stored(
    vault: Arc<dyn KeyVault>,
    name: String,
    identity: &Identity,
    prekeys: &StoredPreKeys,
    aad: Vec<u8>,
    message: Vec<u8>,
) -> Result<StoredStarted, WraithError> {
    let mut prekeys = lock(&prekeys.0)?;
    let vault = Arc::new(ForeignVault(vault));
    let (ratchet, text) =
        inner::StoredRatchet::respond(vault, &name, &identity.0, &mut prekeys, &aad, &message)?;
    Ok(StoredStarted { ratchet: StoredRatchet::new(ratchet), text })
}

/// Returns the claimed sender's NodeId if `message` is a first message for [`respond_stored`] or
/// [`crate::respond`], otherwise null. Nothing is authenticated.
#[uniffi::export]
pub fn initiator_of(message: Vec<u8>) -> Option<String> {
    inner::ratchet::Ratchet::initiator_of(&message).map(|peer| peer.to_string())
}

impl From<DecryptError> for Rejection {
    fn from(error: DecryptError) -> Self {
        match error {
            DecryptError::Replayed => Self::Replayed,
            DecryptError::TooOld => Self::TooOld,
            DecryptError::Violation => Self::Protocol,
            _ => Self::Unauthentic,
        }
    }
}
