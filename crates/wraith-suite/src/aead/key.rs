//! A key of any AEAD, behind one trait. The transport seals its packets with
//! [`PacketKey`](super::PacketKey) instead.

use super::TAG_BYTES;
use super::algorithm::{AeadError, Algorithm, Lengths};

/// A key that seals and opens messages.
///
/// Invariant kept by the callers: no nonce seals twice under one key. AES-GCM-SIV tolerates a
/// repeated nonce, and then reveals which messages are equal.
pub trait Aead: Send + Sync {
    /// Returns the algorithm.
    fn algorithm(&self) -> Algorithm;

    /// Returns the length of this key's tags in bytes: the algorithm's, unless the key was created
    /// for another length.
    fn tag_bytes(&self) -> usize {
        self.algorithm().tag_bytes()
    }

    /// Returns the length of this key's nonces in bytes, likewise.
    fn nonce_bytes(&self) -> usize {
        self.algorithm().nonce_bytes()
    }

    /// Returns the maximum length of a text for this key in bytes, likewise.
    fn text_max(&self) -> u64 {
        self.algorithm().text_max()
    }

    /// Encrypts `in_out` in place and writes the tag over it and `aad`.
    ///
    /// # Errors
    /// [`AeadError`] if the nonce or `tag` has the wrong length, or if the text is longer than
    /// [`Self::text_max`]. Nothing has changed then.
    fn seal_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), AeadError>;

    /// Verifies and decrypts `in_out` in place.
    ///
    /// # Errors
    /// As [`Self::seal_detached`], and [`AeadError::Unauthentic`], which leaves zeros in `in_out`.
    fn open_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8],
    ) -> Result<(), AeadError>;

    /// Returns the ciphertext of `text`, followed by the tag.
    ///
    /// # Errors
    /// As [`Self::seal_detached`].
    fn seal(&self, nonce: &[u8], aad: &[u8], text: &[u8]) -> Result<Vec<u8>, AeadError> {
        let tag_bytes = self.tag_bytes();
        let mut sealed = Vec::with_capacity(text.len() + tag_bytes);
        sealed.extend_from_slice(text);
        sealed.resize(text.len() + tag_bytes, 0);
        let (in_out, tag) = sealed.split_at_mut(text.len());
        self.seal_detached(nonce, aad, in_out, tag)?;
        Ok(sealed)
    }

    /// Returns the plaintext of `sealed`, ciphertext ‖ tag.
    ///
    /// # Errors
    /// As [`Self::open_detached`].
    fn open(&self, nonce: &[u8], aad: &[u8], sealed: &[u8]) -> Result<Vec<u8>, AeadError> {
        let at = sealed.len().checked_sub(self.tag_bytes());
        let (text, tag) = sealed.split_at(at.ok_or(AeadError::Unauthentic)?);
        let mut text = text.to_vec();
        self.open_detached(nonce, aad, &mut text, tag)?;
        Ok(text)
    }
}

/// An untruncated tag.
pub(super) type Tag = [u8; TAG_BYTES];

/// A key without the checks of lengths, which [`Aead`] does.
pub(super) trait UncheckedAead: Aead {
    /// Returns the lengths that the key accepts.
    fn lengths(&self) -> Lengths;

    /// Encrypts `text` in place and returns the tag, or `None` for a nonce of the wrong length. A
    /// key with shorter tags truncates it.
    fn encrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8]) -> Option<Tag>;

    /// Decrypts `text` in place. If the tag is wrong, returns `None`, and the content of `text` is
    /// unspecified.
    fn decrypt(&self, nonce: &[u8], aad: &[u8], text: &mut [u8], tag: &[u8]) -> Option<()>;
}

impl<T: UncheckedAead> Aead for T {
    fn algorithm(&self) -> Algorithm {
        self.lengths().algorithm
    }

    fn tag_bytes(&self) -> usize {
        self.lengths().tag_bytes
    }

    fn nonce_bytes(&self) -> usize {
        self.lengths().nonce_bytes
    }

    fn text_max(&self) -> u64 {
        self.lengths().text_max
    }

    fn seal_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &mut [u8],
    ) -> Result<(), AeadError> {
        self.lengths().check(nonce, in_out.len(), tag.len())?;
        seal_checked(self, nonce, aad, in_out, tag)
    }

    fn open_detached(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8],
    ) -> Result<(), AeadError> {
        self.lengths().check(nonce, in_out.len(), tag.len())?;
        open_checked(self, nonce, aad, in_out, tag)
    }
}

/// Seals after the lengths were checked.
pub(super) fn seal_checked(
    key: &(impl UncheckedAead + ?Sized),
    nonce: &[u8],
    aad: &[u8],
    in_out: &mut [u8],
    tag: &mut [u8],
) -> Result<(), AeadError> {
    let wrong = key.algorithm().nonce_length(nonce.len());
    let whole = key.encrypt(nonce, aad, in_out).ok_or(wrong)?;
    tag.copy_from_slice(&whole[..tag.len()]);
    Ok(())
}

/// Opens after the lengths were checked. Leaves zeros in `in_out` if the tag is wrong.
pub(super) fn open_checked(
    key: &(impl UncheckedAead + ?Sized),
    nonce: &[u8],
    aad: &[u8],
    in_out: &mut [u8],
    tag: &[u8],
) -> Result<(), AeadError> {
    key.decrypt(nonce, aad, in_out, tag).ok_or_else(|| {
        in_out.fill(0);
        AeadError::Unauthentic
    })
}
