//! SM4-GCM (RFC 8998) behind the trait.

use super::algorithm::FixedLengths;
use super::{Algorithm, Sm4Gcm, TAG_BYTES};

impl FixedLengths for Sm4Gcm {
    fn fixed_algorithm(&self) -> Algorithm {
        Algorithm::Sm4Gcm
    }

    fn encrypt(&self, nonce: &[u8], aad: &[u8], in_out: &mut [u8]) -> Option<[u8; TAG_BYTES]> {
        Some(Self::seal(self, nonce.try_into().ok()?, aad, in_out))
    }

    fn decrypt(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> Option<()> {
        let expected = Self::open(self, nonce.try_into().ok()?, aad, in_out);
        crate::equal(&expected, tag).then_some(())
    }
}
