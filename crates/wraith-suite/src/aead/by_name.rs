//! The implementation of each AEAD.

use super::{Aead, AeadError, AesCcm, AesGcm, Algorithm, aegis, aws_lc, chacha};
use crate::Backend;

impl Algorithm {
    /// Returns the implementation on this processor.
    #[must_use]
    pub fn backend(self) -> Backend {
        use Algorithm::*;
        match self {
            Aes128Gcm | Aes192Gcm | Aes256Gcm => AesGcm::backend(),
            Aes128Ccm | Aes192Ccm | Aes256Ccm => crate::cipher::aes_backend(),
            Aegis128L | Aegis128X2 | Aegis256 | Aegis256X2 => Backend::Library("aegis"),
            Sm4Gcm | Sm4Ccm => crate::cipher::sm4_backend(),
            ChaCha20Poly1305 | XChaCha20Poly1305 => chacha::backend(),
            _ => Backend::AwsLc,
        }
    }

    /// Creates a key from its bytes.
    ///
    /// # Errors
    /// [`AeadError::KeyLength`].
    pub fn key(self, key: &[u8]) -> Result<Box<dyn Aead>, AeadError> {
        use Algorithm::*;
        let wrong = AeadError::KeyLength { algorithm: self, found: key.len() };
        if key.len() != self.key_bytes() {
            return Err(wrong);
        }
        let key: Option<Box<dyn Aead>> = match self {
            Aes128Gcm | Aes192Gcm | Aes256Gcm => super::gcm::by_name(key),
            Aes128Ccm | Aes192Ccm | Aes256Ccm => AesCcm::new(key).map(|key| Box::new(key) as _),
            Aegis128L | Aegis128X2 | Aegis256 | Aegis256X2 => {
                aegis::Key::new(self, key).map(|key| Box::new(key) as _)
            }
            ChaCha20Poly1305 | XChaCha20Poly1305 => chacha::by_name(self, key),
            Sm4Gcm => key.try_into().ok().map(|key| Box::new(super::Sm4Gcm::new(key)) as _),
            Sm4Ccm => key.try_into().ok().map(|key| Box::new(super::Sm4Ccm::new(key)) as _),
            Aes128GcmSiv | Aes256GcmSiv => {
                aws_lc::Key::new(self, key).map(|key| Box::new(key) as _)
            }
        };
        key.ok_or(wrong)
    }
}
