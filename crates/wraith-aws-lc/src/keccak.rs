//! SHA-3 and SHAKE (FIPS 202).

use std::ptr;

use aws_lc_sys as aws;

use crate::object::{Owned, succeeded};

/// Incremental state of a function of SHA-3 or SHAKE. AWS-LC wipes it when dropped.
pub struct Keccak(Owned<aws::EVP_MD_CTX>);

impl Keccak {
    /// Starts a message of SHA-3 with digests of 28, 32, 48 or 64 bytes.
    ///
    /// # Panics
    /// For another length, and if out of memory.
    #[must_use]
    pub fn sha_3(digest_bytes: usize) -> Self {
        // SAFETY: the functions have no preconditions.
        Self::start(unsafe {
            match digest_bytes {
                28 => aws::EVP_sha3_224(),
                32 => aws::EVP_sha3_256(),
                48 => aws::EVP_sha3_384(),
                64 => aws::EVP_sha3_512(),
                _ => panic!("SHA-3 has no digests of {digest_bytes} bytes"),
            }
        })
    }

    /// Starts a message of SHAKE128.
    ///
    /// # Panics
    /// If out of memory.
    #[must_use]
    pub fn shake_128() -> Self {
        // SAFETY: the function has no preconditions.
        Self::start(unsafe { aws::EVP_shake128() })
    }

    /// Starts a message of SHAKE256.
    ///
    /// # Panics
    /// If out of memory.
    #[must_use]
    pub fn shake_256() -> Self {
        // SAFETY: the function has no preconditions.
        Self::start(unsafe { aws::EVP_shake256() })
    }

    fn start(function: *const aws::EVP_MD) -> Self {
        let state = Self::empty();
        // SAFETY: the context is live, and `function` is one of AWS-LC's static descriptions.
        let code = unsafe { aws::EVP_DigestInit_ex(state.0.as_ptr(), function, ptr::null_mut()) };
        assert!(succeeded(code), "{NO_MEMORY}");
        state
    }

    fn empty() -> Self {
        // SAFETY: the function has no preconditions and returns a new object.
        Self(unsafe { Owned::new(aws::EVP_MD_CTX_new()) }.expect(NO_MEMORY))
    }

    /// Hashes the next piece of the message, before the first output.
    pub fn update(&mut self, data: &[u8]) {
        // SAFETY: the context is live, and `data` has the length passed.
        let code =
            unsafe { aws::EVP_DigestUpdate(self.0.as_ptr(), data.as_ptr().cast(), data.len()) };
        assert!(succeeded(code), "a message ends before its output");
    }

    /// Fills `out` with the digest of SHA-3.
    ///
    /// # Panics
    /// If `out` does not have the length of the digest, or for SHAKE.
    pub fn finish(self, out: &mut [u8]) {
        // SAFETY: the context is live and has a function.
        let digest_bytes = unsafe { aws::EVP_MD_CTX_size(self.0.as_ptr()) };
        assert_eq!(out.len(), digest_bytes, "the length of the digest");
        // SAFETY: the context is live, and `out` has the length of the digest. A null pointer
        // refuses that length.
        let code =
            unsafe { aws::EVP_DigestFinal_ex(self.0.as_ptr(), out.as_mut_ptr(), ptr::null_mut()) };
        assert!(succeeded(code), "SHAKE has no digest of a fixed length");
    }

    /// Fills `out` with the next bytes of the output of SHAKE.
    ///
    /// # Panics
    /// For SHA-3.
    pub fn squeeze(&mut self, out: &mut [u8]) {
        // SAFETY: the context is live, and `out` has the length passed.
        let code = unsafe { aws::EVP_DigestSqueeze(self.0.as_ptr(), out.as_mut_ptr(), out.len()) };
        assert!(succeeded(code), "SHA-3 has one digest");
    }
}

const NO_MEMORY: &str = "there is memory for the state of a hash function";

impl Clone for Keccak {
    fn clone(&self) -> Self {
        let copy = Self::empty();
        // SAFETY: both contexts are live, and `copy` owns nothing yet.
        let code = unsafe { aws::EVP_MD_CTX_copy_ex(copy.0.as_ptr(), self.0.as_ptr()) };
        assert!(succeeded(code), "{NO_MEMORY}");
        copy
    }
}
