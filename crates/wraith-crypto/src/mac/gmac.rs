//! GMAC over AES (NIST SP 800-38D): AES-GCM with associated data only. A nonce must never be used
//! twice under one key: two tags with the same nonce let an attacker forge others.
//!
//! On x86-64 with vector AES, our own code computes it. Elsewhere AWS-LC's AES-GCM computes it,
//! which accepts associated data in pieces.
#![allow(unsafe_code)]

use std::ptr::{self, NonNull};

use aws_lc_sys::{
    EVP_CIPHER_CTX, EVP_CIPHER_CTX_ctrl, EVP_CIPHER_CTX_free, EVP_CIPHER_CTX_new,
    EVP_CTRL_AEAD_GET_TAG, EVP_EncryptFinal_ex, EVP_EncryptInit_ex, EVP_EncryptUpdate,
};

use super::{Algorithm, Mac, same};
#[cfg(target_arch = "x86_64")]
use crate::x86::{GcmKey, Ghash, Width};
use crate::{Backend, Unauthentic};

const TAG: usize = 16;
/// Maximum number of bytes per call of AWS-LC, which counts with `int`.
const PIECE: usize = 1 << 30;

/// GMAC over one message. Wiped when dropped.
pub struct GmacAes {
    algorithm: Algorithm,
    inner: Inner,
}

enum Inner {
    #[cfg(target_arch = "x86_64")]
    Bits128(Box<GcmKey<11>>, Ghash),
    #[cfg(target_arch = "x86_64")]
    Bits192(Box<GcmKey<13>>, Ghash),
    #[cfg(target_arch = "x86_64")]
    Bits256(Box<GcmKey<15>>, Ghash),
    AwsLcGmac(AwsLcGmac),
}

impl GmacAes {
    /// Starts a message. Returns `None` unless the key has 16, 24 or 32 bytes.
    #[must_use]
    pub fn new(key: &[u8], nonce: &[u8; 12]) -> Option<Self> {
        let algorithm = match key.len() {
            16 => Algorithm::GmacAes128,
            24 => Algorithm::GmacAes192,
            32 => Algorithm::GmacAes256,
            _ => return None,
        };
        let own = Self::own(key, nonce);
        let inner = own.or_else(|| AwsLcGmac::new(key, nonce).map(Inner::AwsLcGmac))?;
        Some(Self { algorithm, inner })
    }

    #[cfg(target_arch = "x86_64")]
    fn own(key: &[u8], nonce: &[u8; 12]) -> Option<Inner> {
        let width = Width::best()?;
        let hash = Ghash::new(nonce);
        Some(match key.len() {
            16 => Inner::Bits128(GcmKey::new(key, width)?, hash),
            24 => Inner::Bits192(GcmKey::new(key, width)?, hash),
            _ => Inner::Bits256(GcmKey::new(key, width)?, hash),
        })
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn own(_: &[u8], _: &[u8; 12]) -> Option<Inner> {
        None
    }

    /// Returns the implementation on this processor.
    pub(super) fn backend() -> Backend {
        #[cfg(target_arch = "x86_64")]
        if let Some(width) = Width::best() {
            return Backend::Own(width.features().into());
        }
        Backend::AwsLc
    }

    /// Authenticates the next piece of the message.
    pub fn update(&mut self, data: &[u8]) {
        match &mut self.inner {
            #[cfg(target_arch = "x86_64")]
            Inner::Bits128(key, hash) => hash.update(key, data),
            #[cfg(target_arch = "x86_64")]
            Inner::Bits192(key, hash) => hash.update(key, data),
            #[cfg(target_arch = "x86_64")]
            Inner::Bits256(key, hash) => hash.update(key, data),
            Inner::AwsLcGmac(context) => context.update(data),
        }
    }

    /// Returns the tag of the message.
    #[must_use]
    pub fn finish(self) -> [u8; TAG] {
        self.tag()
    }

    /// Returns the tag. Takes a reference, because the state is too large to move. The caller must
    /// not add data afterwards.
    fn tag(&self) -> [u8; TAG] {
        match &self.inner {
            #[cfg(target_arch = "x86_64")]
            Inner::Bits128(key, hash) => hash.finish(key),
            #[cfg(target_arch = "x86_64")]
            Inner::Bits192(key, hash) => hash.finish(key),
            #[cfg(target_arch = "x86_64")]
            Inner::Bits256(key, hash) => hash.finish(key),
            Inner::AwsLcGmac(context) => context.finish(),
        }
    }

    /// Verifies the tag of the message, in constant time. A truncated tag is rejected.
    ///
    /// # Errors
    /// [`Unauthentic`] if `tag` is wrong.
    pub fn verify(self, tag: &[u8]) -> Result<(), Unauthentic> {
        same(&self.finish(), tag)
    }
}

impl Mac for GmacAes {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    fn update(&mut self, data: &[u8]) {
        self.update(data);
    }

    fn finish_into(self: Box<Self>, out: &mut [u8]) {
        out[..TAG].copy_from_slice(&self.tag());
    }
}

impl std::fmt::Debug for GmacAes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GmacAes").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

/// AWS-LC's AES-GCM with associated data and no text. AWS-LC wipes all memory that it frees.
struct AwsLcGmac(NonNull<EVP_CIPHER_CTX>);

// SAFETY: a context is not bound to a thread.
unsafe impl Send for AwsLcGmac {}

impl Drop for AwsLcGmac {
    fn drop(&mut self) {
        // SAFETY: `EVP_CIPHER_CTX_new` made the context, and it is freed once.
        unsafe { EVP_CIPHER_CTX_free(self.0.as_ptr()) };
    }
}

impl AwsLcGmac {
    fn new(key: &[u8], nonce: &[u8; 12]) -> Option<Self> {
        // SAFETY: these functions have no preconditions.
        let (context, cipher) = unsafe {
            let cipher = match key.len() {
                16 => aws_lc_sys::EVP_aes_128_gcm(),
                24 => aws_lc_sys::EVP_aes_192_gcm(),
                _ => aws_lc_sys::EVP_aes_256_gcm(),
            };
            (Self(NonNull::new(EVP_CIPHER_CTX_new())?), cipher)
        };
        // SAFETY: the key has the length of the cipher, and the nonce GCM's default length.
        let done = unsafe {
            let at = context.0.as_ptr();
            EVP_EncryptInit_ex(at, cipher, ptr::null_mut(), key.as_ptr(), nonce.as_ptr())
        };
        (done == 1).then_some(context)
    }

    fn update(&mut self, data: &[u8]) {
        for piece in data.chunks(PIECE) {
            let mut len = 0;
            // SAFETY: the piece is readable and its length fits into `int`. A null output pointer
            // marks associated data, so nothing is written but the length.
            let done = unsafe {
                let at = self.0.as_ptr();
                EVP_EncryptUpdate(
                    at,
                    ptr::null_mut(),
                    &raw mut len,
                    piece.as_ptr(),
                    piece.len() as i32,
                )
            };
            assert_eq!(done, 1, "associated data is limited to 2^61 bytes");
        }
    }

    fn finish(&self) -> [u8; TAG] {
        let (mut tag, mut len) = ([0; TAG], 0);
        // SAFETY: there was no text, so nothing is written but the length; `tag` has room for 16
        // bytes.
        let done = unsafe {
            let at = self.0.as_ptr();
            EVP_EncryptFinal_ex(at, tag.as_mut_ptr(), &raw mut len) == 1
                && EVP_CIPHER_CTX_ctrl(
                    at,
                    EVP_CTRL_AEAD_GET_TAG,
                    TAG as i32,
                    tag.as_mut_ptr().cast(),
                ) == 1
        };
        assert!(done, "a context that was begun can be finished");
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_computes_what_aws_lc_does_for_every_length_and_cut() {
        let data: Vec<u8> = (0..=255).cycle().take(9000).collect();
        for (len, cut) in (0..800).map(|len| (len, len / 3)).chain([(8192, 100), (8999, 300)]) {
            for key_bytes in [16, 24, 32] {
                let (key, nonce) = (&data[len % 7..][..key_bytes], &[len as u8; 12]);
                let mut ours = GmacAes::new(key, nonce).unwrap();
                let mut library = AwsLcGmac::new(key, nonce).unwrap();
                ours.update(&data[..cut]);
                ours.update(&data[cut..len]);
                library.update(&data[..len]);
                assert_eq!(ours.finish(), library.finish(), "{key_bytes} {len}");
            }
        }
    }
}
