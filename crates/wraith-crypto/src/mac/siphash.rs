//! SipHash-2-4: a code for short messages and for hash tables, not for what must hold against who can try 2^64 times.

use std::fmt;

use super::{Algorithm, Mac, same};
use crate::Unauthentic;
use crate::kernels::siphash::{self, State};

/// A message being authenticated. The state is wiped when dropped.
///
/// Invariant: `pending` has `taken % 8` bytes, the lowest, that wait for their word to be full, and zeros.
#[derive(Clone)]
pub struct SipHash {
    state: State,
    pending: u64,
    taken: u64,
    wide: bool,
}

impl SipHash {
    /// Bytes of a key.
    pub const KEY_BYTES: usize = 16;

    /// The tag of a whole message, of 8 bytes: quicker than pieces for a short one.
    #[inline]
    #[must_use]
    pub fn tag_64(key: &[u8; Self::KEY_BYTES], message: &[u8]) -> [u8; 8] {
        siphash::digest(key, message, false)[0].to_le_bytes()
    }

    /// The tag of a whole message, of 16 bytes.
    #[inline]
    #[must_use]
    pub fn tag_128(key: &[u8; Self::KEY_BYTES], message: &[u8]) -> [u8; 16] {
        to_bytes(siphash::digest(key, message, true))
    }

    /// With a tag of 8 bytes.
    #[inline]
    #[must_use]
    pub fn new_64(key: &[u8; Self::KEY_BYTES]) -> Self {
        Self { state: State::new(key, false), pending: 0, taken: 0, wide: false }
    }

    /// With a tag of 16 bytes.
    #[inline]
    #[must_use]
    pub fn new_128(key: &[u8; Self::KEY_BYTES]) -> Self {
        Self { state: State::new(key, true), pending: 0, taken: 0, wide: true }
    }

    /// Takes in the next piece.
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
            self.state.absorb(self.pending);
            data = rest;
        }
        let (words, rest) = data.as_chunks();
        self.state.absorb_all(words);
        self.pending = siphash::last(data, rest);
    }

    /// The tag of everything taken in: [`Self::new_64`]'s has 8 bytes, the first.
    #[inline]
    #[must_use]
    pub fn finish(mut self) -> [u8; 16] {
        // The last word: what waits, zeros, and the length modulo 256.
        self.state.absorb(self.pending | self.taken << 56);
        to_bytes(self.state.finish(self.wide))
    }

    /// Whether `tag` is the tag of everything taken in, in time that does not depend on how much of it is right. A shorter one is not.
    ///
    /// # Errors
    /// It is not.
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

impl fmt::Debug for SipHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SipHash").field("wide", &self.wide).finish_non_exhaustive()
    }
}
