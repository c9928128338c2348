//! AEADs computed by AWS-LC.

use wraith_aws_lc::aead::{Aead as Library, AeadKey};

use super::Algorithm;
use super::algorithm::Lengths;
use super::key::{Tag, UncheckedAead};

/// A key.
pub(super) struct Key {
    key: AeadKey,
    algorithm: Algorithm,
}

impl Key {
    /// Returns `None` if AWS-LC does not support the algorithm, or the key has the wrong length.
    pub(super) fn new(algorithm: Algorithm, key: &[u8]) -> Option<Self> {
        use Algorithm::*;
        let library = match algorithm {
            Aes128Gcm => Library::Aes128Gcm,
            Aes192Gcm => Library::Aes192Gcm,
            Aes256Gcm => Library::Aes256Gcm,
            Aes128GcmSiv => Library::Aes128GcmSiv,
            Aes256GcmSiv => Library::Aes256GcmSiv,
            ChaCha20Poly1305 => Library::ChaCha20Poly1305,
            XChaCha20Poly1305 => Library::XChaCha20Poly1305,
            _ => return None,
        };
        Some(Self { key: AeadKey::new(library, key)?, algorithm })
    }
}

/// Nonces may have any length that AWS-LC accepts.
impl UncheckedAead for Key {
    fn lengths(&self) -> Lengths {
        self.algorithm.lengths()
    }

    fn encrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Option<Tag> {
        self.key.seal(nonce, aad, text)
    }

    fn decrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8], tag: &[u8]) -> Option<()> {
        self.key.open(nonce, aad, text, tag.try_into().ok()?).then_some(())
    }
}
