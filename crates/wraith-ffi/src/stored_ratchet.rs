//! Prekeys and conversations that survive their process: what changes one is in a vault before anybody can see that it has changed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use wraith::session as inner;
use wraith::session::ratchet::{DecryptError, PreKeyBundle, PreKeys};

use crate::error::WraithError;
use crate::identity::Identity;
use crate::random;
use crate::ratchet::count;
use crate::session::{Opened, Rejection};
use crate::vault::{KeyVault, Theirs, hold};

/// The prekeys of one identity, kept in a vault. Each change is stored before what came of it is given out; a vault that fails changes nothing.
/// Threads take turns.
#[derive(Debug, uniffi::Object)]
pub struct StoredPreKeys(Mutex<inner::StoredPreKeys>);

#[uniffi::export]
impl StoredPreKeys {
    /// New ones of `identity`, with so many that are used once, kept under a name that is not in use: 1 to 64 of a-z, A-Z, 0-9, - and _.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if it is no name; [`WraithError::Conflict`] if there is a record of this name; [`WraithError::Vault`], after which
    /// the record may be there all the same, and can be loaded.
    #[uniffi::constructor]
    pub fn create(
        vault: Arc<dyn KeyVault>,
        name: String,
        identity: &Identity,
        one_time: u32,
    ) -> Result<Arc<Self>, WraithError> {
        let keys = PreKeys::generate(&mut random::generator()?, &identity.0, count(one_time));
        Ok(Self::new(inner::StoredPreKeys::create(Arc::new(Theirs(vault)), &name, keys)?))
    }

    /// Goes on with the prekeys of this name. Of two that do, one fails as long as they share the vault.
    ///
    /// # Errors
    /// As for [`crate::StoredSession::load`].
    #[uniffi::constructor]
    pub fn load(vault: Arc<dyn KeyVault>, name: String) -> Result<Arc<Self>, WraithError> {
        Ok(Self::new(inner::StoredPreKeys::load(Arc::new(Theirs(vault)), &name)?))
    }

    /// As [`crate::PreKeys::bundle`].
    ///
    /// # Errors
    /// [`WraithError::Vault`]: nothing has changed.
    pub fn bundle(&self) -> Result<Vec<u8>, WraithError> {
        Ok(hold(&self.0)?.bundle()?.encode())
    }

    /// One-time prekeys that are in no bundle yet.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] in a call of the vault.
    pub fn remaining(&self) -> Result<u32, WraithError> {
        Ok(u32::try_from(hold(&self.0)?.remaining()).unwrap_or(u32::MAX))
    }

    /// As [`crate::PreKeys::replenish`].
    ///
    /// # Errors
    /// As there, and [`WraithError::Vault`]: nothing has changed.
    pub fn replenish(&self, identity: &Identity, one_time: u32) -> Result<(), WraithError> {
        let mut rng = random::generator()?;
        Ok(hold(&self.0)?.replenish(&mut rng, &identity.0, count(one_time))?)
    }

    /// As [`crate::PreKeys::rotate`].
    ///
    /// # Errors
    /// As there, and [`WraithError::Vault`]: nothing has changed.
    pub fn rotate(&self, identity: &Identity) -> Result<(), WraithError> {
        let mut rng = random::generator()?;
        Ok(hold(&self.0)?.rotate(&mut rng, &identity.0)?)
    }
}

impl StoredPreKeys {
    fn new(keys: inner::StoredPreKeys) -> Arc<Self> {
        Arc::new(Self(Mutex::new(keys)))
    }
}

/// One side of a conversation, kept in a vault. Each call that changes it stores it before it returns; a vault that fails changes nothing.
/// Threads take turns.
#[derive(Debug, uniffi::Object)]
pub struct StoredRatchet(Mutex<inner::StoredRatchet>);

/// A conversation that somebody else has started, in a vault, and the text of the message that did it.
#[derive(Clone, Debug, uniffi::Record)]
pub struct StoredStarted {
    /// The conversation.
    pub ratchet: Arc<StoredRatchet>,
    /// Its first text.
    pub text: Vec<u8>,
}

#[uniffi::export]
impl StoredRatchet {
    /// As [`crate::Ratchet::initiate`], kept under a name that is not in use.
    ///
    /// # Errors
    /// As there, and as for [`StoredPreKeys::create`].
    #[uniffi::constructor]
    pub fn initiate(
        vault: Arc<dyn KeyVault>,
        name: String,
        identity: &Identity,
        bundle: Vec<u8>,
    ) -> Result<Arc<Self>, WraithError> {
        let bundle = PreKeyBundle::decode(&bundle)?;
        let (mut rng, vault) = (random::generator()?, Arc::new(Theirs(vault)));
        let made = inner::StoredRatchet::initiate(vault, &name, &mut rng, &identity.0, &bundle)?;
        Ok(Self::new(made))
    }

    /// Goes on with the conversation of this name. Of two that do, one fails as long as they share the vault.
    ///
    /// # Errors
    /// As for [`crate::StoredSession::load`].
    #[uniffi::constructor]
    pub fn load(vault: Arc<dyn KeyVault>, name: String) -> Result<Arc<Self>, WraithError> {
        Ok(Self::new(inner::StoredRatchet::load(Arc::new(Theirs(vault)), &name)?))
    }

    /// The NodeId of the other side, proved by the first message that opens.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] in a call of the vault.
    pub fn peer(&self) -> Result<String, WraithError> {
        Ok(hold(&self.0)?.ratchet().peer().to_string())
    }

    /// 32 bytes that both sides of this conversation have, and no other conversation.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] in a call of the vault.
    pub fn binding(&self) -> Result<Vec<u8>, WraithError> {
        Ok(hold(&self.0)?.ratchet().binding().to_vec())
    }

    /// Whether nothing of the other side has opened yet.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] in a call of the vault.
    pub fn is_unanswered(&self) -> Result<bool, WraithError> {
        Ok(hold(&self.0)?.ratchet().is_unanswered())
    }

    /// As [`crate::Ratchet::set_padding`]. It is stored with the next message.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] in a call of the vault.
    pub fn set_padding(&self, padding: bool) -> Result<(), WraithError> {
        hold(&self.0)?.set_padding(padding);
        Ok(())
    }

    /// As [`crate::Ratchet::set_time`]. It is stored with the next message.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] in a call of the vault.
    pub fn set_time(&self, now: Duration) -> Result<(), WraithError> {
        hold(&self.0)?.set_time(now);
        Ok(())
    }

    /// As [`crate::Ratchet::encrypt`]. The vault is written before this returns.
    ///
    /// # Errors
    /// As there, and [`WraithError::Vault`]: nothing has changed.
    pub fn encrypt(&self, aad: Vec<u8>, text: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let (mut rng, mut message) = (random::generator()?, Vec::new());
        hold(&self.0)?.encrypt(&mut rng, &aad, &text, &mut message)?;
        Ok(message)
    }

    /// As [`crate::Ratchet::decrypt`]. The vault is written before this returns.
    ///
    /// # Errors
    /// As there, and [`WraithError::Vault`]: nothing has changed.
    pub fn decrypt(&self, aad: Vec<u8>, message: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut text = Vec::new();
        hold(&self.0)?.decrypt(&aad, &message, &mut text)?;
        Ok(text)
    }

    /// Encrypts every text, in this order. The vault is written once, before this returns.
    ///
    /// # Errors
    /// As for [`StoredRatchet::encrypt`]. Nothing has changed.
    pub fn encrypt_many(
        &self,
        aad: Vec<u8>,
        texts: Vec<Vec<u8>>,
    ) -> Result<Vec<Vec<u8>>, WraithError> {
        let texts: Vec<&[u8]> = texts.iter().map(Vec::as_slice).collect();
        let batch = hold(&self.0)?.encrypt_many(&mut random::generator()?, &aad, &texts)?;
        Ok(batch.iter().map(<[u8]>::to_vec).collect())
    }

    /// Decrypts every message; each is judged by itself, and numbered as it stands in `messages`. The vault is written once, before this
    /// returns.
    ///
    /// # Errors
    /// [`WraithError::Vault`]: nothing has changed, and no message was opened.
    pub fn decrypt_many(
        &self,
        aad: Vec<u8>,
        messages: Vec<Vec<u8>>,
    ) -> Result<Vec<Opened>, WraithError> {
        let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        let batch = hold(&self.0)?.decrypt_many(&aad, &messages)?;
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

/// Answers the first message of a conversation, which is kept under a name that is not in use; then its prekey is used up. A process that
/// ends in the middle of it can do the same again, with the same name: let it follow from [`initiator_of`].
///
/// # Errors
/// As for [`crate::respond`]; [`WraithError::Conflict`] if there is a record of this name; [`WraithError::Vault`]: nobody has seen the text.
#[uniffi::export]
pub fn respond_stored(
    vault: Arc<dyn KeyVault>,
    name: String,
    identity: &Identity,
    prekeys: &StoredPreKeys,
    aad: Vec<u8>,
    message: Vec<u8>,
) -> Result<StoredStarted, WraithError> {
    let mut prekeys = hold(&prekeys.0)?;
    let vault = Arc::new(Theirs(vault));
    let (ratchet, text) =
        inner::StoredRatchet::respond(vault, &name, &identity.0, &mut prekeys, &aad, &message)?;
    Ok(StoredStarted { ratchet: StoredRatchet::new(ratchet), text })
}

/// The NodeId of who sends `message`, if it is one that [`respond_stored`] or [`crate::respond`] can start with. Nothing is authentic yet.
#[uniffi::export]
pub fn initiator_of(message: Vec<u8>) -> Option<String> {
    inner::ratchet::Ratchet::initiator_of(&message).map(|peer| peer.to_string())
}

impl From<DecryptError> for Rejection {
    fn from(error: DecryptError) -> Self {
        match error {
            DecryptError::KeyGone => Self::Replayed,
            DecryptError::TooManySkipped => Self::Exhausted,
            DecryptError::Violation => Self::Protocol,
            _ => Self::Unauthentic,
        }
    }
}
