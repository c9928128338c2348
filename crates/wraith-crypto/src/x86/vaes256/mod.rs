//! AES-GCM with 256-bit vectors: VAES and VPCLMULQDQ without AVX-512, which is what most desktop processors have.
//!
//! The method is the one of [`super::gcm`]; that the round instructions are worth it at this width already is Drucker, Gueron
//! and Krasnov, "Making AES Great Again: The Forthcoming Vectorized AES Instruction" (2018). A group is eight vectors of
//! two blocks. Of 16 registers its states take eight and the products three, so ciphertext is read from memory again where
//! it is hashed; where the text ends within a vector, it is moved by overlapping words, for there are no masked bytes.
#![allow(unsafe_code)]

mod part;
mod pass;
mod products;

use std::arch::x86_64::*;

use super::gcm::{GcmKey, lengths, tag};
use super::ghash::{BLOCK, GROUP_BLOCKS, GROUP_BYTES, HashKey, integer, reversal};
use super::text::{Start, Text};
use part::Part;
use pass::Pass;
use products::{Products, two};

/// Bytes of a vector: two blocks.
const VECTOR: usize = 32;
/// Vectors of a group.
const GROUP: usize = GROUP_BYTES / VECTOR;

/// Encrypts or decrypts `text` and returns its tag.
///
/// # Safety
/// `text` must keep its invariant.
#[target_feature(enable = "avx2,aes,vaes,pclmulqdq,vpclmulqdq")]
pub(super) unsafe fn crypt<const SEAL: bool, const KEYS: usize>(
    key: &GcmKey<KEYS>,
    start: Start,
    aad: &[u8],
    text: &Text,
) -> [u8; BLOCK] {
    let tag_mask = key.tag_mask(start);
    let mut hash = key.hash.of_associated(aad);
    let mut pass = Pass::new(key.rounds.schedule(), start);
    let whole = key.hash.powers_down_from(GROUP_BLOCKS);
    let mut offset = 0;
    while text.len - offset >= GROUP_BYTES {
        let mut states = pass.group();
        // Opening, a group is hashed beside its own rounds; sealing, beside the rounds of the next, because its ciphertext
        // must be there.
        if SEAL && offset == 0 {
            pass.rounds_alone(&mut states);
        } else {
            let at = if SEAL { text.to(offset - GROUP_BYTES) } else { text.from(offset) };
            let mut products = Products::new();
            // SAFETY: a whole group of ciphertext lies there: the one that was written last, or this one of the text.
            unsafe {
                pass.rounds_beside::<SEAL, true>(&mut states, &mut products, at, hash, &whole)
            };
            hash = products.reduce();
        }
        // SAFETY: a whole group of the text begins at `offset`.
        unsafe { pass.finish(states, text.from(offset), text.to(offset)) };
        offset += GROUP_BYTES;
    }
    let lengths = lengths(aad, text);
    // SAFETY: less than a whole group is left at `offset`.
    let hash = unsafe { tail::<SEAL, KEYS>(key, &mut pass, text, offset, hash, lengths) };
    tag(hash, tag_mask)
}

/// `hash`, and behind it that of whole groups.
#[target_feature(enable = "avx2,pclmulqdq,vpclmulqdq")]
pub(super) fn hash(key: &HashKey, mut hash: __m128i, groups: &[[u8; GROUP_BYTES]]) -> __m128i {
    let powers = key.powers_down_from(GROUP_BLOCKS);
    let reverse = _mm256_broadcastsi128_si256(reversal());
    for group in groups {
        let mut products = Products::new();
        // The first vector comes last: it waits for the hash before it.
        for (i, vector) in group.as_chunks::<VECTOR>().0.iter().enumerate().rev() {
            // SAFETY: a vector can be read behind the reference.
            let vector = unsafe { _mm256_loadu_si256(vector.as_ptr().cast()) };
            let mut elements = _mm256_shuffle_epi8(vector, reverse);
            if i == 0 {
                elements = _mm256_xor_si256(elements, _mm256_zextsi128_si256(hash));
            }
            products.add(elements, two(&powers, i));
        }
        hash = products.reduce();
    }
    hash
}

/// What is left after the last whole group, and the block of lengths, reduced together, and sealing the hash of the last whole group before; returns the
/// last hash.
///
/// # Safety
/// The text ends less than a group after `offset`.
#[target_feature(enable = "avx2,vaes,pclmulqdq,vpclmulqdq")]
#[inline]
unsafe fn tail<const SEAL: bool, const KEYS: usize>(
    key: &GcmKey<KEYS>,
    pass: &mut Pass<'_, KEYS>,
    text: &Text,
    offset: usize,
    hash: __m128i,
    lengths: u128,
) -> __m128i {
    let left = text.len - offset;
    let blocks = left.div_ceil(BLOCK);
    // The block of lengths comes after the tail's.
    let powers = key.hash.powers_down_from(blocks + 1);
    let mut states = pass.group();
    let mut products = Products::new();
    // SAFETY: `left` bytes of the text may be read and written at `offset`, and a group before it if there is one.
    unsafe {
        let mut part = Part::load::<SEAL>(text.from(offset), left);
        if SEAL {
            let mut hash = hash;
            if offset == 0 {
                pass.rounds_alone(&mut states);
            } else {
                let mut group = Products::new();
                let whole = key.hash.powers_down_from(GROUP_BLOCKS);
                let at = text.to(offset - GROUP_BYTES);
                pass.rounds_beside::<SEAL, false>(&mut states, &mut group, at, hash, &whole);
                hash = group.reduce();
            }
            pass.finish(states, part.start(), part.start_mut());
            part.store::<SEAL>(text.to(offset), left);
            pass.hash(&mut products, &part, hash, &powers, left.div_ceil(VECTOR));
        } else {
            pass.rounds_beside::<SEAL, false>(
                &mut states,
                &mut products,
                part.start(),
                hash,
                &powers,
            );
            pass.finish(states, part.start(), part.start_mut());
            part.store::<SEAL>(text.to(offset), left);
        }
    }
    let lengths = _mm256_zextsi128_si256(integer(lengths.to_be_bytes()));
    products.add(lengths, two(&key.hash.powers_down_from(1), 0));
    products.reduce()
}
