//! Poly1305 (RFC 8439, §2.5): a polynomial over whole blocks, modulo 2^130 - 5.
//!
//! Here is the portable way, one block after the other in products of 64 bits by 64: nine of them, each block waiting for the one before, 1 to 2 cycles per byte. `ifma` takes
//! eight blocks at once. What is here also makes the powers that `ifma` multiplies by, takes short texts, and is its twin in tests.
//!
//! An [`Element`] has limbs of 44, 44 and 42 bits. 2^132, the weight of a fourth limb, is 20 modulo the prime.

#[cfg(target_arch = "x86_64")]
pub(crate) mod ifma;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Bytes of a block.
pub(crate) const BLOCK: usize = 16;

const MASK_44: u64 = (1 << 44) - 1;
const MASK_42: u64 = (1 << 42) - 1;
/// 2^128 in the third limb: the bit behind a whole block.
const BEHIND: u64 = 1 << 40;

/// A number modulo 2^130 - 5, not the least one: the first limb is below 2^44, the third below 2^42, the second below 2^45.
#[derive(Clone, Copy, Default, Zeroize)]
pub(crate) struct Element([u64; 3]);

impl Element {
    /// The 128 bits of `bytes`.
    fn new(bytes: &[u8; BLOCK]) -> Self {
        let whole = u128::from_le_bytes(*bytes);
        Self([whole as u64 & MASK_44, (whole >> 44) as u64 & MASK_44, (whole >> 88) as u64])
    }

    /// The sum, whose limbs may have a bit more than those of an element. [`Self::times`] takes it as its left side.
    #[inline]
    fn plus(self, other: Self) -> Self {
        let (Self(a), Self(b)) = (self, other);
        Self([a[0] + b[0], a[1] + b[1], a[2] + b[2]])
    }

    #[inline]
    fn times(self, other: Self) -> Self {
        let [a0, a1, a2] = self.0.map(u128::from);
        let [b0, b1, b2] = other.0.map(u128::from);
        let (c1, c2) = (20 * b1, 20 * b2);
        Self::carried([
            a0 * b0 + a1 * c2 + a2 * c1,
            a0 * b1 + a1 * b0 + a2 * c2,
            a0 * b2 + a1 * b1 + a2 * b0,
        ])
    }

    /// The element of limbs below 2^98.
    #[inline]
    fn carried([d0, d1, d2]: [u128; 3]) -> Self {
        let d1 = d1 + u128::from((d0 >> 44) as u64);
        let d2 = d2 + u128::from((d1 >> 44) as u64);
        let d0 = (d0 as u64 & MASK_44) + 5 * (d2 >> 42) as u64;
        Self([d0 & MASK_44, (d1 as u64 & MASK_44) + (d0 >> 44), d2 as u64 & MASK_42])
    }

    /// The least number that it is, modulo 2^128.
    fn least(self) -> u128 {
        let Self([h0, h1, h2]) = self;
        let h2 = h2 + (h1 >> 44);
        let h1 = h1 & MASK_44;
        let h0 = h0 + 5 * (h2 >> 42);
        let h1 = h1 + (h0 >> 44);
        let h2 = (h2 & MASK_42) + (h1 >> 44);
        let (h0, h1) = (h0 & MASK_44, h1 & MASK_44);
        // At most one prime is left to take away: it is if adding 5 reaches 2^130.
        let over = (((h0 + 5) >> 44) + h1) >> 44;
        let taken = 5 * ((h2 + over) >> 42);
        let whole = u128::from(h0) | u128::from(h1) << 44 | u128::from(h2) << 88;
        whole.wrapping_add(u128::from(taken))
    }
}

/// The state of one message. Wiped when dropped.
#[derive(ZeroizeOnDrop)]
pub(crate) struct Poly1305 {
    r: Element,
    sum: Element,
    s: u128,
}

impl Poly1305 {
    /// Starts with a one-time key, r and s.
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        const CLAMP: u128 = 0x0fff_fffc_0fff_fffc_0fff_fffc_0fff_ffff;
        let [r, s] = [0, BLOCK].map(|at| {
            let half = key[at..].first_chunk().expect("two halves of 16 bytes");
            u128::from_le_bytes(*half)
        });
        let r = Element::new(&(r & CLAMP).to_le_bytes());
        Self { r, sum: Element::default(), s }
    }

    /// Takes in whole blocks, and what is behind the last one with zeros up to a whole one.
    pub(crate) fn absorb(&mut self, text: &[u8]) {
        let (blocks, rest) = text.as_chunks::<BLOCK>();
        for block in blocks {
            self.block(block, BEHIND);
        }
        if !rest.is_empty() {
            let mut last = [0; BLOCK];
            last[..rest.len()].copy_from_slice(rest);
            self.block(&last, BEHIND);
        }
    }

    #[inline]
    fn block(&mut self, block: &[u8; BLOCK], behind: u64) {
        let mut block = Element::new(block);
        block.0[2] += behind;
        self.sum = self.sum.plus(block).times(self.r);
    }

    /// The tag.
    pub(crate) fn finish(&self) -> [u8; BLOCK] {
        self.sum.least().wrapping_add(self.s).to_le_bytes()
    }

    /// The tag of a message of its own, whose last block may be short.
    #[cfg(test)]
    pub(crate) fn tag(key: &[u8; 32], message: &[u8]) -> [u8; BLOCK] {
        let mut this = Self::new(key);
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

/// The block behind the texts in ChaCha20-Poly1305 (RFC 8439, §2.8).
pub(crate) fn lengths(aad: usize, text: usize) -> [u8; BLOCK] {
    (aad as u128 | (text as u128) << 64).to_le_bytes()
}
