//! Poly1305 (RFC 8439, §2.5): a polynomial over whole blocks, modulo 2^130 - 5.
//!
//! This file is the portable implementation: one block after another, in four products of 64 by 64
//! bits. Each block waits for the previous one, so 16 bytes take about 14 cycles. `ifma` absorbs
//! eight blocks at once. The portable code also computes the powers for `ifma`, handles short
//! texts, and is the reference of `ifma` in tests.

#[cfg(all(target_arch = "x86_64", feature = "simd"))]
pub(crate) mod ifma;
#[cfg(all(test, target_arch = "x86_64", feature = "simd"))]
mod tests;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Block size in bytes.
pub(crate) const BLOCK: usize = 16;

/// A number modulo 2^130 - 5, not necessarily the least, in words of 64 bits. The third word is at
/// most 4.
#[derive(Clone, Copy, Default, Zeroize)]
struct Element([u64; 3]);

/// The multiplier r: below 2^124, with some bits cleared. The last two bits of the second word are
/// zero, so 2^128 times that word is 5/4 of it.
#[derive(Clone, Copy, Default, Zeroize)]
struct Factor([u64; 2]);

impl Factor {
    /// Clamps half a key as §2.5 requires.
    #[inline(always)]
    fn new(half: u128) -> Self {
        let r = half & 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff;
        Self([r as u64, (r >> 64) as u64])
    }
}

impl From<Factor> for Element {
    #[inline(always)]
    fn from(Factor([r0, r1]): Factor) -> Self {
        Self([r0, r1, 0])
    }
}

impl Element {
    /// Adds 16 bytes and `behind` · 2^128, where `behind` is 0 or 1. The third word may become 6;
    /// [`Self::times`] accepts that.
    #[inline(always)]
    fn plus(self, block: &[u8; BLOCK], behind: u64) -> Self {
        let Self([h0, h1, h2]) = self;
        let (sum, over) = words([h0, h1]).overflowing_add(u128::from_le_bytes(*block));
        Self([sum as u64, (sum >> 64) as u64, h2 + behind + u64::from(over)])
    }

    #[inline(always)]
    fn times(self, factor: Factor) -> Self {
        let Self([h0, h1, h2]) = self;
        let Factor([r0, r1]) = factor;
        let wrapped = r1 + (r1 >> 2);
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        let d0 = product(h0, r0) + product(h1, wrapped);
        let d1 = product(h0, r1) + product(h1, r0) + u128::from(h2 * wrapped) + (d0 >> 64);
        let d2 = h2 * r0 + (d1 >> 64) as u64;
        // The part from 2^130 on, which counts five times.
        let above = (d2 & !3) + (d2 >> 2);
        let (sum, over) = words([d0 as u64, d1 as u64]).overflowing_add(u128::from(above));
        Self([sum as u64, (sum >> 64) as u64, (d2 & 3) + u64::from(over)])
    }

    /// Returns the least equivalent number, modulo 2^128.
    fn least(self) -> u128 {
        let Self([h0, h1, h2]) = self;
        let whole = words([h0, h1]);
        // The number is below two primes. One is subtracted if adding 5 reaches 2^130.
        let (_, over) = whole.overflowing_add(5);
        whole.wrapping_add(5 * u128::from((h2 + u64::from(over)) >> 2))
    }
}

#[inline(always)]
fn words([low, high]: [u64; 2]) -> u128 {
    u128::from(low) | u128::from(high) << 64
}

/// The state of one message. Wiped when dropped.
#[derive(ZeroizeOnDrop)]
pub(crate) struct Poly1305 {
    r: Factor,
    sum: Element,
    s: u128,
}

impl Poly1305 {
    /// Creates a state for a one-time key, of which r and s are the halves.
    #[inline(always)]
    pub(crate) fn new([r, s]: [u128; 2]) -> Self {
        Self { r: Factor::new(r), sum: Element::default(), s }
    }

    /// Absorbs whole blocks. Pads a partial last block with zeros.
    #[inline(always)]
    pub(crate) fn absorb(&mut self, text: &[u8]) {
        let (blocks, rest) = text.as_chunks::<BLOCK>();
        for block in blocks {
            self.block(block, 1);
        }
        if !rest.is_empty() {
            let mut last = [0; BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            self.block(&last, 1);
        }
    }

    #[inline(always)]
    fn block(&mut self, block: &[u8; BLOCK], behind: u64) {
        self.sum = self.sum.plus(block, behind).times(self.r);
    }

    /// Returns the tag.
    pub(crate) fn finish(&self) -> [u8; BLOCK] {
        self.sum.least().wrapping_add(self.s).to_le_bytes()
    }
}

/// Returns the tag of a message, of which the last block may be short, by the portable code.
#[must_use]
pub fn tag(key: &[u8; 32], message: &[u8]) -> [u8; BLOCK] {
    let mut state = Poly1305::new(halves(key));
    let (blocks, rest) = message.as_chunks::<BLOCK>();
    state.absorb(blocks.as_flattened());
    if !rest.is_empty() {
        let mut last = [0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        last[rest.len()] = 1;
        state.block(&last, 0);
    }
    state.finish()
}

/// Returns the halves of a key.
pub(crate) fn halves(key: &[u8; 32]) -> [u128; 2] {
    [0, BLOCK]
        .map(|at| u128::from_le_bytes(*key[at..].first_chunk().expect("two halves of 16 bytes")))
}

/// Returns the length block of ChaCha20-Poly1305, which follows the text (RFC 8439, §2.8).
pub(crate) fn lengths(aad: usize, text: usize) -> [u8; BLOCK] {
    (aad as u128 | (text as u128) << 64).to_le_bytes()
}
