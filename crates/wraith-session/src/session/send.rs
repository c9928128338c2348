//! The sending direction: which number a message gets, and when the key changes.
//!
//! Invariant: no number is given out twice, also after a restart from a saved state. `reserved` is the first number that no saved state knows
//! as used; a session that was saved once gives out no number from there on before it is saved again.

use std::time::Duration;

use wraith_crypto::{AeadKey, Suite};
use zeroize::Zeroizing;

use super::epoch::{EPOCH_MESSAGES, epoch_of, first_of, rekey};
use super::{Rekey, SealError};

/// The first number that is never given out. The last of all is Noise's `REKEY` as a nonce.
const NUMBERS_END: u64 = u64::MAX - 1;

/// What a saved state has to say of this direction.
#[derive(Clone)]
pub(crate) struct SendState {
    pub(crate) epoch: u64,
    pub(crate) key: Zeroizing<[u8; 32]>,
    /// The number of the next message.
    pub(crate) next: u64,
    /// The first number that may not be used before the state is saved again.
    pub(crate) reserved: u64,
    /// Bytes that the key of this epoch has sealed. More than any limit if that is not known, so that the next message has a new key.
    pub(crate) bytes: u64,
}

pub(crate) struct Sender {
    suite: Suite,
    pub(crate) state: SendState,
    /// The key expanded, unless nothing was sealed for a while.
    aead: Option<AeadKey>,
    pub(crate) rekey: Rekey,
    /// When the first message of this epoch was sealed, where the caller tells the time.
    since: Option<Duration>,
    /// The number that was not reserved when it was needed last.
    pub(crate) wanted: u64,
}

impl Sender {
    pub(crate) fn new(suite: Suite, state: SendState) -> Self {
        Self { suite, state, aead: None, rekey: Rekey::default(), since: None, wanted: 0 }
    }

    pub(crate) fn key(&mut self) -> &AeadKey {
        self.aead.get_or_insert_with(|| AeadKey::new(self.suite, &self.state.key))
    }

    /// Gives back what can be computed again.
    pub(crate) fn park(&mut self) {
        self.aead = None;
    }

    /// Whether the numbers of messages of these lengths can be given out: asked before the first of a batch is sealed, so that all or none
    /// are. Else which message has none, and why.
    pub(crate) fn check(
        &mut self,
        now: Option<Duration>,
        lens: impl Iterator<Item = usize>,
    ) -> Result<(), (usize, SealError)> {
        let (mut next, mut bytes) = self.begin(now);
        for (index, len) in lens.enumerate() {
            let number = self.place(next, bytes, len);
            self.allow(number).map_err(|why| (index, why))?;
            bytes = sealed_bytes(number, bytes, len);
            next = number + 1;
        }
        Ok(())
    }

    /// The number that a message of `len` bytes will get.
    pub(crate) fn peek(&self, now: Option<Duration>, len: usize) -> u64 {
        let (next, bytes) = self.begin(now);
        self.place(next, bytes, len)
    }

    /// Gives out the next number, for a message of `len` bytes, with the key changed to the one it needs.
    pub(crate) fn take(&mut self, now: Option<Duration>, len: usize) -> Result<u64, SealError> {
        let (next, bytes) = self.begin(now);
        let number = self.place(next, bytes, len);
        self.allow(number)?;
        self.enter(epoch_of(number));
        self.since = self.since.or(now);
        self.state.next = number + 1;
        self.state.bytes = sealed_bytes(number, bytes, len);
        Ok(number)
    }

    /// The next number, and the bytes that its epoch's key has sealed, if only the key's age is looked at.
    fn begin(&self, now: Option<Duration>) -> (u64, u64) {
        let aged = match (self.since, now) {
            // Whatever was set: all messages of one moment can have one key.
            (Some(since), Some(now)) => {
                now.saturating_sub(since) >= self.rekey.time.max(Duration::from_millis(1))
            }
            _ => false,
        };
        match first_of(self.state.epoch + 1).filter(|first| aged && *first > self.state.next) {
            Some(first) => (first, 0),
            None => (self.state.next, self.state.bytes),
        }
    }

    /// The number of a message of `len` bytes: `next`, or the first of the next epoch if this one's key has sealed enough.
    fn place(&self, next: u64, bytes: u64, len: usize) -> u64 {
        let in_epoch = next % EPOCH_MESSAGES;
        let full = in_epoch > 0
            && (in_epoch >= u64::from(self.rekey.messages)
                || bytes.saturating_add(len as u64) > self.rekey.bytes);
        match first_of(epoch_of(next) + 1) {
            Some(first) if full => first,
            _ => next,
        }
    }

    fn allow(&mut self, number: u64) -> Result<(), SealError> {
        if number >= NUMBERS_END {
            return Err(SealError::Exhausted);
        }
        if number >= self.state.reserved {
            self.wanted = number;
            return Err(SealError::NotSaved);
        }
        Ok(())
    }

    fn enter(&mut self, epoch: u64) {
        let steps = epoch - self.state.epoch;
        if steps > 0 {
            self.state.key = rekey(self.suite, &self.state.key, steps);
            self.aead = None;
            self.state.epoch = epoch;
            self.since = None;
        }
    }
}

/// What the key of a number's epoch has sealed after a message of `len` bytes with that number.
fn sealed_bytes(number: u64, before: u64, len: usize) -> u64 {
    let before = if number.is_multiple_of(EPOCH_MESSAGES) { 0 } else { before };
    before.saturating_add(len as u64)
}
