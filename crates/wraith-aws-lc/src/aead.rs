//! Authenticated encryption with tags of 16 bytes.

use std::ptr;

use aws_lc_sys as aws;

use crate::object::{Owned, succeeded};

/// Length of a tag in bytes.
pub const TAG_BYTES: usize = 16;

/// An AEAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say all")]
pub enum Aead {
    Aes128Gcm,
    Aes192Gcm,
    Aes256Gcm,
    Aes128GcmSiv,
    Aes256GcmSiv,
    ChaCha20Poly1305,
    XChaCha20Poly1305,
}

impl Aead {
    fn method(self) -> *const aws::EVP_AEAD {
        // SAFETY: these functions have no preconditions and return constants.
        unsafe {
            match self {
                Self::Aes128Gcm => aws::EVP_aead_aes_128_gcm(),
                Self::Aes192Gcm => aws::EVP_aead_aes_192_gcm(),
                Self::Aes256Gcm => aws::EVP_aead_aes_256_gcm(),
                Self::Aes128GcmSiv => aws::EVP_aead_aes_128_gcm_siv(),
                Self::Aes256GcmSiv => aws::EVP_aead_aes_256_gcm_siv(),
                Self::ChaCha20Poly1305 => aws::EVP_aead_chacha20_poly1305(),
                Self::XChaCha20Poly1305 => aws::EVP_aead_xchacha20_poly1305(),
            }
        }
    }
}

/// A key. AWS-LC wipes all memory that it frees.
pub struct AeadKey(Owned<aws::EVP_AEAD_CTX>);

impl AeadKey {
    /// Returns `None` if the key has the wrong length.
    #[must_use]
    pub fn new(aead: Aead, key: &[u8]) -> Option<Self> {
        // SAFETY: the key has the length passed, and the result is null or a new context.
        let made = unsafe {
            Owned::new(aws::EVP_AEAD_CTX_new(aead.method(), key.as_ptr(), key.len(), TAG_BYTES))
        };
        made.map(Self)
    }

    /// Encrypts `in_out` in place. Returns the tag over it and `aad`, or `None` if AWS-LC does not
    /// take this length of the nonce or of the text.
    #[must_use]
    #[inline]
    pub fn seal(&self, nonce: &[u8], aad: &[u8], in_out: &mut [u8]) -> Option<[u8; TAG_BYTES]> {
        let (mut tag, mut tag_len) = ([0; TAG_BYTES], 0);
        // SAFETY: every pointer is passed with its length; in-place encryption is allowed.
        let done = unsafe {
            aws::EVP_AEAD_CTX_seal_scatter(
                self.0.as_ptr(),
                in_out.as_mut_ptr(),
                tag.as_mut_ptr(),
                &raw mut tag_len,
                tag.len(),
                nonce.as_ptr(),
                nonce.len(),
                in_out.as_ptr(),
                in_out.len(),
                ptr::null(),
                0,
                aad.as_ptr(),
                aad.len(),
            )
        };
        (succeeded(done) && tag_len == tag.len()).then_some(tag)
    }

    /// Decrypts `in_out` in place. Returns whether `tag` is authentic. If not, the content of
    /// `in_out` is unspecified.
    #[must_use]
    #[inline]
    pub fn open(&self, nonce: &[u8], aad: &[u8], in_out: &mut [u8], tag: &[u8; TAG_BYTES]) -> bool {
        // SAFETY: every pointer is passed with its length; in-place decryption is allowed.
        succeeded(unsafe {
            aws::EVP_AEAD_CTX_open_gather(
                self.0.as_ptr(),
                in_out.as_mut_ptr(),
                nonce.as_ptr(),
                nonce.len(),
                in_out.as_ptr(),
                in_out.len(),
                tag.as_ptr(),
                tag.len(),
                aad.as_ptr(),
                aad.len(),
            )
        })
    }
}
