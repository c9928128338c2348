//! SipHash-2-4: a message authentication code for short messages, and a hash for hash tables. It
//! does not protect against an attacker with 2^64 attempts.

use zeroize::Zeroizing;

use super::siphash_rounds as siphash;
use super::{Algorithm, Mac, same};
use crate::Unauthentic;

/// SipHash over one message. The state is wiped when dropped.
///
/// Invariant: the lowest `taken % 8` bytes of `pending` are the start of an incomplete word; its
/// other bytes are zero.
#[derive(Clone)]
pub struct SipHash {
    state: Zeroizing<siphash::Words>,
    pending: u64,
    taken: u64,
    wide: bool,
}

impl SipHash {
    /// Length of a key in bytes.
    pub const KEY_BYTES: usize = 16;

    /// Returns the 8-byte tag of a whole message. For a short message, faster than the incremental
    /// methods.
    #[inline]
    #[must_use]
    pub fn tag_64(key: &[u8; Self::KEY_BYTES], message: &[u8]) -> [u8; 8] {
        siphash::digest(key, message, false)[0].to_le_bytes()
    }

    /// Returns the 16-byte tag of a whole message.
    #[inline]
    #[must_use]
    pub fn tag_128(key: &[u8; Self::KEY_BYTES], message: &[u8]) -> [u8; 16] {
        to_bytes(siphash::digest(key, message, true))
    }

    /// Starts a message with a tag of 8 bytes.
    #[inline]
    #[must_use]
    pub fn new_64(key: &[u8; Self::KEY_BYTES]) -> Self {
        Self::new(key, false)
    }

    /// Starts a message with a tag of 16 bytes.
    #[inline]
    #[must_use]
    pub fn new_128(key: &[u8; Self::KEY_BYTES]) -> Self {
        Self::new(key, true)
    }

    #[inline]
    fn new(key: &[u8; Self::KEY_BYTES], wide: bool) -> Self {
        Self { state: Zeroizing::new(siphash::start(key, wide)), pending: 0, taken: 0, wide }
    }

    /// Authenticates the next piece of the message.
    #[inline]
    pub fn update(&mut self, mut data: &[u8]) {
        let waiting = (self.taken % 8) as usize;
        self.taken = self.taken.wrapping_add(data.len() as u64);
        if waiting > 0 {
            let (head, rest) = data.split_at(data.len().min(8 - waiting));
            self.pending |= siphash::last(head, head) << (8 * waiting);
            if waiting + head.len() < 8 {
                return;
            }
            *self.state = siphash::with(*self.state, self.pending);
            data = rest;
        }
        let (words, rest) = data.as_chunks();
        *self.state = siphash::with_all(*self.state, words);
        self.pending = siphash::last(data, rest);
    }

    /// Returns the tag of the message. After [`Self::new_64`], only the first 8 bytes are the tag.
    #[inline]
    #[must_use]
    pub fn finish(self) -> [u8; 16] {
        // The last word: the incomplete word, zeros, and the length modulo 256.
        let words = siphash::with(*self.state, self.pending | self.taken << 56);
        to_bytes(siphash::tag(words, self.wide))
    }

    /// Verifies the tag of the message, in constant time. A truncated tag is rejected.
    ///
    /// # Errors
    /// [`Unauthentic`] if `tag` is wrong.
    pub fn verify(self, tag: &[u8]) -> Result<(), Unauthentic> {
        let bytes = self.algorithm().tag_bytes();
        same(&self.finish()[..bytes], tag)
    }
}

#[inline(always)]
fn to_bytes(halves: [u64; 2]) -> [u8; 16] {
    let mut bytes = [0; 16];
    for (bytes, half) in bytes.as_chunks_mut().0.iter_mut().zip(halves) {
        *bytes = half.to_le_bytes();
    }
    bytes
}

impl Mac for SipHash {
    fn algorithm(&self) -> Algorithm {
        if self.wide { Algorithm::SipHash128 } else { Algorithm::SipHash64 }
    }

    fn update(&mut self, data: &[u8]) {
        self.update(data);
    }

    fn finish_into(self: Box<Self>, out: &mut [u8]) {
        let bytes = self.algorithm().tag_bytes();
        out[..bytes].copy_from_slice(&(*self).finish()[..bytes]);
    }
}

wraith_crypto::redacted_debug!(SipHash, wide);
