//! Key epochs of one direction: an epoch is a key and its range of message numbers.
//!
//! A number determines its epoch: `number / 2^20`. Epoch 0 has the key of the handshake. Each later
//! epoch has the key that Noise's `REKEY` (revision 34, §4.2) derives from the key of the previous
//! epoch. So both sides change keys with the same message, whichever messages are lost. To rekey
//! early, a sender skips to the first number of the next epoch.

use wraith_crypto::{AeadKey, Suite};
use wraith_noise::Window;
use wraith_noise::primitives::nonce;
use zeroize::{Zeroize, Zeroizing};

/// Numbers in an epoch, as a power of two.
const EPOCH_BITS: u32 = 20;
/// Maximum number of messages that one key seals: far below the usage limits of AES-GCM.
pub const EPOCH_MESSAGES: u64 = 1 << EPOCH_BITS;
/// Size of the replay window of an epoch, in messages behind the newest one.
pub const SESSION_WINDOW: u64 = 2048;

/// The replay window of an epoch.
pub(crate) type SessionWindow = Window<{ SESSION_WINDOW as usize / 64 }>;

/// Returns the epoch of a message number.
pub(crate) const fn epoch_of(number: u64) -> u64 {
    number >> EPOCH_BITS
}

/// Returns the first number of an epoch, or `None` beyond the last epoch.
pub(crate) const fn first_of(epoch: u64) -> Option<u64> {
    epoch.checked_mul(EPOCH_MESSAGES)
}

/// Derives the key of the epoch `steps` after that of `key`.
pub(crate) fn rekey(suite: Suite, key: &[u8; 32], steps: u64) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new(*key);
    for _ in 0..steps {
        let mut next = Zeroizing::new([0; 32]);
        // The new key is the ciphertext of 32 zeros; the tag is unused.
        let mut tag = AeadKey::new(suite, &key).seal(nonce(suite, u64::MAX), &[], &mut *next);
        tag.zeroize();
        key = next;
    }
    key
}
