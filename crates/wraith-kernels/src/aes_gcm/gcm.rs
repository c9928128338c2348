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
#![allow(unsafe_code)]

use super::ghash::BLOCK;
use super::key::GcmKey;
use super::text::{Start, Text};
use super::{Width, vaes256, vaes512};

impl<const KEYS: usize> GcmKey<KEYS> {
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
            match self.width() {
                Width::Bits256 => vaes256::crypt::<SEAL, KEYS>(self, start, aad, text),
                Width::Bits512 => vaes512::crypt::<SEAL, KEYS>(self, start, aad, text),
            }
        }
    }
}
