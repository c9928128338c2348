//! AES-256-GCM (NIST SP 800-38D) for packets, with the 512-bit AES and carry-less multiplication instructions.
//!
//! A library's GCM takes about 100 ns per call besides the bytes (it is made for records of 16 KiB), as long as the bytes
//! of a packet themselves take. Here a call costs one pass: counters, rounds, GHASH and the tag's own block overlap in
//! the processor, and GHASH is reduced once for 16 blocks. The plaintext may come from elsewhere
//! ([`GcmKey::seal_from`]), so that cutting a stream into packets and encrypting it is one pass over memory, not two.
//!
//! Nothing here depends on secrets but values: no branch, no address.
//!
//! Invariant: a [`GcmKey`] exists only on a processor that has these instructions.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::aes::{ROUND_KEYS, RoundKeys};
use super::ghash::{
    BLOCK, GROUP, GROUP_BLOCKS, HashKey, Products, VECTOR, bytes, integer, multiply, reversal,
};
use super::vectors::{Pass, Text, counter_block};

/// An expanded key with the powers of its hash key. Wiped when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub(crate) struct GcmKey {
    hash: HashKey,
    rounds: [__m128i; ROUND_KEYS],
}

impl GcmKey {
    /// Expands a key. `None` if this processor lacks an instruction.
    pub(crate) fn new(key: &[u8; 32]) -> Option<Self> {
        let able = std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("vaes")
            && std::arch::is_x86_feature_detected!("vpclmulqdq")
            && std::arch::is_x86_feature_detected!("pclmulqdq")
            && std::arch::is_x86_feature_detected!("avx2");
        if !able {
            return None;
        }
        let keys = RoundKeys::new(key)?;
        let hash_key = keys.encrypt(&[0; BLOCK]);
        // SAFETY: the only requirement is that the processor has the instructions, which was checked.
        let hash = unsafe { HashKey::new(hash_key) };
        Some(Self { hash, rounds: *keys.schedule() })
    }

    /// Encrypts `in_out` in place and returns the tag over it and `aad`.
    #[inline]
    pub(crate) fn seal(&self, nonce: &[u8; 12], aad: &[u8], in_out: &mut [u8]) -> [u8; BLOCK] {
        let text = Text::in_place(in_out);
        // SAFETY: `self` exists, so the processor has the instructions; `text` is what its constructor promises.
        unsafe { crypt::<true>(self, nonce, aad, &text) }
    }

    /// Encrypts `out[..filled]` ‖ `source` into `out`, whose length is that of both, and returns the tag as
    /// [`Self::seal`] does.
    ///
    /// # Panics
    /// If the lengths do not fit.
    #[inline]
    pub(crate) fn seal_from(
        &self,
        nonce: &[u8; 12],
        aad: &[u8],
        out: &mut [u8],
        filled: usize,
        source: &[u8],
    ) -> [u8; BLOCK] {
        let text = Text::gathered(out, filled, source);
        // SAFETY: as in `seal`.
        unsafe { crypt::<true>(self, nonce, aad, &text) }
    }

    /// Decrypts `in_out` in place and returns the tag that it should have had. Nothing may be done with the plaintext
    /// before the tags were compared.
    #[inline]
    pub(crate) fn open(&self, nonce: &[u8; 12], aad: &[u8], in_out: &mut [u8]) -> [u8; BLOCK] {
        let text = Text::in_place(in_out);
        // SAFETY: as in `seal`.
        unsafe { crypt::<false>(self, nonce, aad, &text) }
    }
}

/// Encrypts or decrypts `text` and returns its tag.
///
/// # Safety
/// `text` must keep its invariant.
#[target_feature(enable = "avx512f,avx512bw,avx2,aes,vaes,pclmulqdq,vpclmulqdq")]
unsafe fn crypt<const SEAL: bool>(
    key: &GcmKey,
    nonce: &[u8; 12],
    aad: &[u8],
    text: &Text,
) -> [u8; BLOCK] {
    let tag_mask = encrypt_block(key, counter_block(nonce, 1));
    let first_power = key.hash.first_power();
    let mut hash = _mm_setzero_si128();
    for block in aad.chunks(BLOCK) {
        let mut padded = [0; BLOCK];
        padded[..block.len()].copy_from_slice(block);
        hash = multiply(_mm_xor_si128(hash, integer(padded)), first_power);
    }
    let mut pass = Pass::new(&key.rounds, nonce);
    let whole = key.hash.powers_down_from(GROUP_BLOCKS);
    let mut offset = 0;
    // Sealing, a group is hashed beside the rounds of the next, because its ciphertext must be there.
    let mut pending = None;
    while text.len - offset >= GROUP * VECTOR {
        let mut states = pass.group();
        let elements = if SEAL {
            pending.take()
        } else {
            // SAFETY: a whole group of the text begins at `offset`.
            Some(unsafe { pass.load(text, offset) })
        };
        if let Some(mut elements) = elements {
            let mut products = Products::new();
            add_to_first(&mut elements, hash);
            pass.rounds_beside(&mut states, &mut products, &elements, &whole);
            hash = products.reduce();
        } else {
            pass.rounds_alone(&mut states);
        }
        // SAFETY: as above.
        let after = unsafe { pass.finish(states, text, offset) };
        if SEAL {
            pending = Some(after);
        }
        offset += GROUP * VECTOR;
    }
    let lengths = u128::from(aad.len() as u64 * 8) << 64 | u128::from(text.len as u64 * 8);
    // SAFETY: less than a whole group is left at `offset`.
    let hash = unsafe { tail::<SEAL>(key, &mut pass, text, offset, pending, hash, lengths) };
    let tag = bytes(_mm_shuffle_epi8(hash, reversal()));
    (u128::from_le_bytes(tag) ^ u128::from_le_bytes(tag_mask)).to_le_bytes()
}

/// What is left after the last whole group, and the block of lengths, and sealing the hash of the `pending` whole group,
/// all reduced together; returns the last hash.
///
/// # Safety
/// The text ends less than [`GROUP`] vectors after `offset`.
#[target_feature(enable = "avx512f,avx512bw,avx2,vaes,pclmulqdq,vpclmulqdq")]
#[inline]
unsafe fn tail<const SEAL: bool>(
    key: &GcmKey,
    pass: &mut Pass<'_>,
    text: &Text,
    offset: usize,
    pending: Option<[__m512i; GROUP]>,
    hash: __m128i,
    lengths: u128,
) -> __m128i {
    let left = text.len - offset;
    let blocks = left.div_ceil(BLOCK);
    // The block of lengths comes after the tail's.
    let powers = key.hash.powers_down_from(blocks + 1);
    let masks = tail_masks(left);
    let mut states = pass.group();
    let mut products = Products::new();
    if SEAL {
        let mut hash = hash;
        if let Some(mut elements) = pending {
            add_to_first(&mut elements, hash);
            hash = _mm_setzero_si128();
            let powers = key.hash.powers_down_from(GROUP_BLOCKS + blocks + 1);
            pass.rounds_beside(&mut states, &mut products, &elements, &powers);
        } else {
            pass.rounds_alone(&mut states);
        }
        // SAFETY: the masks end with the text.
        let mut elements = unsafe { pass.finish_part(states, text, offset, &masks) };
        add_to_first(&mut elements, hash);
        for (i, elements) in elements.into_iter().enumerate() {
            products.add(elements, powers.vector(i));
        }
    } else {
        // SAFETY: the masks end with the text.
        unsafe {
            let mut elements = pass.load_part(text, offset, &masks);
            add_to_first(&mut elements, hash);
            pass.rounds_beside(&mut states, &mut products, &elements, &powers);
            pass.finish_part(states, text, offset, &masks);
        }
    }
    let lengths = _mm512_zextsi128_si512(integer(lengths.to_be_bytes()));
    products.add(lengths, key.hash.powers_down_from(1).vector(0));
    products.reduce()
}

/// Which bytes of each vector are among the first `left`.
#[inline]
fn tail_masks(left: usize) -> [u64; GROUP] {
    std::array::from_fn(|i| {
        let bytes = left.saturating_sub(i * VECTOR).min(VECTOR) as u32;
        u64::MAX.checked_shr(u64::BITS - bytes).unwrap_or(0)
    })
}

#[target_feature(enable = "avx512f")]
#[inline]
fn add_to_first(elements: &mut [__m512i; GROUP], hash: __m128i) {
    elements[0] = _mm512_xor_si512(elements[0], _mm512_zextsi128_si512(hash));
}

#[target_feature(enable = "aes,avx2")]
#[inline]
fn encrypt_block(key: &GcmKey, block: [u8; BLOCK]) -> [u8; BLOCK] {
    let block = u128::from_le_bytes(block);
    let mut state = _mm_set_epi64x((block >> 64) as i64, block as i64);
    state = _mm_xor_si128(state, key.rounds[0]);
    for round in &key.rounds[1..ROUND_KEYS - 1] {
        state = _mm_aesenc_si128(state, *round);
    }
    bytes(_mm_aesenclast_si128(state, key.rounds[ROUND_KEYS - 1]))
}
