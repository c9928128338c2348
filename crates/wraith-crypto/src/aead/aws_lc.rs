//! AEADs computed by AWS-LC, through its C interface: aws-lc-rs does not expose all of them.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use aws_lc_sys::{
    EVP_AEAD, EVP_AEAD_CTX, EVP_AEAD_CTX_free, EVP_AEAD_CTX_new, EVP_AEAD_CTX_open_gather,
    EVP_AEAD_CTX_seal_scatter,
};

use super::{Aead, AeadError, Algorithm, TAG_BYTES};

/// A key. AWS-LC wipes all memory that it frees.
pub(super) struct Key {
    context: NonNull<EVP_AEAD_CTX>,
    algorithm: Algorithm,
}

// SAFETY: once created, a context is only read (`openssl/aead.h`: sealing and opening may be called
// concurrently).
unsafe impl Send for Key {}
// SAFETY: as above.
unsafe impl Sync for Key {}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: `EVP_AEAD_CTX_new` made the context, and it is freed once.
        unsafe { EVP_AEAD_CTX_free(self.context.as_ptr()) };
    }
}

/// Returns AWS-LC's description of an algorithm, if AWS-LC supports it.
fn method(algorithm: Algorithm) -> Option<*const EVP_AEAD> {
    use Algorithm::*;
    // SAFETY: these functions have no preconditions and return constants.
    unsafe {
        Some(match algorithm {
            Aes128Gcm => aws_lc_sys::EVP_aead_aes_128_gcm(),
            Aes192Gcm => aws_lc_sys::EVP_aead_aes_192_gcm(),
            Aes256Gcm => aws_lc_sys::EVP_aead_aes_256_gcm(),
            Aes128GcmSiv => aws_lc_sys::EVP_aead_aes_128_gcm_siv(),
            Aes256GcmSiv => aws_lc_sys::EVP_aead_aes_256_gcm_siv(),
            ChaCha20Poly1305 => aws_lc_sys::EVP_aead_chacha20_poly1305(),
            XChaCha20Poly1305 => aws_lc_sys::EVP_aead_xchacha20_poly1305(),
            _ => return None,
        })
    }
}

impl Key {
    /// Returns `None` if AWS-LC does not support the algorithm, or the key has the wrong length.
    pub(super) fn new(algorithm: Algorithm, key: &[u8]) -> Option<Self> {
        let method = method(algorithm)?;
        // SAFETY: the key has the length passed; the context is checked for null.
        let context = unsafe { EVP_AEAD_CTX_new(method, key.as_ptr(), key.len(), TAG_BYTES) };
        NonNull::new(context).map(|context| Self { context, algorithm })
    }

    /// Seals with a nonce of any length that AWS-LC accepts.
    pub(super) fn seal_any(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &mut [u8; TAG_BYTES],
    ) -> Result<(), AeadError> {
        let mut tag_len = 0;
        // SAFETY: every pointer is passed with its length; in-place encryption is allowed.
        let done = unsafe {
            EVP_AEAD_CTX_seal_scatter(
                self.context.as_ptr(),
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
        match done == 1 && tag_len == tag.len() {
            true => Ok(()),
            false => Err(self.algorithm.nonce_length(nonce.len())),
        }
    }

    /// Opens with a nonce of any length that AWS-LC accepts.
    pub(super) fn open_any(
        &self,
        nonce: &[u8],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> Result<(), AeadError> {
        // SAFETY: every pointer is passed with its length; in-place decryption is allowed.
        let done = unsafe {
            EVP_AEAD_CTX_open_gather(
                self.context.as_ptr(),
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
        };
        if done == 1 {
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
