//! Conversations for peers that are rarely online together: the Double Ratchet, started from
//! prekeys.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wraith::session::ratchet::{
    self as inner, DecryptError, EncryptError, PreKeyBundle, StartError,
};
use zeroize::Zeroizing;

use crate::error::WraithError;
use crate::identity::Identity;
use crate::random;

/// The secrets of the published prekeys, with which peers can start conversations while this side
/// is offline. Thread-safe.
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
        let mut rng = random::generator()?;
        let keys = inner::PreKeys::generate(&mut rng, &identity.0, count(one_time));
        Ok(Arc::new(Self(Mutex::new(keys))))
    }

    /// Restores prekeys from the bytes of [`PreKeys::save`].
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`] if the bytes are damaged or of another version.
    #[uniffi::constructor]
    pub fn restore(saved: Vec<u8>) -> Result<Arc<Self>, WraithError> {
        let saved = Zeroizing::new(saved);
        Ok(Arc::new(Self(Mutex::new(inner::PreKeys::restore(&saved)?))))
    }

    /// Returns a bundle to publish, for one initiator. It includes a one-time prekey while some
    /// remain.
    pub fn bundle(&self) -> Vec<u8> {
        self.lock().bundle().encode()
    }

    /// Returns the number of one-time prekeys that are in no bundle yet.
    pub fn remaining(&self) -> u32 {
        u32::try_from(self.lock().remaining()).unwrap_or(u32::MAX)
    }

    /// Makes one-time prekeys until `one_time` of them are in no bundle.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if the prekeys belong to another identity;
    /// [`WraithError::Exhausted`] if no more can be made.
    pub fn replenish(&self, identity: &Identity, one_time: u32) -> Result<(), WraithError> {
        let mut rng = random::generator()?;
        Ok(self.lock().replenish(&mut rng, &identity.0, count(one_time))?)
    }

    /// Replaces the signed prekeys; call this about once a week. The previous ones stay valid until
    /// the next rotation.
    ///
    /// # Errors
    /// As [`PreKeys::replenish`].
    pub fn rotate(&self, identity: &Identity) -> Result<(), WraithError> {
        let mut rng = random::generator()?;
        Ok(self.lock().rotate(&mut rng, &identity.0)?)
    }

    /// Returns the whole state for [`PreKeys::restore`]. Keep it as secret as the keys. Save after
    /// each change, before you use its result.
    pub fn save(&self) -> Vec<u8> {
        self.lock().save().to_vec()
    }
}

impl PreKeys {
    /// Ignores poisoning: each call changes the keys completely or not at all.
    fn lock(&self) -> MutexGuard<'_, inner::PreKeys> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One side of a conversation. Thread-safe.
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
        let mut rng = random::generator()?;
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

    /// Returns the NodeId of the peer. The first message that opens proves it.
    pub fn peer(&self) -> String {
        self.lock().peer().to_string()
    }

    /// Returns 32 bytes that both sides of this conversation share, and no other conversation has.
    pub fn binding(&self) -> Vec<u8> {
        self.lock().binding().to_vec()
    }

    /// Returns whether no message of the peer has opened yet.
    pub fn is_unanswered(&self) -> bool {
        self.lock().is_unanswered()
    }

    /// Sets whether messages are padded, which hides most of their length.
    pub fn set_padding(&self, padding: bool) {
        self.lock().set_padding(padding);
    }

    /// Sets the current time, counted from any fixed moment. Keys of missing messages expire by it.
    pub fn set_time(&self, now: Duration) {
        self.lock().set_time(now);
    }

    /// Encrypts `text` and returns the message. `aad` is not sent; the peer must pass the same.
    /// Save the state before you send the message.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if `text` is too long; [`WraithError::Exhausted`] after too
    /// many messages without an answer.
    pub fn encrypt(&self, aad: Vec<u8>, text: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let (mut rng, mut message) = (random::generator()?, Vec::new());
        self.lock().encrypt(&mut rng, &aad, &text, &mut message)?;
        Ok(message)
    }

    /// Decrypts a message. The state changes only if the message is authentic.
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`]; [`WraithError::Replayed`]; [`WraithError::TooOld`] if the
    /// message is so late that its key is gone; [`WraithError::Protocol`] if the peer violates the
    /// protocol.
    pub fn decrypt(&self, aad: Vec<u8>, message: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut text = Vec::new();
        self.lock().decrypt(&aad, &message, &mut text)?;
        Ok(text)
    }

    /// Returns the whole state for [`Ratchet::restore`]. Keep it as secret as the conversation.
    /// Restoring an older state may break the conversation.
    pub fn save(&self) -> Vec<u8> {
        self.lock().save().to_vec()
    }
}

/// Starts the conversation that a first message requests, and consumes a prekey. [`Ratchet::peer`]
/// is the authenticated sender.
///
/// # Errors
/// [`WraithError::Unauthentic`] if it is no first message, or was changed;
/// [`WraithError::NotFound`] if the prekey was used or never made; [`WraithError::Replayed`];
/// [`WraithError::Exhausted`] if the prekeys must be rotated first.
#[uniffi::export]
pub fn respond(
    identity: &Identity,
    prekeys: &PreKeys,
    aad: Vec<u8>,
    message: Vec<u8>,
) -> Result<Started, WraithError> {
    let mut prekeys = prekeys.lock();
    let (ratchet, text) = inner::Ratchet::respond(&identity.0, &mut prekeys, &aad, &message)?;
    Ok(Started { ratchet: Ratchet::new(ratchet), text })
}

impl Ratchet {
    fn new(ratchet: inner::Ratchet) -> Arc<Self> {
        Arc::new(Self(Mutex::new(ratchet)))
    }

    /// Ignores poisoning: a ratchet step happens completely or not at all.
    fn lock(&self) -> MutexGuard<'_, inner::Ratchet> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn count(one_time: u32) -> usize {
    usize::try_from(one_time).unwrap_or(usize::MAX)
}

impl From<StartError> for WraithError {
    fn from(error: StartError) -> Self {
        let text = error.to_string();
        match error {
            StartError::Identity => Self::InvalidInput(text),
            StartError::UnknownPreKey => Self::NotFound(text),
            StartError::Replayed => Self::Replayed(text),
            StartError::PreKeysExhausted => Self::Exhausted(text),
            _ => Self::Unauthentic(text),
        }
    }
}

impl From<EncryptError> for WraithError {
    fn from(error: EncryptError) -> Self {
        match error {
            EncryptError::TooLong => Self::InvalidInput(error.to_string()),
            EncryptError::ChainExhausted => Self::Exhausted(error.to_string()),
            _ => Self::Unauthentic(error.to_string()),
        }
    }
}

impl From<DecryptError> for WraithError {
    fn from(error: DecryptError) -> Self {
        let text = error.to_string();
        match error {
            DecryptError::Replayed => Self::Replayed(text),
            DecryptError::TooOld => Self::TooOld(text),
            DecryptError::Violation => Self::Protocol(text),
            _ => Self::Unauthentic(text),
        }
    }
}
