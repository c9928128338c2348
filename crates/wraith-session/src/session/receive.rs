//! The receiving direction: replay protection and key selection.
//!
//! Opening has two steps. Verification changes no state; acceptance marks the message number as
//! received. Only verified messages advance the replay window or the epoch.

use std::time::Duration;

use wraith_crypto::{AeadKey, Suite};
use wraith_noise::primitives::nonce;
use zeroize::Zeroizing;

use super::epoch::{EPOCH_MESSAGES, SESSION_WINDOW, SessionWindow, epoch_of, rekey};
use super::{NUMBER_BYTES, OpenError};

/// Maximum number of consecutive epochs that may be lost entirely. Beyond it the two sides need a
/// new handshake.
pub const EPOCHS_AHEAD_MAX: u64 = 1024;
/// Time for which the previous key is kept for messages in flight, if the caller sets the time.
pub(crate) const PREVIOUS_KEY_TIME: Duration = Duration::from_secs(120);
/// Distance in epochs between cached future keys. The cache makes forged numbers cheap.
const KEY_CACHE_INTERVAL: u64 = 32;

/// An epoch within a saved state.
#[derive(Clone)]
pub(crate) struct EpochState {
    pub(crate) epoch: u64,
    pub(crate) key: Zeroizing<[u8; 32]>,
    pub(crate) window: SessionWindow,
}

/// The saved part of this direction.
#[derive(Clone)]
pub(crate) struct ReceiveState {
    pub(crate) current: EpochState,
    /// The previous epoch, while messages of it may still arrive.
    pub(crate) previous: Option<Box<EpochState>>,
}

/// An authentic message.
pub(crate) struct Verified {
    pub(crate) number: u64,
    /// Key of the message's epoch, if that is a later one.
    ahead: Option<Zeroizing<[u8; 32]>>,
}

impl ReceiveState {
    /// Marks a verified message.
    ///
    /// # Errors
    /// The message was accepted before. This happens within a batch that holds it twice.
    pub(crate) fn accept(&mut self, verified: &Verified) -> Result<(), OpenError> {
        let Verified { number, ahead } = verified;
        let epoch = epoch_of(*number);
        if epoch > self.current.epoch {
            let key = ahead.clone().expect("a later epoch's message was opened by its key");
            let current = EpochState { epoch, key, window: SessionWindow::new() };
            self.previous = Some(Box::new(std::mem::replace(&mut self.current, current)));
        }
        let window = if epoch == self.current.epoch {
            &mut self.current.window
        } else {
            let previous = self.previous.as_mut().filter(|previous| previous.epoch == epoch);
            &mut previous.ok_or(OpenError::TooOld)?.window
        };
        if !window.insert(*number) {
            return Err(OpenError::Replayed);
        }
        if self.previous.is_some() && self.current.window.next() % EPOCH_MESSAGES > SESSION_WINDOW {
            self.previous = None;
        }
        Ok(())
    }
}

pub(crate) struct Receiver {
    suite: Suite,
    pub(crate) state: ReceiveState,
    /// The expanded keys, unless the session is parked.
    current: Option<AeadKey>,
    previous: Option<AeadKey>,
    /// Start of the current epoch.
    since: Option<Duration>,
    /// Cached keys of epochs ahead that received numbers have claimed: one every
    /// [`KEY_CACHE_INTERVAL`] epochs, counted from the current one.
    strides: Vec<Zeroizing<[u8; 32]>>,
}

impl Receiver {
    pub(crate) fn new(suite: Suite, state: ReceiveState) -> Self {
        Self { suite, state, current: None, previous: None, since: None, strides: Vec::new() }
    }

    /// Releases all state that can be recomputed.
    pub(crate) fn park(&mut self) {
        (self.current, self.previous, self.strides) = (None, None, Vec::new());
    }

    /// Expands the keys, and derives the future keys that the numbers of `messages` claim, within
    /// limits. Call it before [`Self::verify`].
    pub(crate) fn prepare<'a>(&mut self, messages: impl Iterator<Item = &'a [u8]>) {
        let Self { suite, state, current, previous, .. } = self;
        current.get_or_insert_with(|| AeadKey::new(*suite, &state.current.key));
        if let (Some(state), None) = (&state.previous, &previous) {
            *previous = Some(AeadKey::new(*suite, &state.key));
        }
        for message in messages {
            let Some((number, _)) = message.split_first_chunk::<NUMBER_BYTES>() else { continue };
            let ahead =
                epoch_of(u64::from_le_bytes(*number)).saturating_sub(self.state.current.epoch);
            if ahead <= EPOCHS_AHEAD_MAX {
                // Allocated in full: growing would leave copies of keys in memory.
                if self.strides.capacity() == 0 && ahead >= KEY_CACHE_INTERVAL {
                    self.strides.reserve_exact((EPOCHS_AHEAD_MAX / KEY_CACHE_INTERVAL) as usize);
                }
                while (self.strides.len() as u64) < ahead / KEY_CACHE_INTERVAL {
                    let from = self.strides.last().unwrap_or(&self.state.current.key);
                    let next = rekey(self.suite, from, KEY_CACHE_INTERVAL);
                    self.strides.push(next);
                }
            }
        }
    }

    /// Decrypts `message` in place, behind its number, and changes no other state. A replay is
    /// refused by a window lookup, before any decryption.
    pub(crate) fn verify(&self, aad: &[u8], message: &mut [u8]) -> Result<Verified, OpenError> {
        let (number, sealed) = message.split_first_chunk_mut().ok_or(OpenError::Length)?;
        let number = u64::from_le_bytes(*number);
        let epoch = epoch_of(number);
        let nonce = nonce(self.suite, number);
        let state = &self.state;
        if number == u64::MAX {
            return Err(OpenError::Unauthentic);
        }
        if epoch > state.current.epoch {
            let key = self.key_ahead(epoch)?;
            let aead = AeadKey::new(self.suite, &key);
            aead.open(nonce, aad, sealed).map_err(|_| OpenError::Unauthentic)?;
            return Ok(Verified { number, ahead: Some(key) });
        }
        let (window, key) = if epoch == state.current.epoch {
            (&state.current.window, self.current.as_ref())
        } else {
            match (&state.previous, &self.previous) {
                (Some(previous), key) if previous.epoch == epoch => {
                    (&previous.window, key.as_ref())
                }
                _ => return Err(OpenError::TooOld),
            }
        };
        if !window.is_new(number) {
            let old = window.next() - number > SESSION_WINDOW;
            return Err(if old { OpenError::TooOld } else { OpenError::Replayed });
        }
        let key = key.expect("the keys of both epochs were expanded before");
        key.open(nonce, aad, sealed).map_err(|_| OpenError::Unauthentic)?;
        Ok(Verified { number, ahead: None })
    }

    fn key_ahead(&self, epoch: u64) -> Result<Zeroizing<[u8; 32]>, OpenError> {
        let ahead = epoch - self.state.current.epoch;
        if ahead > EPOCHS_AHEAD_MAX {
            return Err(OpenError::TooFarAhead);
        }
        let strides = (ahead / KEY_CACHE_INTERVAL).min(self.strides.len() as u64);
        let from = match strides.checked_sub(1) {
            Some(last) => &self.strides[last as usize],
            None => &self.state.current.key,
        };
        Ok(rekey(self.suite, from, ahead - strides * KEY_CACHE_INTERVAL))
    }

    /// As [`ReceiveState::accept`], and updates the expanded keys.
    pub(crate) fn accept(
        &mut self,
        now: Option<Duration>,
        verified: &Verified,
    ) -> Result<(), OpenError> {
        let before = self.state.current.epoch;
        let accepted = self.state.accept(verified);
        if self.state.current.epoch != before {
            self.previous = self.current.take();
            self.since = now;
            self.strides = Vec::new();
        }
        if self.state.previous.is_none() {
            self.previous = None;
        }
        accepted
    }

    /// Drops the previous key once its time has passed.
    pub(crate) fn on_time(&mut self, now: Duration) {
        if self.state.previous.is_some()
            && now.saturating_sub(*self.since.get_or_insert(now)) >= PREVIOUS_KEY_TIME
        {
            self.state.previous = None;
            self.previous = None;
        }
    }
}
