//! The key of AES-GCM, and the parts of a tag that do not depend on the vector width.
//!
//! Invariant: a [`GcmKey`] exists only on a processor that has the instructions of its width.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use zeroize::ZeroizeOnDrop;

use super::Width;
use super::aes::RoundKeys;
use super::ghash::{BLOCK, HashKey, bytes, reversal};
use super::text::{Start, Text};

/// An expanded key with the powers of its hash key. Wiped when dropped: each of its parts wipes
/// itself.
#[derive(Clone)]
pub struct GcmKey<const KEYS: usize = 15> {
    pub(super) hash: HashKey,
    pub(super) rounds: RoundKeys<KEYS>,
    width: Width,
}

impl<const KEYS: usize> ZeroizeOnDrop for GcmKey<KEYS> {}

impl<const KEYS: usize> GcmKey<KEYS> {
    /// Expands a key in place. Returns `None` if its length does not match `KEYS`, or this
    /// processor lacks an instruction.
    pub fn new(key: &[u8], width: Width) -> Option<Box<Self>> {
        width.is_available().then(|| Self::expand(key, width))?
    }

    /// Does the same on a processor that has the instructions.
    pub(super) fn expand(key: &[u8], width: Width) -> Option<Box<Self>> {
        if !RoundKeys::<KEYS>::fits(key) {
            return None;
        }
        let mut place = Box::new_uninit();
        // SAFETY: the caller checked the instructions, the lines above the length; all fields are
        // written.
        unsafe {
            match width {
                Width::Bits256 => Self::expand_256(&mut place, key),
                Width::Bits512 => Self::expand_512(&mut place, key),
            }
            Some(place.assume_init())
        }
    }

    #[target_feature(enable = "aes,avx2,pclmulqdq")]
    fn expand_256(place: &mut MaybeUninit<Self>, key: &[u8]) {
        let (rounds, hash) = Self::parts(place, Width::Bits256);
        let hash_key = RoundKeys::expand(rounds, key);
        HashKey::fill(hash, hash_key);
    }

    #[target_feature(enable = "aes,avx512f,avx512bw,avx2,pclmulqdq,vpclmulqdq")]
    fn expand_512(place: &mut MaybeUninit<Self>, key: &[u8]) {
        let (rounds, hash) = Self::parts(place, Width::Bits512);
        let hash_key = RoundKeys::expand(rounds, key);
        HashKey::fill_wide(hash, hash_key);
    }

    /// Writes `width` and returns the places of the other parts of a key.
    fn parts(
        place: &mut MaybeUninit<Self>,
        width: Width,
    ) -> (&mut MaybeUninit<RoundKeys<KEYS>>, &mut MaybeUninit<HashKey>) {
        let fields = place.as_mut_ptr();
        // SAFETY: the fields are distinct parts of the place and may be uninitialized.
        unsafe {
            (&raw mut (*fields).width).write(width);
            (&mut *(&raw mut (*fields).rounds).cast(), &mut *(&raw mut (*fields).hash).cast())
        }
    }

    /// Returns the width for which the key was made.
    pub const fn width(&self) -> Width {
        self.width
    }

    /// Returns the mask of the tag: the encrypted first counter block (SP 800-38D §7.1).
    #[target_feature(enable = "aes,avx2")]
    #[inline]
    pub(super) fn tag_mask(&self, start: Start) -> [u8; BLOCK] {
        let rounds = self.rounds.schedule();
        let block = start.0.swap_bytes();
        let mut state = _mm_set_epi64x((block >> 64) as i64, block as i64);
        state = _mm_xor_si128(state, rounds[0]);
        for round in &rounds[1..KEYS - 1] {
            state = _mm_aesenc_si128(state, *round);
        }
        bytes(_mm_aesenclast_si128(state, rounds[KEYS - 1]))
    }
}

/// Returns the last block to hash: the lengths of the associated data and of the text, in bits.
#[inline]
pub(super) fn lengths(aad: &[u8], text: &Text) -> u128 {
    u128::from(aad.len() as u64 * 8) << 64 | u128::from(text.len as u64 * 8)
}

/// Returns the tag, given the final hash.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn tag(hash: __m128i, tag_mask: [u8; BLOCK]) -> [u8; BLOCK] {
    let hash = bytes(_mm_shuffle_epi8(hash, reversal()));
    (u128::from_le_bytes(hash) ^ u128::from_le_bytes(tag_mask)).to_le_bytes()
}
