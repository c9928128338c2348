//! The keys of a direction over time: an epoch is a key and the numbers that belong to it.
//!
//! A number names its epoch: `number / 2^20`. Epoch 0 has the key of the handshake, and each further one the key that Noise's `REKEY` (revision
//! 34, §4.2) makes of the one before. So both sides change keys in step, whatever is lost on the way, and a sender who wants a new key early
//! just goes on with the first number of the next epoch.

use wraith_crypto::{AeadKey, Suite};
use wraith_noise::Window;
use wraith_noise::primitives::nonce;
use zeroize::{Zeroize, Zeroizing};

/// Numbers in an epoch, as a power of two.
const EPOCH_BITS: u32 = 20;
/// Messages that one key seals at most: far below where AES-GCM gives anything away.
pub const EPOCH_MESSAGES: u64 = 1 << EPOCH_BITS;
/// How far below the newest message of an epoch one may still arrive.
pub const SESSION_WINDOW: u64 = 2048;

/// The replay window of an epoch.
pub(crate) type SessionWindow = Window<{ SESSION_WINDOW as usize / 64 }>;

/// The epoch that a message's number belongs to.
pub(crate) const fn epoch_of(number: u64) -> u64 {
    number >> EPOCH_BITS
}

/// The first number of an epoch; beyond the last epoch there is none.
pub(crate) const fn first_of(epoch: u64) -> Option<u64> {
    epoch.checked_mul(EPOCH_MESSAGES)
}

/// The key of the epoch `steps` after the one of `key`.
pub(crate) fn rekey(suite: Suite, key: &[u8; 32], steps: u64) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new(*key);
    for _ in 0..steps {
        let mut next = Zeroizing::new([0; 32]);
        // The tag is not used: the new key is the ciphertext of 32 zeros.
        let mut tag = AeadKey::new(suite, &key).seal(nonce(suite, u64::MAX), &[], &mut *next);
        tag.zeroize();
        key = next;
    }
    key
}
