//! GMAC over AES (NIST SP 800-38D), in pieces.

use std::ptr;

use aws_lc_sys as aws;

use crate::object::{Owned, succeeded};

const TAG: usize = 16;
/// Maximum number of bytes per call of AWS-LC, which counts with `int`.
const PIECE: usize = 1 << 30;

/// GMAC over one message: AES-GCM with associated data and no text. AWS-LC wipes all memory that it
/// frees.
pub struct Gmac(Owned<aws::EVP_CIPHER_CTX>);

impl Gmac {
    /// Starts a message. `None` unless the key has 16, 24 or 32 bytes.
    #[must_use]
    pub fn new(key: &[u8], nonce: &[u8; 12]) -> Option<Self> {
        // SAFETY: these functions have no preconditions.
        let (context, cipher) = unsafe {
            let cipher = match key.len() {
                16 => aws_lc_sys::EVP_aes_128_gcm(),
                24 => aws_lc_sys::EVP_aes_192_gcm(),
                32 => aws_lc_sys::EVP_aes_256_gcm(),
                _ => return None,
            };
            (Self(Owned::new(aws::EVP_CIPHER_CTX_new())?), cipher)
        };
        // SAFETY: the key has the length of the cipher, and the nonce GCM's default length.
        let done = unsafe {
            let at = context.0.as_ptr();
            aws::EVP_EncryptInit_ex(at, cipher, ptr::null_mut(), key.as_ptr(), nonce.as_ptr())
        };
        succeeded(done).then_some(context)
    }

    /// Authenticates the next piece of the message.
    pub fn update(&mut self, data: &[u8]) {
        for piece in data.chunks(PIECE) {
            let mut len = 0;
            // SAFETY: the piece is readable and its length fits into `int`. A null output pointer
            // marks associated data, so nothing is written but the length.
            let done = unsafe {
                let at = self.0.as_ptr();
                aws::EVP_EncryptUpdate(
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

    /// Returns the tag. The caller must not add data afterwards.
    #[must_use]
    pub fn finish(&mut self) -> [u8; TAG] {
        let (mut tag, mut len) = ([0; TAG], 0);
        // SAFETY: there was no text, so nothing is written but the length; `tag` has room for 16
        // bytes.
        let done = unsafe {
            let at = self.0.as_ptr();
            aws::EVP_EncryptFinal_ex(at, tag.as_mut_ptr(), &raw mut len) == 1
                && aws::EVP_CIPHER_CTX_ctrl(
                    at,
                    aws::EVP_CTRL_AEAD_GET_TAG,
                    TAG as i32,
                    tag.as_mut_ptr().cast(),
                ) == 1
        };
        assert!(done, "a context that was begun can be finished");
        tag
    }
}
