//! SM4-GCM (RFC 8998) behind the trait.

use super::key::{FixedLengths, Tag};
use super::{Algorithm, Sm4Gcm};

impl FixedLengths for Sm4Gcm {
    fn fixed_algorithm(&self) -> Algorithm {
        Algorithm::Sm4Gcm
    }

    fn encrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Option<Tag> {
        Some(Self::seal(self, nonce.try_into().ok()?, aad, text))
    }

    fn decrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8], tag: &Tag) -> Option<()> {
        let expected = Self::open(self, nonce.try_into().ok()?, aad, text);
        crate::equal(&expected, tag).then_some(())
    }
}
