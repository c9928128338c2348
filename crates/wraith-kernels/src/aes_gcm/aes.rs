//! AES (FIPS 197) encryption of single blocks with the AES instructions of x86-64.
//!
//! Invariant: a [`RoundKeys`] exists only on a processor that has these instructions.
#![allow(unsafe_code)]

use std::arch::x86_64::{
    __m128i, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_cvtsi128_si64, _mm_set_epi64x,
    _mm_setzero_si128, _mm_unpackhi_epi64, _mm_xor_si128,
};
use std::mem::{self, MaybeUninit};

use aes::Aes256Enc;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use zeroize::{Zeroize, ZeroizeOnDrop, optimization_barrier};

use crate::aes_expand::expand_with;
use crate::detect::{Kernel, Purpose, needs};
use crate::self_test::Inputs;

pub(crate) static AES_BLOCK: Kernel =
    Kernel::new("blocks of AES", needs::AES_BLOCK, Purpose::Bulk, || {
        let mut inputs = Inputs::new();
        let (key, other): ([u8; 32], [u8; 32]) = (inputs.bytes(), inputs.bytes());
        let block = inputs.bytes();
        let [a, b] = [key, other].map(|key| RoundKeys::<KEYS_256>::expanded(&key));
        let expected = [key, other].map(|key| {
            let mut block = Array::from(block);
            Aes256Enc::new(&key.into()).encrypt_block(&mut block);
            <[u8; 16]>::from(block)
        });
        RoundKeys::encrypt_pair(&a, &b, &block) == expected.into()
            && a.encrypt(&block) == expected[0]
    });

/// Number of round keys of AES-256: 14 rounds and the initial one. AES-192 and AES-128 have two and
/// four fewer.
const KEYS_256: usize = 15;

/// The expanded key. Wiped when dropped.
#[derive(Clone)]
pub struct RoundKeys<const KEYS: usize = KEYS_256>([__m128i; KEYS]);

impl<const KEYS: usize> Zeroize for RoundKeys<KEYS> {
    fn zeroize(&mut self) {
        // SAFETY: all zeros are a valid vector.
        self.0 = unsafe { mem::zeroed() };
        optimization_barrier(self);
    }
}

impl<const KEYS: usize> Drop for RoundKeys<KEYS> {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl<const KEYS: usize> ZeroizeOnDrop for RoundKeys<KEYS> {}

impl<const KEYS: usize> RoundKeys<KEYS> {
    /// Expands a key of 4 · `KEYS` - 28 bytes. Returns `None` if the key has another length, or
    /// this processor has no AES instructions.
    pub fn new(key: &[u8]) -> Option<Self> {
        (Self::fits(key) && AES_BLOCK.is_available()).then(|| Self::expanded(key))
    }

    /// Expands a key that [fits](Self::fits), on a processor that has the instructions.
    fn expanded(key: &[u8]) -> Self {
        let mut place = MaybeUninit::uninit();
        // SAFETY: the instructions and the key length were checked; `expand` writes all keys.
        unsafe {
            Self::expand(&mut place, key);
            place.assume_init()
        }
    }

    /// Returns whether a key has the length for `KEYS` round keys.
    #[inline]
    pub(super) const fn fits(key: &[u8]) -> bool {
        matches!(KEYS, 11 | 13 | 15) && key.len() + 28 == 4 * KEYS
    }

    /// Expands a key that [fits](Self::fits) into `place`. Returns the encrypted block of zeros,
    /// which takes hardly any extra time.
    #[target_feature(enable = "aes,ssse3")]
    #[inline]
    pub(super) fn expand(place: &mut MaybeUninit<Self>, key: &[u8]) -> __m128i {
        assert!(Self::fits(key), "the caller checked the key length");
        let keys = place.as_mut_ptr().cast::<__m128i>();
        let mut state = _mm_setzero_si128();
        expand_with(key, |round, key| {
            // SAFETY: a key of this length has `KEYS` round keys, so `round` is below `KEYS`.
            unsafe { keys.add(round).write(key) };
            state = match round {
                0 => key,
                _ if round == KEYS - 1 => _mm_aesenclast_si128(state, key),
                _ => _mm_aesenc_si128(state, key),
            };
        });
        state
    }

    /// Returns the keys in the order of the rounds.
    pub(super) fn schedule(&self) -> &[__m128i; KEYS] {
        &self.0
    }

    /// Encrypts one block.
    #[inline]
    pub fn encrypt(&self, block: &[u8; 16]) -> [u8; 16] {
        // SAFETY: `self` exists, so the processor has the instructions.
        unsafe { encrypt(&self.0, block) }
    }

    /// Encrypts one block under two keys, whose rounds do not wait for each other.
    #[inline]
    pub fn encrypt_pair(a: &Self, b: &Self, block: &[u8; 16]) -> ([u8; 16], [u8; 16]) {
        // SAFETY: `a` exists, so the processor has the instructions.
        unsafe { encrypt_pair(&a.0, &b.0, block) }
    }
}

#[target_feature(enable = "aes")]
fn encrypt<const KEYS: usize>(keys: &[__m128i; KEYS], block: &[u8; 16]) -> [u8; 16] {
    let mut state = _mm_xor_si128(load(block), keys[0]);
    for key in &keys[1..KEYS - 1] {
        state = _mm_aesenc_si128(state, *key);
    }
    store(_mm_aesenclast_si128(state, keys[KEYS - 1]))
}

#[target_feature(enable = "aes")]
fn encrypt_pair<const KEYS: usize>(
    a: &[__m128i; KEYS],
    b: &[__m128i; KEYS],
    block: &[u8; 16],
) -> ([u8; 16], [u8; 16]) {
    let block = load(block);
    let (mut state_a, mut state_b) = (_mm_xor_si128(block, a[0]), _mm_xor_si128(block, b[0]));
    for i in 1..KEYS - 1 {
        state_a = _mm_aesenc_si128(state_a, a[i]);
        state_b = _mm_aesenc_si128(state_b, b[i]);
    }
    let last = KEYS - 1;
    (store(_mm_aesenclast_si128(state_a, a[last])), store(_mm_aesenclast_si128(state_b, b[last])))
}

#[target_feature(enable = "aes")]
#[inline]
fn load(block: &[u8; 16]) -> __m128i {
    let block = u128::from_le_bytes(*block);
    _mm_set_epi64x((block >> 64) as i64, block as i64)
}

#[target_feature(enable = "aes")]
#[inline]
fn store(block: __m128i) -> [u8; 16] {
    let low = _mm_cvtsi128_si64(block) as u64;
    let high = _mm_cvtsi128_si64(_mm_unpackhi_epi64(block, block)) as u64;
    (u128::from(high) << 64 | u128::from(low)).to_le_bytes()
}
