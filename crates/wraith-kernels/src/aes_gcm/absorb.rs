//! GHASH on its own, for ciphers other than AES. Groups of 16 blocks are multiplied by descending
//! powers of the hash key and reduced together, with vectors of four blocks or of one.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::ghash::{
    BLOCK, GROUP_BLOCKS, GROUP_BYTES, HashKey, Powers, bytes, integer, reduce, reversal,
};
use super::vaes512::products::{Products, four};
use crate::detect::{Kernel, Purpose, needs};
use crate::ghash_portable;
use crate::self_test::Inputs;

pub(crate) static WIDE: Kernel =
    Kernel::new("GHASH", needs::GHASH_512, Purpose::Bulk, || self_test(true));
pub(crate) static NARROW: Kernel =
    Kernel::new("GHASH", needs::GHASH_128, Purpose::Bulk, || self_test(false));

fn self_test(wide: bool) -> bool {
    let mut inputs = Inputs::new();
    let (hash_key, text): (_, [u8; 600]) = (inputs.bytes(), inputs.bytes());
    let (ours, twin) = (GhashKey::expand(&hash_key, wide), u128::from_be_bytes(hash_key));
    [0, 1, 15, 16, 17, 255, 256, 257, 600].into_iter().all(|len| {
        let (hash, text) = (len as u128, &text[..len]);
        ours.absorb(hash, text) == ghash_portable::absorb(twin, hash, text)
    })
}

/// The powers of a hash key. Wiped when dropped.
///
/// Invariant: a key exists only on a processor that has the instructions: those of AVX-512 if
/// `wide`.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct GhashKey {
    powers: HashKey,
    #[zeroize(skip)]
    wide: bool,
}

impl GhashKey {
    /// Creates a key. Returns `None` unless the kernel may be used.
    pub(crate) fn new(hash_key: &[u8; BLOCK], wide: bool) -> Option<Self> {
        let kernel = if wide { &WIDE } else { &NARROW };
        kernel.is_available().then(|| Self::expand(hash_key, wide))
    }

    /// Creates a key on a processor that has the instructions.
    fn expand(hash_key: &[u8; BLOCK], wide: bool) -> Self {
        let mut powers = MaybeUninit::uninit();
        // SAFETY: the caller checked the instructions, and `fill` writes all powers.
        let powers = unsafe {
            let hash_key = _mm_loadu_si128(hash_key.as_ptr().cast());
            match wide {
                true => HashKey::fill_wide(&mut powers, hash_key),
                false => HashKey::fill(&mut powers, hash_key),
            }
            powers.assume_init()
        };
        Self { powers, wide }
    }

    /// Returns the hash after `text`, padded with zeros to a whole block.
    pub(crate) fn absorb(&self, hash: u128, text: &[u8]) -> u128 {
        // SAFETY: the invariant.
        unsafe {
            match self.wide {
                true => self.wide(hash, text),
                false => self.narrow(hash, text),
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx2,pclmulqdq,vpclmulqdq")]
    fn wide(&self, hash: u128, text: &[u8]) -> u128 {
        self.each(hash, text, |powers, hash, group| {
            let reverse = _mm512_broadcast_i32x4(reversal());
            let mut products = Products::new();
            for i in 0..GROUP_BLOCKS / 4 {
                // SAFETY: vector i of four.
                let blocks = unsafe { _mm512_loadu_si512(group.as_ptr().add(64 * i).cast()) };
                let mut elements = _mm512_shuffle_epi8(blocks, reverse);
                if i == 0 {
                    elements = _mm512_xor_si512(elements, _mm512_zextsi128_si512(hash));
                }
                products.add(elements, four(&powers, i));
            }
            products.reduce()
        })
    }

    #[target_feature(enable = "avx2,pclmulqdq")]
    fn narrow(&self, hash: u128, text: &[u8]) -> u128 {
        self.each(hash, text, |powers, hash, group| {
            let zero = _mm_setzero_si128();
            let (mut low, mut middle, mut high) = (zero, zero, zero);
            for i in 0..GROUP_BLOCKS {
                // SAFETY: block i of the group.
                let block = unsafe { _mm_loadu_si128(group.as_ptr().add(BLOCK * i).cast()) };
                let mut element = _mm_shuffle_epi8(block, reversal());
                if i == 0 {
                    element = _mm_xor_si128(element, hash);
                }
                let [power] = *powers.of_vector::<1>(i);
                low = _mm_xor_si128(low, _mm_clmulepi64_si128::<0x00>(element, power));
                high = _mm_xor_si128(high, _mm_clmulepi64_si128::<0x11>(element, power));
                middle = _mm_xor_si128(middle, _mm_clmulepi64_si128::<0x01>(element, power));
                middle = _mm_xor_si128(middle, _mm_clmulepi64_si128::<0x10>(element, power));
            }
            reduce(
                _mm_xor_si128(low, _mm_slli_si128::<8>(middle)),
                _mm_xor_si128(high, _mm_srli_si128::<8>(middle)),
            )
        })
    }

    /// Calls `step` for every group in turn. The last one is padded with zeros, which are
    /// multiplied by zero.
    #[target_feature(enable = "avx2,pclmulqdq")]
    #[inline]
    fn each(
        &self,
        hash: u128,
        text: &[u8],
        step: impl Fn(Powers<'_>, __m128i, &[u8; GROUP_BYTES]) -> __m128i,
    ) -> u128 {
        let mut hash = integer(hash.to_be_bytes());
        let (groups, rest) = text.as_chunks();
        for group in groups {
            hash = step(self.powers.powers_down_from(GROUP_BLOCKS), hash, group);
        }
        if !rest.is_empty() {
            let mut group = [0; GROUP_BYTES];
            group[..rest.len()].copy_from_slice(rest);
            hash = step(self.powers.powers_down_from(rest.len().div_ceil(BLOCK)), hash, &group);
        }
        u128::from_le_bytes(bytes(hash))
    }
}
