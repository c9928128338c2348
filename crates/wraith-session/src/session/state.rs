//! Encoding of a session's state, so that a session can outlive its process.
//!
//! ```text
//!  version (1) ‖ suite (1) ‖ send: key (32) ‖ next (8)
//!    ‖ receive: epoch (8) ‖ key (32) ‖ next (8) ‖ window (256)  ‖  0, or 1 ‖ the same of the epoch before
//! ```
//!
//! Numbers are little-endian. The sending side's `next` is the first number that the running
//! session will not use, and `key` is the key of that number's epoch. A restored session begins
//! with the next epoch after it, because the number of bytes sealed with this key is unknown.

use wraith_crypto::Suite;
use zeroize::Zeroizing;

use super::Session;
use super::epoch::{SessionWindow, epoch_of, rekey};
use super::receive::{EpochState, ReceiveState, Verified};
use super::send::{SendState, Sender};
use crate::codec::{InvalidEncoding, Reader, StateError, Writer};
use crate::vault::VaultError;

/// Numbers that a saved state reserves for the running session. A restart skips at most this many,
/// and the peer's replay window holds four times as many.
pub const RESERVED_NUMBERS: u64 = 512;
const VERSION: u8 = 1;
const WINDOW_WORDS: usize = SessionWindow::NUMBERS as usize / 64;

/// An encoded session, with the reservation that [`Session::confirm`] activates.
pub struct SavedSession {
    pub(super) bytes: Zeroizing<Vec<u8>>,
    reserved: u64,
}

impl SavedSession {
    /// Returns the bytes to store, for [`Session::restore`]. They are as secret as the session, and
    /// about half a kilobyte.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::fmt::Debug for SavedSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Saved").finish_non_exhaustive()
    }
}

impl Session {
    /// Encodes the session. After the first call, this session uses at most [`RESERVED_NUMBERS`]
    /// further numbers before the next [`confirm`](Self::confirm); then it returns
    /// [`SealError::NotSaved`](super::SealError::NotSaved). A session restored from these bytes
    /// starts behind them.
    ///
    /// A message opened after a save opens again after a restore. To prevent replays, save after
    /// each opened message or batch, before acting on it. A session [kept](Self::keep) in a vault
    /// does so.
    #[must_use]
    pub fn save(&mut self) -> SavedSession {
        let Self { suite, send, receive, .. } = self;
        let reserved = send.reserve();
        SavedSession { bytes: encode(*suite, &send.state, reserved, &receive.state), reserved }
    }

    /// Stores the state after `verified` is accepted, without reserving more numbers. Without a
    /// vault, or without a message, does nothing.
    pub(super) fn store_opened<'a>(
        &mut self,
        verified: impl Iterator<Item = &'a Verified>,
    ) -> Result<(), VaultError> {
        let Self { suite, send, receive, kept, .. } = self;
        let (Some(kept), mut verified) = (kept, verified.peekable()) else { return Ok(()) };
        if verified.peek().is_none() {
            return Ok(());
        }
        let mut state = receive.state.clone();
        for each in verified {
            // A duplicate within the batch is accepted once, both here and later.
            let _ = state.accept(each);
        }
        let state = encode(*suite, &send.state, send.state.reserved, &state);
        kept.put(state, kept.durability)
    }

    /// Blocks sealing until a save is confirmed: a state that may have been stored marks all
    /// numbers as used.
    pub(crate) fn hold(&mut self) {
        self.send.state.reserved = self.send.state.next;
    }

    /// Makes the next [`save`](Self::save) reserve this many numbers in addition to the usual ones.
    pub(crate) fn want(&mut self, numbers: u64) {
        let Sender { state, wanted, .. } = &mut self.send;
        *wanted = state.next.max(*wanted).saturating_add(numbers);
    }

    /// Confirms that the bytes are stored and that a later restore finds nothing older. The numbers
    /// that they reserve may now be used.
    pub fn confirm(&mut self, saved: &SavedSession) {
        let state = &mut self.send.state;
        if state.reserved < saved.reserved {
            state.reserved = saved.reserved;
        }
    }

    /// Decodes a session. It seals nothing before it is saved and confirmed. If two processes
    /// restore the same bytes, each detects by its store whether it is the only one.
    ///
    /// # Errors
    /// [`StateError`] if the bytes have another version or are damaged.
    pub fn restore(bytes: &[u8]) -> Result<Self, StateError> {
        let mut reader = Reader::new(bytes);
        reader.version(VERSION)?;
        let session = decode(&mut reader)?;
        reader.finish()?;
        Ok(session)
    }
}

impl Sender {
    /// Returns the first number that is not reserved if the state is saved now.
    fn reserve(&mut self) -> u64 {
        let wanted = self.state.next.max(std::mem::take(&mut self.wanted));
        let kept = self.state.reserved;
        let reserved = match kept.saturating_sub(wanted) {
            left if kept != u64::MAX && left > RESERVED_NUMBERS / 2 => kept,
            _ => wanted.saturating_add(RESERVED_NUMBERS).min(u64::MAX - 1),
        };
        // From now on a saved state exists, whether or not it is stored.
        self.state.reserved = kept.min(reserved);
        reserved
    }
}

fn encode(
    suite: Suite,
    send: &SendState,
    reserved: u64,
    receive: &ReceiveState,
) -> Zeroizing<Vec<u8>> {
    let mut writer = Writer::with_capacity(704);
    let steps = epoch_of(reserved).saturating_sub(send.epoch);
    writer.u8(VERSION).u8(suite.to_wire());
    writer.bytes(&*rekey(suite, &send.key, steps)).u64(reserved);
    encode_epoch(&mut writer, &receive.current);
    writer.option(receive.previous.as_deref(), encode_epoch);
    writer.finish()
}

fn encode_epoch(writer: &mut Writer, state: &EpochState) {
    writer.u64(state.epoch).bytes(&*state.key).u64(state.window.next());
    for word in state.window.bits() {
        writer.u64(*word);
    }
}

fn decode(reader: &mut Reader<'_>) -> Result<Session, InvalidEncoding> {
    let suite = Suite::from_wire(reader.u8()?).ok_or(InvalidEncoding)?;
    let (key, next) = (reader.secret()?, reader.u64()?);
    let send = SendState { epoch: epoch_of(next), key, next, reserved: next, bytes: u64::MAX };
    let current = decode_epoch(reader)?;
    let previous = reader.option(decode_epoch)?.map(Box::new);
    match previous.as_ref().is_none_or(|previous| previous.epoch < current.epoch) {
        true => Ok(Session::with(suite, send, ReceiveState { current, previous })),
        false => Err(InvalidEncoding),
    }
}

fn decode_epoch(reader: &mut Reader<'_>) -> Result<EpochState, InvalidEncoding> {
    let (epoch, key, next) = (reader.u64()?, reader.secret()?, reader.u64()?);
    let mut bits = [0; WINDOW_WORDS];
    for word in &mut bits {
        *word = reader.u64()?;
    }
    // A window belongs to its epoch, or is empty.
    let is_of_it = match next.checked_sub(1) {
        Some(last) => epoch_of(last) == epoch,
        None => epoch <= epoch_of(u64::MAX),
    };
    match is_of_it {
        true => Ok(EpochState { epoch, key, window: SessionWindow::from_parts(next, bits) }),
        false => Err(InvalidEncoding),
    }
}
