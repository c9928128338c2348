//! AES-GCM with keys of every length: our own on processors with vector AES, otherwise AWS-LC's.

use super::algorithm::Lengths;
use super::key::{Tag, UncheckedAead, open_checked, seal_checked};
use super::{Aead, AeadError, Algorithm, aws_lc};
use crate::Backend;
use wraith_kernels::aes_gcm::{GcmKey, Width};

/// A key of AES-GCM. Nonces have 12 bytes through [`Aead`], any other length through
/// [`Self::seal_with_nonce`]. Wiped when dropped.
pub struct AesGcm(Box<dyn UncheckedAead>);

impl AesGcm {
    /// Creates a key from 16, 24 or 32 bytes. Returns `None` for another length.
    #[must_use]
    pub fn new(key: &[u8]) -> Option<Self> {
        let algorithm = match key.len() {
            16 => Algorithm::Aes128Gcm,
            24 => Algorithm::Aes192Gcm,
            32 => Algorithm::Aes256Gcm,
            _ => return None,
        };
        let library = || Some(Box::new(aws_lc::Key::new(algorithm, key)?) as _);
        Self::own(key).or_else(library).map(Self)
    }

    fn own(key: &[u8]) -> Option<Box<dyn UncheckedAead>> {
        let width = Width::best()?;
        Some(match key.len() {
            16 => GcmKey::<11>::new(key, width)?,
            24 => GcmKey::<13>::new(key, width)?,
            _ => GcmKey::<15>::new(key, width)?,
        })
    }

    /// Returns the implementation on this processor.
    pub(super) fn backend() -> Backend {
        Backend::own_or(Width::best().map(Width::features), Backend::AwsLc)
    }

    /// Like [`Algorithm::check`], for a nonce of any length but 0.
    fn check_any(&self, nonce: &[u8], text: usize, tag: usize) -> Result<(), AeadError> {
        let algorithm = self.algorithm();
        if nonce.is_empty() {
            return Err(AeadError::EmptyNonce { algorithm });
        }
        algorithm.check(&[0; 12], text, tag)
    }

    /// Like [`Aead::seal_detached`], with a nonce of any length but 0 (SP 800-38D §7.1). A nonce of
    /// 12 bytes is faster and safer.
    ///
    /// # Errors
    /// [`AeadError`] if the nonce is empty, the tag has the wrong length, or the text is too long.
    pub fn seal_with_nonce(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), AeadError> {
        self.check_any(nonce, in_out.len(), tag.len())?;
        seal_checked(self, nonce, aad, in_out, tag)
    }

    /// Like [`Aead::open_detached`], with a nonce of any length but 0.
    ///
    /// # Errors
    /// As [`Self::seal_with_nonce`], and [`AeadError::Unauthentic`], which leaves zeros in
    /// `in_out`.
    pub fn open_with_nonce(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8],
    ) -> Result<(), AeadError> {
        self.check_any(nonce, in_out.len(), tag.len())?;
        open_checked(self, nonce, aad, in_out, tag)
    }
}

wraith_crypto::redacted_debug!(|it: AesGcm| algorithm: it.algorithm());

impl UncheckedAead for AesGcm {
    fn lengths(&self) -> Lengths {
        self.0.lengths()
    }

    fn encrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Option<Tag> {
        self.0.encrypt(nonce, aad, text)
    }

    fn decrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8], tag: &[u8]) -> Option<()> {
        self.0.decrypt(nonce, aad, text, tag)
    }
}

impl<const KEYS: usize> UncheckedAead for GcmKey<KEYS> {
    fn lengths(&self) -> Lengths {
        let algorithm = match KEYS {
            11 => Algorithm::Aes128Gcm,
            13 => Algorithm::Aes192Gcm,
            _ => Algorithm::Aes256Gcm,
        };
        algorithm.lengths()
    }

    fn encrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Option<Tag> {
        Some(self.seal_any(nonce, aad, text))
    }

    fn decrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8], tag: &[u8]) -> Option<()> {
        crate::equal(&self.open_any(nonce, aad, text), tag).then_some(())
    }
}

/// Creates a key from 16, 24 or 32 bytes, behind the trait. Returns `None` for another length.
/// Without a wrapper, a key is a single allocation.
pub(super) fn by_name(key: &[u8]) -> Option<Box<dyn Aead>> {
    AesGcm::new(key).map(|key| key.0 as _)
}
