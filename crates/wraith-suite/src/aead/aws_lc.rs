//! AEADs computed by AWS-LC.

use wraith_aws_lc::aead::{Aead as Library, AeadKey};

use super::{Aead, AeadError, Algorithm, TAG_BYTES};

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

    /// Seals with a nonce of any length that AWS-LC accepts.
    pub(super) fn seal_any(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &mut [u8; TAG_BYTES],
    ) -> Result<(), AeadError> {
        *tag = self
            .key
            .seal(nonce, aad, in_out)
            .ok_or_else(|| self.algorithm.nonce_length(nonce.len()))?;
        Ok(())
    }

    /// Opens with a nonce of any length that AWS-LC accepts.
    pub(super) fn open_any(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> Result<(), AeadError> {
        if self.key.open(nonce, aad, in_out, tag) {
            return Ok(());
        }
        in_out.fill(0);
        Err(AeadError::Unauthentic)
    }
}

impl Aead for Key {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn seal_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), AeadError> {
        let tag = self.algorithm.check_seal(nonce, in_out.len(), tag)?;
        self.seal_any(nonce, aad, in_out, tag)
    }

    fn open_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8],
    ) -> Result<(), AeadError> {
        let tag = self.algorithm.check_open(nonce, in_out.len(), tag)?;
        self.open_any(nonce, aad, in_out, tag)
    }
}
