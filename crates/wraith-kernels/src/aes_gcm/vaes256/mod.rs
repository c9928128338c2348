//! AES-GCM with 256-bit vectors: VAES and VPCLMULQDQ without AVX-512, as on most desktop
//! processors.
//!
//! The method is that of [`super::gcm`]. Drucker, Gueron and Krasnov, "Making AES Great Again: The
//! Forthcoming Vectorized AES Instruction" (2018), show that vector rounds pay off at this width
//! already.
//!
//! A group is eight vectors of two blocks. Of 16 registers the states take eight and the products
//! three, so the ciphertext is read from memory again to be hashed. AVX2 has no byte masks, so the
//! end of a text within a vector is moved by overlapping words.
#![allow(unsafe_code)]

mod part;
mod pass;
mod products;

use std::arch::x86_64::*;

use super::ghash::{BLOCK, GROUP_BLOCKS, GROUP_BYTES, HashKey, integer, reversal};
use super::key::{GcmKey, lengths, tag};
use super::text::{Start, Text};
use part::Part;
use pass::Pass;
use products::{Products, two};

/// Size of a vector in bytes: two blocks.
const VECTOR: usize = 32;
/// Number of vectors in a group.
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
        // When opening, a group is hashed beside its own rounds. When sealing, it is hashed beside
        // the rounds of the next group, because its ciphertext must exist first.
        if SEAL && offset == 0 {
            pass.rounds_alone(&mut states);
        } else {
            let at = if SEAL { text.to(offset - GROUP_BYTES) } else { text.from(offset) };
            let mut products = Products::new();
            // SAFETY: `at` points to a whole group of ciphertext: the last one written, or this one
            // of the text.
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

/// Continues `hash` with whole groups.
#[target_feature(enable = "avx2,pclmulqdq,vpclmulqdq")]
pub(super) fn hash(key: &HashKey, mut hash: __m128i, groups: &[[u8; GROUP_BYTES]]) -> __m128i {
    let powers = key.powers_down_from(GROUP_BLOCKS);
    let reverse = _mm256_broadcastsi128_si256(reversal());
    for group in groups {
        let mut products = Products::new();
        // The first vector comes last, because it waits for the previous hash.
        for (i, vector) in group.as_chunks::<VECTOR>().0.iter().enumerate().rev() {
            // SAFETY: the reference covers a whole readable vector.
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

/// Processes the rest after the last whole group, and returns the final hash.
///
/// The rest and the block of lengths are reduced together. When sealing, it also hashes the last
/// whole group.
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
    // The block of lengths follows the blocks of the tail.
    let powers = key.hash.powers_down_from(blocks + 1);
    let mut states = pass.group();
    let mut products = Products::new();
    // SAFETY: `left` bytes of the text are readable and writable at `offset`, and so is the group
    // before it, if there is one.
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
