//! AES-GCM with keys of every length: our own on processors with vector AES, otherwise AWS-LC's.

use super::{Aead, AeadError, Algorithm, TAG_BYTES, aws_lc};
use crate::Backend;
use wraith_kernels::aes_gcm::{GcmKey, Width};

/// A key of AES-GCM. Nonces have 12 bytes through [`Aead`], any other length through
/// [`Self::seal_with_nonce`]. Wiped when dropped.
pub struct AesGcm {
    algorithm: Algorithm,
    key: Key,
}

enum Key {
    Bits128(Box<GcmKey<11>>),
    Bits192(Box<GcmKey<13>>),
    Bits256(Box<GcmKey<15>>),
    Library(aws_lc::Key),
}

/// Evaluates `$own` for a key of this crate's code, of any length, or `$other` for a key of AWS-LC.
macro_rules! own {
    ($self:ident, $key:ident => $own:expr, $library:ident => $other:expr) => {
        match &$self.key {
            Key::Bits128($key) => $own,
            Key::Bits192($key) => $own,
            Key::Bits256($key) => $own,
            Key::Library($library) => $other,
        }
    };
}
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
        let key = Self::own(key).or_else(|| aws_lc::Key::new(algorithm, key).map(Key::Library))?;
        Some(Self { algorithm, key })
    }

    fn own(key: &[u8]) -> Option<Key> {
        let width = Width::best()?;
        Some(match key.len() {
            16 => Key::Bits128(GcmKey::new(key, width)?),
            24 => Key::Bits192(GcmKey::new(key, width)?),
            _ => Key::Bits256(GcmKey::new(key, width)?),
        })
    }

    /// Returns the implementation on this processor.
    pub(super) fn backend() -> Backend {
        Backend::own_or(Width::best().map(Width::features), Backend::AwsLc)
    }

    /// Like [`Algorithm::check`], for a nonce of any length but 0.
    fn check_any(&self, nonce: &[u8], text: usize, tag: usize) -> Result<(), AeadError> {
        if nonce.is_empty() {
            return Err(AeadError::EmptyNonce { algorithm: self.algorithm });
        }
        self.algorithm.check(&[0; 12], text, tag)
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
        let found = tag.len();
        let tag: &mut [u8; TAG_BYTES] =
            tag.try_into().map_err(|_| self.algorithm.tag_length(found))?;
        own!(self,
            key => { *tag = key.seal_any(nonce, aad, in_out); Ok(()) },
            library => library.seal_any(nonce, aad, in_out, tag))
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
        let found = tag.len();
        let tag: &[u8; TAG_BYTES] = tag.try_into().map_err(|_| self.algorithm.tag_length(found))?;
        own!(self,
            key => verified(key.open_any(nonce, aad, in_out), tag, in_out),
            library => library.open_any(nonce, aad, in_out, tag))
    }
}

impl std::fmt::Debug for AesGcm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AesGcm").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl Aead for AesGcm {
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
        own!(self,
            key => key.seal_detached(nonce, aad, in_out, tag),
            library => library.seal_detached(nonce, aad, in_out, tag))
    }

    fn open_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8],
    ) -> Result<(), AeadError> {
        own!(self,
            key => key.open_detached(nonce, aad, in_out, tag),
            library => library.open_detached(nonce, aad, in_out, tag))
    }
}

/// The result of [`by_name`] for a key of the kernel. Without a wrapper, a key is a single
/// allocation.
impl<const KEYS: usize> Aead for GcmKey<KEYS> {
    fn algorithm(&self) -> Algorithm {
        match KEYS {
            11 => Algorithm::Aes128Gcm,
            13 => Algorithm::Aes192Gcm,
            _ => Algorithm::Aes256Gcm,
        }
    }

    fn seal_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), AeadError> {
        let tag = self.algorithm().check_seal(nonce, in_out.len(), tag)?;
        *tag = self.seal_any(nonce, aad, in_out);
        Ok(())
    }

    fn open_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8],
    ) -> Result<(), AeadError> {
        let tag = self.algorithm().check_open(nonce, in_out.len(), tag)?;
        verified(self.open_any(nonce, aad, in_out), tag, in_out)
    }
}

/// Compares the tags, and wipes the text if they differ.
pub(super) fn verified(
    expected: [u8; TAG_BYTES],
    tag: &[u8; TAG_BYTES],
    in_out: &mut [u8],
) -> Result<(), AeadError> {
    if crate::equal(&expected, tag) {
        return Ok(());
    }
    in_out.fill(0);
    Err(AeadError::Unauthentic)
}

/// Creates a key from 16, 24 or 32 bytes, behind the trait. Returns `None` for another length.
pub(super) fn by_name(key: &[u8]) -> Option<Box<dyn Aead>> {
    let AesGcm { algorithm: _, key } = AesGcm::new(key)?;
    Some(match key {
        Key::Bits128(key) => key,
        Key::Bits192(key) => key,
        Key::Bits256(key) => key,
        Key::Library(key) => Box::new(key),
    })
}
