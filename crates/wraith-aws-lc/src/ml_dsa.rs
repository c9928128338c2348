//! ML-DSA (FIPS 204), pure and hedged. A secret key is its 32-byte seed ξ. A context has at most 255
//! bytes.

use std::ffi::c_int;
use std::ptr;

use aws_lc_sys as aws;
use zeroize::Zeroizing;

use crate::object::{Owned, succeeded};

/// Length of a seed in bytes.
pub const SEED_BYTES: usize = 32;
/// Length of μ, the representative of a message, in bytes.
pub const MU_BYTES: usize = 64;

/// A parameter set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Set {
    /// ML-DSA-44, security category 2.
    MlDsa44,
    /// ML-DSA-65, security category 3.
    MlDsa65,
    /// ML-DSA-87, security category 5.
    MlDsa87,
}

impl Set {
    /// Returns the length of a public key in bytes.
    #[must_use]
    pub const fn public_key_bytes(self) -> usize {
        match self {
            Self::MlDsa44 => 1312,
            Self::MlDsa65 => 1952,
            Self::MlDsa87 => 2592,
        }
    }

    /// Returns the length of a signature in bytes.
    #[must_use]
    pub const fn signature_bytes(self) -> usize {
        match self {
            Self::MlDsa44 => 2420,
            Self::MlDsa65 => 3309,
            Self::MlDsa87 => 4627,
        }
    }

    /// Returns the length of an expanded key in bytes (FIPS 204, table 2).
    const fn expanded_bytes(self) -> usize {
        match self {
            Self::MlDsa44 => 2560,
            Self::MlDsa65 => 4032,
            Self::MlDsa87 => 4896,
        }
    }

    const fn nid(self) -> i32 {
        match self {
            Self::MlDsa44 => aws::NID_MLDSA44,
            Self::MlDsa65 => aws::NID_MLDSA65,
            Self::MlDsa87 => aws::NID_MLDSA87,
        }
    }
}

/// A key: a public key, or both halves.
pub struct Key {
    set: Set,
    key: Owned<aws::EVP_PKEY>,
}

impl Key {
    /// Derives both halves from `seed`. `None` if out of memory.
    #[must_use]
    pub fn from_seed(set: Set, seed: &[u8; SEED_BYTES]) -> Option<Self> {
        let (data, len) = (seed.as_ptr(), seed.len());
        // SAFETY: `seed` has the length passed.
        let key =
            unsafe { Owned::new(aws::EVP_PKEY_pqdsa_new_raw_private_key(set.nid(), data, len)) };
        Some(Self { set, key: key? })
    }

    /// Parses the bytes of a public key. Every value of the right length is valid. `None` for
    /// another length, or if out of memory.
    #[must_use]
    pub fn from_public(set: Set, bytes: &[u8]) -> Option<Self> {
        if bytes.len() != set.public_key_bytes() {
            return None;
        }
        let (data, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: `bytes` has the length passed.
        let key =
            unsafe { Owned::new(aws::EVP_PKEY_pqdsa_new_raw_public_key(set.nid(), data, len)) };
        Some(Self { set, key: key? })
    }

    /// Returns the bytes of the public half.
    #[must_use]
    pub fn public(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.set.public_key_bytes()];
        self.write_raw(aws::EVP_PKEY_get_raw_public_key, &mut bytes);
        bytes
    }

    /// Returns the expanded private half of FIPS 204.
    ///
    /// # Panics
    /// If the key is a public key.
    #[must_use]
    pub fn expanded(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(vec![0; self.set.expanded_bytes()]);
        self.write_raw(aws::EVP_PKEY_get_raw_private_key, &mut bytes);
        bytes
    }

    /// Fills `out` with the half of the key that `get` writes.
    fn write_raw(
        &self,
        get: unsafe extern "C" fn(*const aws::EVP_PKEY, *mut u8, *mut usize) -> c_int,
        out: &mut [u8],
    ) {
        let mut len = out.len();
        // SAFETY: the key is live, and `out` has room for `len` bytes.
        let written = unsafe { get(self.key.as_ptr(), out.as_mut_ptr(), &mut len) };
        assert_eq!((written, len), (1, out.len()), "the key has this half");
    }

    /// Signs `message` in `context`. `None` if out of memory, or if the key is a public key.
    #[must_use]
    pub fn sign(&self, context: &[u8], message: &[u8]) -> Option<Vec<u8>> {
        let mut signature = vec![0; self.set.signature_bytes()];
        let (out, mut len) = (signature.as_mut_ptr(), signature.len());
        let (data, data_len) = (message.as_ptr(), message.len());
        // SAFETY: the objects are live, and the buffers have the lengths passed.
        let is_made = unsafe {
            let operation = Owned::new(aws::EVP_MD_CTX_new())?;
            let (operation, key) = (operation.as_ptr(), self.key.as_ptr());
            let (mut parameters, none) = (ptr::null_mut(), ptr::null_mut());
            aws::EVP_DigestSignInit(operation, &mut parameters, ptr::null(), none, key) == 1
                && set_context(parameters, context)
                && aws::EVP_DigestSign(operation, out, &mut len, data, data_len) == 1
        };
        (succeeded(is_made.into()) && len == signature.len()).then_some(signature)
    }

    /// Signs the message with this μ. `None` as for [`Self::sign`].
    #[must_use]
    pub fn sign_mu(&self, mu: &[u8; MU_BYTES]) -> Option<Vec<u8>> {
        let mut signature = vec![0; self.set.signature_bytes()];
        let (out, mut len) = (signature.as_mut_ptr(), signature.len());
        // SAFETY: the objects are live, and the buffers have the lengths passed.
        let is_made = unsafe {
            let operation = Owned::new(aws::EVP_PKEY_CTX_new(self.key.as_ptr(), ptr::null_mut()))?;
            aws::EVP_PKEY_sign_init(operation.as_ptr()) == 1
                && aws::EVP_PKEY_sign(operation.as_ptr(), out, &mut len, mu.as_ptr(), mu.len()) == 1
        };
        (succeeded(is_made.into()) && len == signature.len()).then_some(signature)
    }

    /// Returns whether `signature` over `message` in `context` is valid.
    #[must_use]
    pub fn verify(&self, context: &[u8], message: &[u8], signature: &[u8]) -> bool {
        let (sig, sig_len) = (signature.as_ptr(), signature.len());
        let (data, data_len) = (message.as_ptr(), message.len());
        // SAFETY: the objects are live, and the buffers have the lengths passed.
        let is_good = unsafe {
            let Some(operation) = Owned::new(aws::EVP_MD_CTX_new()) else { return false };
            let (operation, key) = (operation.as_ptr(), self.key.as_ptr());
            let (mut parameters, none) = (ptr::null_mut(), ptr::null_mut());
            aws::EVP_DigestVerifyInit(operation, &mut parameters, ptr::null(), none, key) == 1
                && set_context(parameters, context)
                && aws::EVP_DigestVerify(operation, sig, sig_len, data, data_len) == 1
        };
        succeeded(is_good.into())
    }

    /// Returns whether `signature` over the message with this μ is valid.
    #[must_use]
    pub fn verify_mu(&self, mu: &[u8; MU_BYTES], signature: &[u8]) -> bool {
        let (sig, sig_len) = (signature.as_ptr(), signature.len());
        // SAFETY: the objects are live, and the buffers have the lengths passed.
        let is_good = unsafe {
            let operation = Owned::new(aws::EVP_PKEY_CTX_new(self.key.as_ptr(), ptr::null_mut()));
            let Some(operation) = operation else { return false };
            let operation = operation.as_ptr();
            aws::EVP_PKEY_verify_init(operation) == 1
                && aws::EVP_PKEY_verify(operation, sig, sig_len, mu.as_ptr(), mu.len()) == 1
        };
        succeeded(is_good.into())
    }
}

/// Sets the context of an operation. Returns whether it succeeded.
///
/// # Safety
/// `parameters` belong to a live operation with an ML-DSA key.
unsafe fn set_context(parameters: *mut aws::EVP_PKEY_CTX, context: &[u8]) -> bool {
    let (data, len) = (context.as_ptr(), context.len());
    // SAFETY: the caller guarantees that the operation is live. `context` has the length passed,
    // and is copied.
    context.is_empty()
        || unsafe { aws::EVP_PKEY_CTX_set_signature_context(parameters, data, len) } == 1
}
