//! SM4-GCM (RFC 8998) behind the trait.

use super::algorithm::Lengths;
use super::key::{Tag, UncheckedAead};
use super::{Algorithm, Sm4Gcm};

impl UncheckedAead for Sm4Gcm {
    fn lengths(&self) -> Lengths {
        Algorithm::Sm4Gcm.lengths()
    }

    fn encrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Option<Tag> {
        Some(Self::seal(self, nonce.try_into().ok()?, aad, text))
    }

    fn decrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8], tag: &[u8]) -> Option<()> {
        let expected = Self::open(self, nonce.try_into().ok()?, aad, text);
        crate::equal(&expected, tag).then_some(())
    }
}
