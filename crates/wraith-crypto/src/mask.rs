//! The only primitive of header protection: one block of AES-256 over a sample of ciphertext (SPEC
//! §4.3).
//!
//! Every packet suite uses AES for this block, so that the masks of all suites look alike and cost
//! the same.
//!
//! - On x86-64 the rounds are our own code, because a packet needs just two blocks, under two keys.
//!   The `aes` crate prepares each call for many blocks and takes 75 ns for one. Both blocks
//!   together take 21 ns in our code (AMD EPYC, 2.5 GHz).
//! - Elsewhere the `aes` crate encrypts, in hardware or in constant-time software. It is also the
//!   reference in the tests of our code.

use aes::Aes256Enc;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use wraith_kernels::aes_gcm::RoundKeys;
use zeroize::{ZeroizeOnDrop, Zeroizing};

/// Length in bytes of a sample and of its mask: an AES block.
pub const SAMPLE_BYTES: usize = 16;

/// A key that turns samples into masks. Wiped when dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct MaskKey(Cipher);

#[derive(Clone, ZeroizeOnDrop)]
#[allow(clippy::large_enum_variant, reason = "without kernels, the smaller one does not exist")]
enum Cipher {
    X86(RoundKeys),
    Portable(Aes256Enc),
}

impl MaskKey {
    /// Creates the key from 32 bytes.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        let key = Zeroizing::new(key);
        if let Some(keys) = RoundKeys::new(&*key) {
            return Self(Cipher::X86(keys));
        }
        Self(Cipher::portable(&key))
    }

    /// Returns `AES-256(key, sample)`.
    #[must_use]
    #[inline]
    pub fn mask(&self, sample: &[u8; SAMPLE_BYTES]) -> [u8; SAMPLE_BYTES] {
        match &self.0 {
            Cipher::X86(keys) => keys.encrypt(sample),
            Cipher::Portable(cipher) => {
                let mut block = Array::from(*sample);
                cipher.encrypt_block(&mut block);
                block.into()
            }
        }
    }

    /// Returns the masks of two keys for one sample. In hardware this takes no longer than one
    /// mask.
    #[must_use]
    #[inline]
    pub fn mask_pair(
        a: &Self,
        b: &Self,
        sample: &[u8; SAMPLE_BYTES],
    ) -> ([u8; SAMPLE_BYTES], [u8; SAMPLE_BYTES]) {
        match (&a.0, &b.0) {
            (Cipher::X86(a), Cipher::X86(b)) => RoundKeys::encrypt_pair(a, b, sample),
            _ => (a.mask(sample), b.mask(sample)),
        }
    }
}

impl Cipher {
    fn portable(key: &[u8; 32]) -> Self {
        Self::Portable(Aes256Enc::new(key.into()))
    }
}

crate::redacted_debug!(MaskKey);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_mask_is_the_aes_256_block_of_fips_197_appendix_c_3() {
        let key = std::array::from_fn(|i| i as u8);
        let sample = std::array::from_fn(|i| (i as u8) * 0x11);
        let expected = 0x8ea2_b7ca_5167_45bf_eafc_4990_4b49_6089_u128.to_be_bytes();
        assert_eq!(MaskKey::new(key).mask(&sample), expected);
        assert_eq!(MaskKey(Cipher::portable(&key)).mask(&sample), expected);
    }

    proptest! {
        #[test]
        fn the_fast_masks_are_those_of_the_portable_cipher(a: [u8; 32], b: [u8; 32], sample: [u8; 16]) {
            let expected_a = MaskKey(Cipher::portable(&a)).mask(&sample);
            let expected_b = MaskKey(Cipher::portable(&b)).mask(&sample);
            let (a, b) = (MaskKey::new(a), MaskKey::new(b));
            prop_assert_eq!(a.mask(&sample), expected_a);
            prop_assert_eq!(MaskKey::mask_pair(&a, &b, &sample), (expected_a, expected_b));
        }
    }
}
