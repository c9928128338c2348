//! AES-GCM with 512-bit vectors: VAES and VPCLMULQDQ with AVX-512.
//!
//! A group is four vectors of four blocks. The 32 registers hold a group's states, the ciphertext of the one before and most round keys, and masked
//! loads and stores take the last, incomplete group.
//!
//! On Zen 4 a group takes 85 cycles with a key of 256 bits. 60 are those of AES, one for each vector and round, and 18 those of the carry-less products:
//! they are made in one of the two places where AES is, two cycles each. What else there is takes places there from time to time.
#![allow(unsafe_code)]

mod pass;
pub(super) mod products;

use std::arch::x86_64::*;

use super::gcm::{GcmKey, lengths, tag};
use super::ghash::{BLOCK, GROUP_BLOCKS, GROUP_BYTES, HashKey, halves_added, integer, reversal};
use super::text::{Start, Text};
use pass::Pass;
use products::{Products, every, four, lanes, sum_of_lanes};

/// Bytes of a vector: four blocks.
const VECTOR: usize = 64;
/// Vectors of a group.
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
    // The sums of each place in the vectors: their own hashes, if each place goes on with the power that all of a group take it further.
    let mut hash = _mm512_zextsi128_si512(associated(&key.hash, aad));
    let mut pass = Pass::new(key.rounds.schedule(), start);
    let whole = key.hash.powers_down_from(GROUP_BLOCKS);
    let mut powers = lanes(&whole);
    let mut offset = 0;
    // Sealing, a group is hashed beside the rounds of the next, because its ciphertext must be there.
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
                // The last one: all places come together behind it.
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
        // SAFETY: as above.
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

/// The hash of the associated data, with which that of the text goes on.
#[target_feature(enable = "avx512f,avx512bw,avx2,pclmulqdq,vpclmulqdq")]
#[inline]
fn associated(key: &HashKey, aad: &[u8]) -> __m128i {
    // A block or two of a packet take less by themselves.
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

/// `hash`, and behind it that of whole groups.
#[target_feature(enable = "avx512f,avx512bw,avx2,pclmulqdq,vpclmulqdq")]
pub(super) fn hash(key: &HashKey, hash: __m128i, groups: &[[u8; GROUP_BYTES]]) -> __m128i {
    let whole = key.powers_down_from(GROUP_BLOCKS);
    let reverse = _mm512_broadcast_i32x4(reversal());
    let mut powers = lanes(&whole);
    let mut added = powers.map(|powers| halves_added(powers));
    let mut hash = _mm512_zextsi128_si512(hash);
    for (i, group) in groups.iter().enumerate() {
        if i + 1 == groups.len() {
            // All places come together behind the last.
            powers = every(&whole);
            added = powers.map(|powers| halves_added(powers));
        }
        let mut products = Products::new();
        let (vectors, _) = group.as_chunks::<VECTOR>();
        // The first vector comes last: it waits for the hash before it.
        for (i, vector) in vectors.iter().enumerate().rev() {
            // SAFETY: a vector can be read behind the reference.
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

/// What is left after the last whole group, and the block of lengths, reduced together, and sealing the hash of the `pending` whole group before; returns
/// the last hash. `hash` is that of each place if a group is pending, else of the first alone.
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
    // The block of lengths comes after the tail's.
    let powers = key.hash.powers_down_from(blocks + 1);
    // The hash so far goes with the first element that is not among the products.
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

/// Which bytes of each vector are among the first `left`.
#[inline]
fn tail_masks(left: usize) -> [u64; GROUP] {
    std::array::from_fn(|i| {
        let bytes = left.saturating_sub(i * VECTOR).min(VECTOR) as u32;
        u64::MAX.checked_shr(u64::BITS - bytes).unwrap_or(0)
    })
}
