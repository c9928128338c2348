//! Encoding of a ratchet's state.
//!
//! The bytes hold secrets and have no checksum. The storage must encrypt them, detect damage, and
//! know which of two states is the later one.
//!
//! A **rollback** means that a side restores an older copy of its state and continues from it. The
//! random generator must not be rolled back with the state; use the operating system's.
//!
//! **Effects of a rollback:**
//! - When the rolled-back side sends, it uses message keys again that it had used between the copy
//!   and the rollback. This exposes no text: body keys and header nonces also depend on the 16
//!   random bytes of each message.
//! - The peer opens only one of two messages with the same number, and rejects the other as a
//!   replay.
//! - If the peer has answered a message that was sent after the copy was made, the two sides can no
//!   longer decrypt each other's messages. The conversation has to be restarted.
//! - When the rolled-back side receives, it opens replays of messages that it had opened between
//!   the copy and the rollback. Replay detection relies on used keys being deleted, and the
//!   rollback restores them.
//! - A thief of a copy can decrypt everything that the copied state could decrypt. So a message has
//!   forward secrecy only once the last copy that can decrypt it is deleted.

use wraith_crypto::{NodeId, Suite};
use zeroize::Zeroizing;

use super::chain::MessageChain;
use super::curve;
use super::double_ratchet::{Ratchet, ReceivingChain, SendingChain};
use super::hybrid::{Hybrid, KemPart};
use super::keys::HeaderKey;
use super::skipped::SkippedKeys;
use crate::codec::StateError;
use crate::codec::{InvalidEncoding, Reader, Writer};

const VERSION: u8 = 2;
/// Upper bound of the encoded state without skipped keys, including two ML-KEM keys and the initial
/// part.
const FIXED_BYTES: usize = 4096;

impl Ratchet {
    /// Encodes the state, secrets included, for [`Self::restore`]: at first about 600 bytes, and
    /// 1.4 KB after some turns. The state is longer while ML-KEM keys or skipped keys are held, but
    /// never longer than 170 KB. Save before a message is sent, and before acting on a
    /// received one.
    #[must_use]
    pub fn save(&self) -> Zeroizing<Vec<u8>> {
        let mut writer = Writer::with_capacity(FIXED_BYTES + self.skipped.saved_bytes());
        writer.u8(VERSION).u8(self.suite.to_wire());
        writer.bytes(self.me.as_bytes()).bytes(self.peer.as_bytes()).bytes(&self.binding);
        writer.bytes(&self.root[..]);
        writer.option(self.own.as_ref(), |writer, own| {
            writer.bytes(&own[..]);
        });
        writer.option(self.remote.as_ref(), |writer, remote| {
            writer.bytes(remote);
        });
        writer.option(self.sending.as_ref(), |writer, chain| {
            chain.keys.save(writer);
            writer.bytes(&chain.header.secret[..]);
        });
        writer.u32(self.previous_len).bytes(&self.next_sending_header[..]);
        writer.option(self.receiving.as_ref(), |writer, chain| {
            chain.keys.save(writer);
            writer.bytes(&chain.header.secret[..]);
        });
        writer.bytes(&self.next_receiving_header[..]);
        self.hybrid.save(&mut writer);
        writer.option(self.initial.as_ref(), |writer, initial| {
            writer.bytes(&initial[..]);
        });
        writer.bool(self.padding);
        self.skipped.save(&mut writer);
        writer.finish()
    }

    /// Decodes a state written by [`Self::save`].
    ///
    /// # Errors
    /// [`StateError`] if the bytes have another version or a wrong length, or hold an invalid
    /// value.
    pub fn restore(bytes: &[u8]) -> Result<Self, StateError> {
        let mut reader = Reader::new(bytes);
        reader.version(VERSION)?;
        let this = Self::read(&mut reader)?;
        reader.finish()?;
        if this.is_consistent() { Ok(this) } else { Err(StateError::Malformed) }
    }

    fn read(reader: &mut Reader) -> Result<Self, InvalidEncoding> {
        let suite = Suite::from_wire(reader.u8()?).ok_or(InvalidEncoding)?;
        let (me, peer) = (NodeId(reader.array()?), NodeId(reader.array()?));
        let (binding, root) = (reader.array()?, reader.secret()?);
        let own = reader.option(Reader::secret)?;
        let remote = reader.option(Reader::array)?;
        let sending = reader.option(|reader| {
            let keys = MessageChain::restore(reader)?;
            let header = HeaderKey::new(suite, reader.secret()?);
            let ratchet_key = curve::public_of(own.as_ref().ok_or(InvalidEncoding)?);
            Ok(SendingChain { keys, header, ratchet_key })
        })?;
        let (previous_len, next_sending_header) = (reader.u32()?, reader.secret()?);
        let receiving = reader.option(|reader| {
            let keys = MessageChain::restore(reader)?;
            Ok(ReceivingChain { keys, header: HeaderKey::new(suite, reader.secret()?) })
        })?;
        let next_receiving_header = reader.secret()?;
        let hybrid = Hybrid::restore(reader)?;
        let initial = reader.option(Reader::boxed)?;
        let padding = reader.bool()?;
        let skipped = SkippedKeys::restore(reader)?;
        Ok(Self {
            suite,
            me,
            peer,
            binding,
            root,
            own,
            remote,
            sending,
            previous_len,
            next_sending_header,
            receiving,
            next_receiving_header,
            skipped,
            hybrid,
            initial,
            padding,
            kept: None,
        })
    }

    /// Checks the invariants of every state:
    ///
    /// | state | own | remote | sending | receiving | initial |
    /// |---|---|---|---|---|---|
    /// | initiator, unanswered | yes | yes | yes | no | yes |
    /// | sending since the last turn | yes | yes | yes | yes | no |
    /// | received since the last turn | no | yes | no | yes | no |
    fn is_consistent(&self) -> bool {
        let begun = self.sending.is_some();
        let offers = matches!(self.hybrid.part, Some(KemPart::Key { .. }));
        self.me != self.peer
            && self.me.noise_public().is_ok()
            && self.peer.noise_public().is_ok()
            && self.own.is_some() == begun
            && self.remote.is_some()
            && (begun || self.receiving.is_some())
            && self.receiving.is_none() == self.initial.is_some()
            && (begun || self.hybrid.part.is_none())
            && (self.hybrid.offered.is_none() || !begun)
            && !(offers && self.receiving.is_none())
    }
}
