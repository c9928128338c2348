//! Conversations whose two sides are seldom there at the same time: the Double Ratchet, started from prekeys.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use wraith::session::ratchet::{
    self as inner, DecryptError, EncryptError, PreKeyBundle, StartError,
};
use zeroize::Zeroizing;

use crate::error::WraithError;
use crate::identity::Identity;
use crate::random;

/// The secrets behind what somebody publishes, so that others can start conversations while it is away. Threads take turns.
#[derive(Debug, uniffi::Object)]
pub struct PreKeys(Mutex<inner::PreKeys>);

#[uniffi::export]
impl PreKeys {
    /// New ones of `identity`, with so many that are used once.
    ///
    /// # Errors
    /// The system gives no randomness.
    #[uniffi::constructor]
    pub fn generate(identity: &Identity, one_time: u32) -> Result<Arc<Self>, WraithError> {
        let mut rng = random::generator()?;
        let keys = inner::PreKeys::generate(&mut rng, &identity.0, count(one_time));
        Ok(Arc::new(Self(Mutex::new(keys))))
    }

    /// Those that were saved as these bytes.
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`] if they are damaged or of another version.
    #[uniffi::constructor]
    pub fn restore(saved: Vec<u8>) -> Result<Arc<Self>, WraithError> {
        let saved = Zeroizing::new(saved);
        Ok(Arc::new(Self(Mutex::new(inner::PreKeys::restore(&saved)?))))
    }

    /// What to publish for one initiator. It takes a one-time prekey with it as long as some remain.
    pub fn bundle(&self) -> Vec<u8> {
        self.lock().bundle().encode()
    }

    /// One-time prekeys that are in no bundle yet.
    pub fn remaining(&self) -> u32 {
        u32::try_from(self.lock().remaining()).unwrap_or(u32::MAX)
    }

    /// Makes one-time prekeys until there are so many.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if they are of another identity; [`WraithError::Exhausted`] if no more can be made.
    pub fn replenish(&self, identity: &Identity, one_time: u32) -> Result<(), WraithError> {
        let mut rng = random::generator()?;
        Ok(self.lock().replenish(&mut rng, &identity.0, count(one_time))?)
    }

    /// Changes the signed prekeys, as should be done every week or so. Those before stay good until the next time.
    ///
    /// # Errors
    /// As for [`PreKeys::replenish`].
    pub fn rotate(&self, identity: &Identity) -> Result<(), WraithError> {
        let mut rng = random::generator()?;
        Ok(self.lock().rotate(&mut rng, &identity.0)?)
    }

    /// Everything, for [`PreKeys::restore`]: as secret as the keys. Save after each change, before what came of it is used.
    pub fn save(&self) -> Vec<u8> {
        self.lock().save().to_vec()
    }
}

impl PreKeys {
    /// A panic elsewhere leaves keys that are used, or not.
    fn lock(&self) -> MutexGuard<'_, inner::PreKeys> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One side of a conversation. Threads take turns.
#[derive(Debug, uniffi::Object)]
pub struct Ratchet(Mutex<inner::Ratchet>);

/// A conversation that somebody else has started, and the text of the message that did it.
#[derive(Clone, Debug, uniffi::Record)]
pub struct Started {
    /// The conversation.
    pub ratchet: Arc<Ratchet>,
    /// Its first text.
    pub text: Vec<u8>,
}

#[uniffi::export]
impl Ratchet {
    /// Starts a conversation with whoever published `bundle`. Compare [`Ratchet::peer`] with whom is meant.
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`] if it is no bundle, or not signed by the identity that it names; [`WraithError::InvalidInput`] if that is
    /// nobody to talk with.
    #[uniffi::constructor]
    pub fn initiate(identity: &Identity, bundle: Vec<u8>) -> Result<Arc<Self>, WraithError> {
        let bundle = PreKeyBundle::decode(&bundle)?;
        let mut rng = random::generator()?;
        Ok(Self::new(inner::Ratchet::initiate(&mut rng, &identity.0, &bundle)?))
    }

    /// The conversation that was saved as these bytes.
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`] if they are damaged or of another version.
    #[uniffi::constructor]
    pub fn restore(saved: Vec<u8>) -> Result<Arc<Self>, WraithError> {
        let saved = Zeroizing::new(saved);
        Ok(Self::new(inner::Ratchet::restore(&saved)?))
    }

    /// The NodeId of the other side, proved by the first message that opens.
    pub fn peer(&self) -> String {
        self.lock().peer().to_string()
    }

    /// 32 bytes that both sides of this conversation have, and no other conversation.
    pub fn binding(&self) -> Vec<u8> {
        self.lock().binding().to_vec()
    }

    /// Whether nothing of the other side has opened yet.
    pub fn is_unanswered(&self) -> bool {
        self.lock().is_unanswered()
    }

    /// Whether messages are padded, which hides most of their length.
    pub fn set_padding(&self, padding: bool) {
        self.lock().set_padding(padding);
    }

    /// Tells the time, from any zero that stays the same: keys of missing messages expire by it.
    pub fn set_time(&self, now: Duration) {
        self.lock().set_time(now);
    }

    /// Encrypts `text`. `aad` is not sent, and must be the same at the other side. Save before the message leaves.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] if it is too long; [`WraithError::Exhausted`] if far too many were sent without an answer.
    pub fn encrypt(&self, aad: Vec<u8>, text: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let (mut rng, mut message) = (random::generator()?, Vec::new());
        self.lock().encrypt(&mut rng, &aad, &text, &mut message)?;
        Ok(message)
    }

    /// Decrypts a message. Nothing changes before it has authenticated.
    ///
    /// # Errors
    /// [`WraithError::Unauthentic`], [`WraithError::Replayed`]; [`WraithError::Exhausted`] if too many are missing in front of it;
    /// [`WraithError::Protocol`] if the other side breaks the protocol.
    pub fn decrypt(&self, aad: Vec<u8>, message: Vec<u8>) -> Result<Vec<u8>, WraithError> {
        let mut text = Vec::new();
        self.lock().decrypt(&aad, &message, &mut text)?;
        Ok(text)
    }

    /// Everything, for [`Ratchet::restore`]: as secret as the conversation. An older state in the place of a newer one may end the conversation.
    pub fn save(&self) -> Vec<u8> {
        self.lock().save().to_vec()
    }
}

/// Answers the first message of a conversation: it uses up a prekey. The sender, proved, is [`Ratchet::peer`].
///
/// # Errors
/// [`WraithError::Unauthentic`] if it is no first message, or was changed; [`WraithError::NotFound`] if the prekey was used or never made;
/// [`WraithError::Replayed`]; [`WraithError::Exhausted`] if the prekeys must be rotated first.
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

    /// A panic elsewhere leaves a state that has taken a step, or has not.
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
            DecryptError::KeyGone => Self::Replayed(text),
            DecryptError::TooManySkipped => Self::Exhausted(text),
            DecryptError::Violation => Self::Protocol(text),
            _ => Self::Unauthentic(text),
        }
    }
}
