//! Header protection's only primitive: one block of AES-256 over a sample of ciphertext (SPEC §4.3).
//!
//! AES is used whatever the suite: one block costs less than anything else even in software, and the masks of both
//! suites stay the same. The `aes` crate picks the processor's AES instructions at run time, else it is a
//! constant-time software implementation.

use std::fmt;

use aes::Aes256Enc;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};

/// A key that turns samples into masks. Wiped when dropped.
#[derive(Clone)]
pub struct MaskKey(Aes256Enc);

impl MaskKey {
    /// The key with these 32 bytes.
    #[must_use]
    pub fn new(key: [u8; 32]) -> Self {
        Self(Aes256Enc::new(&Array::from(key)))
    }

    /// `AES-256(key, sample)`.
    #[must_use]
    #[inline]
    pub fn mask(&self, sample: &[u8; 16]) -> [u8; 16] {
        let mut block = Array::from(*sample);
        self.0.encrypt_block(&mut block);
        block.into()
    }
}

impl fmt::Debug for MaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaskKey").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_the_aes_256_block_of_fips_197_appendix_c_3() {
        let key = std::array::from_fn(|i| i as u8);
        let sample = std::array::from_fn(|i| (i as u8) * 0x11);
        let expected = 0x8ea2_b7ca_5167_45bf_eafc_4990_4b49_6089_u128.to_be_bytes();
        assert_eq!(MaskKey::new(key).mask(&sample), expected);
    }
}
