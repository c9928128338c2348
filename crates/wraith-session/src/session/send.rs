//! The sending direction: message numbers and key changes.
//!
//! Invariant: no number is used twice, even after a restart from a saved state. A saved state
//! treats all numbers below a limit as used. The session itself uses no number from `reserved` on
//! until it is saved again, so it stays below the limit of every saved state. A session that was
//! never saved has no such bound.

use std::time::Duration;

use wraith_crypto::{AeadKey, Suite};
use zeroize::Zeroizing;

use super::epoch::{EPOCH_MESSAGES, epoch_of, first_of, rekey};
use super::{RekeyLimits, SealError};

/// First number that is never used. The last number of all is the nonce of Noise's `REKEY`.
const NUMBERS_END: u64 = u64::MAX - 1;

/// The saved part of this direction.
#[derive(Clone)]
pub(crate) struct SendState {
    pub(crate) epoch: u64,
    pub(crate) key: Zeroizing<[u8; 32]>,
    /// Number of the next message.
    pub(crate) next: u64,
    /// First number that may not be used before the state is saved again.
    pub(crate) reserved: u64,
    /// Bytes sealed with the key of this epoch. If unknown, a value above every limit, so that the
    /// next message gets a new key.
    pub(crate) bytes: u64,
}

/// Why a message gets no number. Smaller than [`SealError`], because each message returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoNumber {
    NotSaved,
    Exhausted,
}

impl From<NoNumber> for SealError {
    fn from(why: NoNumber) -> Self {
        match why {
            NoNumber::NotSaved => Self::NotSaved,
            NoNumber::Exhausted => Self::Exhausted,
        }
    }
}

pub(crate) struct Sender {
    suite: Suite,
    pub(crate) state: SendState,
    /// The expanded key, unless the session is parked.
    aead: Option<AeadKey>,
    pub(crate) rekey: RekeyLimits,
    /// Time of the first sealed message of this epoch, if the caller sets the time.
    since: Option<Duration>,
    /// The last needed number that was not reserved.
    pub(crate) wanted: u64,
}

impl Sender {
    pub(crate) fn new(suite: Suite, state: SendState) -> Self {
        Self { suite, state, aead: None, rekey: RekeyLimits::default(), since: None, wanted: 0 }
    }

    pub(crate) fn key(&mut self) -> &AeadKey {
        self.aead.get_or_insert_with(|| AeadKey::new(self.suite, &self.state.key))
    }

    /// Releases all state that can be recomputed.
    pub(crate) fn park(&mut self) {
        self.aead = None;
    }

    /// Checks that messages of these lengths can get numbers, so that a batch is sealed whole or
    /// not at all. Otherwise returns the index of the first message without a number, and the
    /// reason.
    pub(super) fn check(
        &mut self,
        now: Option<Duration>,
        lens: impl Iterator<Item = usize>,
    ) -> Result<(), (usize, NoNumber)> {
        let (mut next, mut bytes) = self.next_number(now);
        for (index, len) in lens.enumerate() {
            let number = self.place(next, bytes, len);
            self.allow(number).map_err(|why| (index, why))?;
            bytes = sealed_bytes(number, bytes, len);
            next = number + 1;
        }
        Ok(())
    }

    /// Returns the number that a message of `len` bytes will get.
    pub(crate) fn peek(&self, now: Option<Duration>, len: usize) -> u64 {
        let (next, bytes) = self.next_number(now);
        self.place(next, bytes, len)
    }

    /// Assigns the next number to a message of `len` bytes and switches to its key.
    pub(super) fn take(&mut self, now: Option<Duration>, len: usize) -> Result<u64, NoNumber> {
        let (next, bytes) = self.next_number(now);
        let number = self.place(next, bytes, len);
        self.allow(number)?;
        self.enter(epoch_of(number));
        self.since = self.since.or(now);
        self.state.next = number + 1;
        self.state.bytes = sealed_bytes(number, bytes, len);
        Ok(number)
    }

    /// Returns the next number, and the bytes sealed in its epoch. Only the age of the key may
    /// start a new epoch here.
    fn next_number(&self, now: Option<Duration>) -> (u64, u64) {
        let aged = match (self.since, now) {
            // At least one millisecond, whatever the limit: messages of the same instant share a
            // key.
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

    /// Returns the number of a message of `len` bytes: `next`, or the first of the next epoch if
    /// this key has reached a limit.
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

    fn allow(&mut self, number: u64) -> Result<(), NoNumber> {
        if number >= NUMBERS_END {
            return Err(NoNumber::Exhausted);
        }
        if number >= self.state.reserved {
            self.wanted = number;
            return Err(NoNumber::NotSaved);
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

/// Returns the bytes sealed in an epoch after a message of `len` bytes with this number.
fn sealed_bytes(number: u64, before: u64, len: usize) -> u64 {
    let before = if number.is_multiple_of(EPOCH_MESSAGES) { 0 } else { before };
    before.saturating_add(len as u64)
}
