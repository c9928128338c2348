//! AES-GCM (NIST SP 800-38D) for packets, with the vector AES and carry-less multiplication instructions.
//!
//! A library's GCM takes about 100 ns per call besides the bytes (it is made for records of 16 KiB), as long as the bytes
//! of a packet themselves take. Here a call costs one pass: counters, rounds, GHASH and the tag's own block overlap in
//! the processor, and GHASH is reduced once for 16 blocks. The plaintext may come from elsewhere
//! ([`GcmKey::seal_from`]), so that cutting a stream into packets and encrypting it is one pass over memory, not two.
//!
//! The method is that of two white papers of Intel: Gueron and Kounavis, "Intel Carry-Less Multiplication Instruction and
//! its Usage for Computing the GCM Mode" (reflected operands, reduction once for several blocks with descending powers of
//! H), and Gopal and others, "Optimized Galois-Counter-Mode Implementation on Intel Architecture Processors" (the products
//! of one group of ciphertext between the rounds of another); the reduction by two multiplications is Gueron's, "AES-GCM
//! for Efficient Authenticated Encryption" (2013).
//!
//! Nothing here depends on secrets but values: no branch, no address.
//!
//! Invariant: a [`GcmKey`] exists only on a processor that has the instructions of its width.
#![allow(unsafe_code)]

use std::arch::x86_64::*;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

use zeroize::ZeroizeOnDrop;

use super::aes::RoundKeys;
use super::ghash::{BLOCK, HashKey, bytes, reversal};
use super::text::{Start, Text};
use super::{vaes256, vaes512};

/// How many bits the vectors have that a text is worked through with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// VAES and VPCLMULQDQ without AVX-512.
    Bits256,
    /// The same with AVX-512.
    Bits512,
}

impl Width {
    /// The widest there is here.
    #[inline]
    pub(crate) fn best() -> Option<Self> {
        /// Asked once: each instruction is a question.
        static BEST: OnceLock<Option<Width>> = OnceLock::new();
        *BEST.get_or_init(|| {
            use std::arch::is_x86_feature_detected as has;
            let every = has!("aes")
                && has!("pclmulqdq")
                && has!("avx2")
                && has!("vaes")
                && has!("vpclmulqdq");
            let wide = has!("avx512f") && has!("avx512bw");
            every.then_some(if wide { Self::Bits512 } else { Self::Bits256 })
        })
    }

    pub(crate) const fn features(self) -> &'static str {
        match self {
            Self::Bits256 => "VAES, VPCLMULQDQ",
            Self::Bits512 => "AVX-512, VAES, VPCLMULQDQ",
        }
    }

    /// Whether this processor has the instructions.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        match self {
            Self::Bits256 => Self::best().is_some(),
            Self::Bits512 => Self::best() == Some(Self::Bits512),
        }
    }
}

/// An expanded key with the powers of its hash key. Wiped when dropped: its parts are, each once.
#[derive(Clone)]
pub(crate) struct GcmKey<const KEYS: usize = 15> {
    pub(super) hash: HashKey,
    pub(super) rounds: RoundKeys<KEYS>,
    width: Width,
}

impl<const KEYS: usize> ZeroizeOnDrop for GcmKey<KEYS> {}

impl<const KEYS: usize> GcmKey<KEYS> {
    /// Expands a key of the length that goes with `KEYS`. All is computed where it stays. `None` if it has another length, or this processor lacks an
    /// instruction.
    pub(crate) fn new(key: &[u8], width: Width) -> Option<Box<Self>> {
        if !width.is_here() || !RoundKeys::<KEYS>::fits(key) {
            return None;
        }
        let mut place = Box::new_uninit();
        // SAFETY: the processor has the instructions and the key its length, which was checked; all is written then.
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

    /// Where the parts of a key belong whose width is written.
    fn parts(
        place: &mut MaybeUninit<Self>,
        width: Width,
    ) -> (&mut MaybeUninit<RoundKeys<KEYS>>, &mut MaybeUninit<HashKey>) {
        let fields = place.as_mut_ptr();
        // SAFETY: the fields lie within the place, beside each other, and need not be there yet.
        unsafe {
            (&raw mut (*fields).width).write(width);
            (&mut *(&raw mut (*fields).rounds).cast(), &mut *(&raw mut (*fields).hash).cast())
        }
    }

    /// What the key was made for.
    pub(crate) const fn width(&self) -> Width {
        self.width
    }

    /// Encrypts `in_out` in place and returns the tag over it and `aad`.
    #[inline]
    pub(crate) fn seal(&self, nonce: &[u8; 12], aad: &[u8], in_out: &mut [u8]) -> [u8; BLOCK] {
        let text = Text::in_place(in_out);
        // SAFETY: `text` is what its constructor promises.
        unsafe { self.crypt::<true>(Start::of_nonce(nonce), aad, &text) }
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
        unsafe { self.crypt::<true>(Start::of_nonce(nonce), aad, &text) }
    }

    /// Decrypts `in_out` in place and returns the tag that it should have had. Nothing may be done with the plaintext
    /// before the tags were compared.
    #[inline]
    pub(crate) fn open(&self, nonce: &[u8; 12], aad: &[u8], in_out: &mut [u8]) -> [u8; BLOCK] {
        let text = Text::in_place(in_out);
        // SAFETY: as in `seal`.
        unsafe { self.crypt::<false>(Start::of_nonce(nonce), aad, &text) }
    }

    /// As [`Self::seal`], with a nonce of any length.
    pub(crate) fn seal_any(&self, nonce: &[u8], aad: &[u8], in_out: &mut [u8]) -> [u8; BLOCK] {
        let text = Text::in_place(in_out);
        // SAFETY: as in `seal`.
        unsafe { self.crypt::<true>(self.start(nonce), aad, &text) }
    }

    /// As [`Self::open`], with a nonce of any length.
    pub(crate) fn open_any(&self, nonce: &[u8], aad: &[u8], in_out: &mut [u8]) -> [u8; BLOCK] {
        let text = Text::in_place(in_out);
        // SAFETY: as in `seal`.
        unsafe { self.crypt::<false>(self.start(nonce), aad, &text) }
    }

    /// The first counter block: a nonce of another length than 12 bytes is hashed (SP 800-38D §7.1).
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
        // SAFETY: `self` exists, so the processor has the instructions of its width; `text` is the caller's promise.
        unsafe {
            match self.width {
                Width::Bits256 => vaes256::crypt::<SEAL, KEYS>(self, start, aad, text),
                Width::Bits512 => vaes512::crypt::<SEAL, KEYS>(self, start, aad, text),
            }
        }
    }

    /// What the tag of a text is masked with: the block of counter 1 (SP 800-38D §7.1).
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

/// The last block that is hashed: how many bits there were of the associated data, and of the text.
#[inline]
pub(super) fn lengths(aad: &[u8], text: &Text) -> u128 {
    u128::from(aad.len() as u64 * 8) << 64 | u128::from(text.len as u64 * 8)
}

/// The tag of the last hash.
#[target_feature(enable = "avx2")]
#[inline]
pub(super) fn tag(hash: __m128i, tag_mask: [u8; BLOCK]) -> [u8; BLOCK] {
    let hash = bytes(_mm_shuffle_epi8(hash, reversal()));
    (u128::from_le_bytes(hash) ^ u128::from_le_bytes(tag_mask)).to_le_bytes()
}
