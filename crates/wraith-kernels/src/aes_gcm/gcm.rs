//! AES-GCM (NIST SP 800-38D) for packets, with the vector AES and carry-less multiplication
//! instructions.
//!
//! A library's GCM is made for records of 16 KiB. It has an overhead of about 100 ns per call,
//! which is as long as the bytes of a packet take. In this module a call costs one pass over the
//! packet. Counters, rounds, GHASH and the tag's own block overlap in the processor, and GHASH is
//! reduced once for 16 blocks. The plaintext may come from elsewhere ([`GcmKey::seal_from`]). So
//! cutting a stream into packets and encrypting it is one pass over memory instead of two.
//!
//! Sources:
//!
//! - Gueron and Kounavis, "Intel Carry-Less Multiplication Instruction and its Usage for Computing
//!   the GCM Mode": reflected operands, and one reduction for several blocks with descending powers
//!   of H.
//! - Gopal and others, "Optimized Galois-Counter-Mode Implementation on Intel Architecture
//!   Processors": the products of one group of ciphertext between the rounds of another.
//! - Gueron, "AES-GCM for Efficient Authenticated Encryption" (2013): the reduction by two
//!   multiplications.
//!
//! Constant time: no branch and no address depends on a secret.
//!
//! Invariant: a [`GcmKey`] exists only on a processor that has the instructions of its width.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use zeroize::ZeroizeOnDrop;

use super::aes::RoundKeys;
use super::ghash::{BLOCK, HashKey, bytes, reversal};
use super::text::{Start, Text};
use super::{Width, vaes256, vaes512};

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

    /// Encrypts `in_out` in place and returns the tag over it and `aad`.
    #[inline]
    pub fn seal(&self, nonce: &[u8; 12], aad: &[u8], in_out: &mut [u8]) -> [u8; BLOCK] {
        let text = Text::in_place(in_out);
        // SAFETY: the constructor of `text` establishes its invariant.
        unsafe { self.crypt::<true>(Start::of_nonce(nonce), aad, &text) }
    }

    /// Encrypts `out[..filled]` ‖ `source` into `out`, which is as long as both together. Returns
    /// the tag as [`Self::seal`] does.
    ///
    /// # Panics
    /// If the lengths do not match.
    #[inline]
    pub fn seal_from(
        &self,
        nonce: &[u8; 12],
        aad: &[u8],
        out: &mut [u8],
        filled: usize,
        source: &[u8],
    ) -> [u8; BLOCK] {
        let text = Text::gathered(out, filled, source);
        // SAFETY: the constructor of `text` establishes its invariant.
        unsafe { self.crypt::<true>(Start::of_nonce(nonce), aad, &text) }
    }

    /// Decrypts `in_out` in place and returns the expected tag. The caller must compare the tags
    /// before it uses the plaintext.
    #[inline]
    pub fn open(&self, nonce: &[u8; 12], aad: &[u8], in_out: &mut [u8]) -> [u8; BLOCK] {
        let text = Text::in_place(in_out);
        // SAFETY: the constructor of `text` establishes its invariant.
        unsafe { self.crypt::<false>(Start::of_nonce(nonce), aad, &text) }
    }

    /// Encrypts as [`Self::seal`] does, with a nonce of any length.
    pub fn seal_any(&self, nonce: &[u8], aad: &[u8], in_out: &mut [u8]) -> [u8; BLOCK] {
        let text = Text::in_place(in_out);
        // SAFETY: the constructor of `text` establishes its invariant.
        unsafe { self.crypt::<true>(self.start(nonce), aad, &text) }
    }

    /// Decrypts as [`Self::open`] does, with a nonce of any length.
    pub fn open_any(&self, nonce: &[u8], aad: &[u8], in_out: &mut [u8]) -> [u8; BLOCK] {
        let text = Text::in_place(in_out);
        // SAFETY: the constructor of `text` establishes its invariant.
        unsafe { self.crypt::<false>(self.start(nonce), aad, &text) }
    }

    /// Returns the first counter block. A nonce of any length other than 12 bytes is hashed (SP
    /// 800-38D §7.1).
    fn start(&self, nonce: &[u8]) -> Start {
        match nonce.try_into() {
            Ok(nonce) => Start::of_nonce(nonce),
            // SAFETY: `self` exists, so the processor has the instructions.
            Err(_) => Start(unsafe { self.hash.of_nonce(nonce) }),
        }
    }

    /// Encrypts or decrypts `text` and returns its tag.
    ///
    /// # Safety
    /// `text` must keep its invariant.
    #[inline]
    unsafe fn crypt<const SEAL: bool>(&self, start: Start, aad: &[u8], text: &Text) -> [u8; BLOCK] {
        // SAFETY: `self` exists, so the processor has the instructions of its width; the caller
        // guarantees `text`.
        unsafe {
            match self.width {
                Width::Bits256 => vaes256::crypt::<SEAL, KEYS>(self, start, aad, text),
                Width::Bits512 => vaes512::crypt::<SEAL, KEYS>(self, start, aad, text),
            }
        }
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
