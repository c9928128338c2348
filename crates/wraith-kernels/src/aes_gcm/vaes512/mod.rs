//! AES-GCM with 512-bit vectors: VAES and VPCLMULQDQ with AVX-512.
//!
//! A group is four vectors of four blocks. The 32 registers hold the states of a group, the
//! ciphertext of the previous one and most round keys. Masked loads and stores handle the last,
//! incomplete group.
//!
//! On Zen 4 a group takes 85 cycles with a key of 256 bits. 60 of these cycles are for the AES
//! rounds, one for each vector and round. 18 are for the carry-less products, which need one of the
//! two execution units of AES for two cycles each. Other instructions occasionally use these units
//! too.
#![allow(unsafe_code)]

mod pass;
pub(super) mod products;

use std::arch::x86_64::*;

use super::ghash::{BLOCK, GROUP_BLOCKS, GROUP_BYTES, HashKey, halves_added, integer, reversal};
use super::key::{GcmKey, lengths, tag};
use super::text::{Start, Text};
use pass::Pass;
use products::{Products, every, four, lanes, sum_of_lanes};

/// Size of a vector in bytes: four blocks.
const VECTOR: usize = 64;
/// Number of vectors in a group.
const GROUP: usize = GROUP_BYTES / VECTOR;

/// Encrypts or decrypts `text` and returns its tag.
///
/// # Safety
/// `text` must keep its invariant.
#[target_feature(enable = "avx512f,avx512bw,avx2,aes,vaes,pclmulqdq,vpclmulqdq")]
pub(super) unsafe fn crypt<const SEAL: bool, const KEYS: usize>(
    key: &GcmKey<KEYS>,
    start: Start,
    aad: &[u8],
    text: &Text,
) -> [u8; BLOCK] {
    let tag_mask = key.tag_mask(start);
    // Each lane of the vectors has its own hash, as long as each lane continues with the power that
    // advances it by a whole group.
    let mut hash = _mm512_zextsi128_si512(associated(&key.hash, aad));
    let mut pass = Pass::new(key.rounds.schedule(), start);
    let whole = key.hash.powers_down_from(GROUP_BLOCKS);
    let mut powers = lanes(&whole);
    let mut offset = 0;
    // When sealing, a group is hashed beside the rounds of the next one, because its ciphertext
    // must exist first.
    let mut pending = None;
    if text.len >= GROUP_BYTES {
        pass.hold();
    }
    while text.len - offset >= GROUP_BYTES {
        let mut states = pass.group::<true>();
        let elements = if SEAL {
            pending.take()
        } else {
            if text.len - offset < 2 * GROUP_BYTES {
                // The last whole group: afterwards the lanes are added.
                powers = every(&whole);
            }
            // SAFETY: a whole group of the text begins at `offset`.
            Some(unsafe { pass.load(text, offset) })
        };
        if let Some(mut elements) = elements {
            let mut products = Products::new();
            elements[0] = _mm512_xor_si512(elements[0], hash);
            pass.rounds_beside::<SEAL, true>(&mut states, &mut products, &elements, &powers);
            hash = products.reduce_lanes();
        } else {
            pass.rounds_alone::<true>(&mut states);
        }
        // SAFETY: a whole group of the text begins at `offset`.
        let after = unsafe { pass.finish(states, text, offset) };
        if SEAL {
            pending = Some(after);
        }
        offset += GROUP_BYTES;
    }
    if !SEAL {
        hash = _mm512_zextsi128_si512(sum_of_lanes(hash));
    }
    let lengths = lengths(aad, text);
    // SAFETY: less than a whole group is left at `offset`.
    let hash = unsafe { tail::<SEAL, KEYS>(key, &mut pass, text, offset, pending, hash, lengths) };
    tag(hash, tag_mask)
}

/// Returns the hash of the associated data, from which the hash of the text continues.
#[target_feature(enable = "avx512f,avx512bw,avx2,pclmulqdq,vpclmulqdq")]
#[inline]
fn associated(key: &HashKey, aad: &[u8]) -> __m128i {
    // The one or two blocks of a packet are faster block by block.
    if aad.len() < VECTOR {
        return key.of_associated(aad);
    }
    let reverse = _mm512_broadcast_i32x4(reversal());
    let mut hash = _mm_setzero_si128();
    for group in aad.chunks(GROUP_BYTES) {
        let powers = key.powers_down_from(group.len().div_ceil(BLOCK));
        let mut products = Products::new();
        for (i, vector) in group.chunks(VECTOR).enumerate() {
            let mask = u64::MAX >> (VECTOR - vector.len());
            // SAFETY: the mask ends with the vector.
            let blocks = unsafe { _mm512_maskz_loadu_epi8(mask, vector.as_ptr().cast()) };
            let mut elements = _mm512_shuffle_epi8(blocks, reverse);
            if i == 0 {
                elements = _mm512_xor_si512(elements, _mm512_zextsi128_si512(hash));
            }
            products.add(elements, four(&powers, i));
        }
        hash = products.reduce();
    }
    hash
}

/// Continues `hash` with whole groups.
#[target_feature(enable = "avx512f,avx512bw,avx2,pclmulqdq,vpclmulqdq")]
pub(super) fn hash(key: &HashKey, hash: __m128i, groups: &[[u8; GROUP_BYTES]]) -> __m128i {
    let whole = key.powers_down_from(GROUP_BLOCKS);
    let reverse = _mm512_broadcast_i32x4(reversal());
    let mut powers = lanes(&whole);
    let mut added = powers.map(|powers| halves_added(powers));
    let mut hash = _mm512_zextsi128_si512(hash);
    for (i, group) in groups.iter().enumerate() {
        if i + 1 == groups.len() {
            // After the last group the lanes are added.
            powers = every(&whole);
            added = powers.map(|powers| halves_added(powers));
        }
        let mut products = Products::new();
        let (vectors, _) = group.as_chunks::<VECTOR>();
        // The first vector comes last, because it waits for the previous hash.
        for (i, vector) in vectors.iter().enumerate().rev() {
            // SAFETY: the reference covers a whole readable vector.
            let vector = unsafe { _mm512_loadu_si512(vector.as_ptr().cast()) };
            let mut elements = _mm512_shuffle_epi8(vector, reverse);
            if i == 0 {
                elements = _mm512_xor_si512(elements, hash);
            }
            products.add_by_three(elements, powers[i], added[i]);
        }
        products.complete();
        hash = products.reduce_lanes();
    }
    sum_of_lanes(hash)
}

/// Processes the rest after the last whole group, and returns the final hash.
///
/// The rest and the block of lengths are reduced together. When sealing, it also hashes the
/// `pending` whole group. If a group is pending, `hash` holds the hash of each lane, else only that
/// of the first.
///
/// # Safety
/// The text ends less than [`GROUP`] vectors after `offset`.
#[target_feature(enable = "avx512f,avx512bw,avx2,vaes,pclmulqdq,vpclmulqdq")]
#[inline]
unsafe fn tail<const SEAL: bool, const KEYS: usize>(
    key: &GcmKey<KEYS>,
    pass: &mut Pass<'_, KEYS>,
    text: &Text,
    offset: usize,
    pending: Option<[__m512i; GROUP]>,
    mut hash: __m512i,
    lengths: u128,
) -> __m128i {
    pass.forget();
    let left = text.len - offset;
    let blocks = left.div_ceil(BLOCK);
    let mut products = Products::new();
    let masks = tail_masks(left);
    // The block of lengths follows the blocks of the tail.
    let powers = key.hash.powers_down_from(blocks + 1);
    // The hash so far is added to the first element that has no product yet.
    if let (true, Some(mut elements)) = (SEAL, pending) {
        elements[0] = _mm512_xor_si512(elements[0], hash);
        hash = _mm512_setzero_si512();
        if left == 0 {
            products.add_group(&elements, &every(&key.hash.powers_down_from(GROUP_BLOCKS + 1)));
        } else {
            let mut states = pass.group::<false>();
            // Its reduction takes less time than the rounds.
            let mut group = Products::new();
            let whole = every(&key.hash.powers_down_from(GROUP_BLOCKS));
            pass.rounds_beside::<SEAL, false>(&mut states, &mut group, &elements, &whole);
            let before = _mm512_zextsi128_si512(group.reduce());
            // SAFETY: the masks end with the text.
            let mut elements = unsafe { pass.finish_part(states, text, offset, &masks) };
            elements[0] = _mm512_xor_si512(elements[0], before);
            products.add_group(&elements, &every(&powers));
        }
    } else if left > 0 {
        let mut states = pass.group::<false>();
        // SAFETY: the masks end with the text.
        unsafe {
            if SEAL {
                pass.rounds_alone::<false>(&mut states);
                let mut elements = pass.finish_part(states, text, offset, &masks);
                elements[0] = _mm512_xor_si512(elements[0], hash);
                products.add_group(&elements, &every(&powers));
            } else {
                let mut elements = pass.load_part(text, offset, &masks);
                elements[0] = _mm512_xor_si512(elements[0], hash);
                let powers = every(&powers);
                pass.rounds_beside::<SEAL, false>(&mut states, &mut products, &elements, &powers);
                pass.finish_part(states, text, offset, &masks);
            }
        }
        hash = _mm512_setzero_si512();
    }
    let lengths = _mm512_zextsi128_si512(integer(lengths.to_be_bytes()));
    let last = four(&key.hash.powers_down_from(1), 0);
    products.add(_mm512_xor_si512(lengths, hash), last);
    products.reduce()
}

/// Returns masks of the bytes of each vector that are among the first `left`.
#[inline]
fn tail_masks(left: usize) -> [u64; GROUP] {
    std::array::from_fn(|i| {
        let bytes = left.saturating_sub(i * VECTOR).min(VECTOR) as u32;
        u64::MAX.checked_shr(u64::BITS - bytes).unwrap_or(0)
    })
}
