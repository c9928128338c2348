//! Poly1305 (RFC 8439, §2.5): a polynomial over whole blocks, modulo 2^130 - 5.
//!
//! Here is the portable way, one block after the other in four products of 64 bits by 64, each block waiting for the one before: about 14 cycles for 16
//! bytes. `ifma` takes eight blocks at once. What is here also makes the powers that `ifma` multiplies by, takes short texts, and is its twin in tests.

#[cfg(target_arch = "x86_64")]
pub(crate) mod ifma;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 16;

/// A number modulo 2^130 - 5, not the least one, in words of 64 bits: the third is 4 at most.
#[derive(Clone, Copy, Default, Zeroize)]
struct Element([u64; 3]);

/// What texts are multiplied by: below 2^124, with some bits that are 0. The last two of the second word are, so 2^128 times it is 5/4 of it.
#[derive(Clone, Copy, Default, Zeroize)]
struct Factor([u64; 2]);

impl Factor {
    /// Half a key with the bits of §2.5 taken out.
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
    /// The sum with 16 bytes and, times 2^128, what is behind them, 0 or 1. [`Self::times`] takes it, although its third word may be 6.
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
        // What is 2^130 and above: it counts five times.
        let above = (d2 & !3) + (d2 >> 2);
        let (sum, over) = words([d0 as u64, d1 as u64]).overflowing_add(u128::from(above));
        Self([sum as u64, (sum >> 64) as u64, (d2 & 3) + u64::from(over)])
    }

    /// The least number that it is, modulo 2^128.
    fn least(self) -> u128 {
        let Self([h0, h1, h2]) = self;
        let whole = words([h0, h1]);
        // It is below two primes. One is to be taken away if adding 5 reaches 2^130.
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
    /// Starts with a one-time key: r and s, its halves.
    #[inline(always)]
    pub(crate) fn new([r, s]: [u128; 2]) -> Self {
        Self { r: Factor::new(r), sum: Element::default(), s }
    }

    /// Takes in whole blocks, and what is behind the last one with zeros up to a whole one.
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

    /// The tag.
    pub(crate) fn finish(&self) -> [u8; BLOCK] {
        self.sum.least().wrapping_add(self.s).to_le_bytes()
    }

    /// The tag of a message of its own, whose last block may be short.
    #[cfg(test)]
    pub(crate) fn tag(key: &[u8; 32], message: &[u8]) -> [u8; BLOCK] {
        let mut this = Self::new(halves(key));
        let (blocks, rest) = message.as_chunks::<BLOCK>();
        this.absorb(blocks.as_flattened());
        if !rest.is_empty() {
            let mut last = [0; BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            last[rest.len()] = 1;
            this.block(&last, 0);
        }
        this.finish()
    }
}

/// The halves of a key.
#[cfg(test)]
fn halves(key: &[u8; 32]) -> [u128; 2] {
    [0, BLOCK].map(|at| u128::from_le_bytes(*key[at..].first_chunk().unwrap()))
}

/// The block behind the texts in ChaCha20-Poly1305 (RFC 8439, §2.8).
pub(crate) fn lengths(aad: usize, text: usize) -> [u8; BLOCK] {
    (aad as u128 | (text as u128) << 64).to_le_bytes()
}
