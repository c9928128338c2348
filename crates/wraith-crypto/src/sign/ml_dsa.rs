//! ML-DSA (FIPS 204), pure and hedged, computed by AWS-LC.
//!
//! A secret key is its 32-byte seed ξ, which is expanded once. PKCS #8 also holds the seed,
//! optionally with the expanded key (RFC 9881 §6). A context has at most 255 bytes, and is empty by
//! default.
#![allow(unsafe_code)]

mod mu;

use std::fmt;
use std::ptr;

use aws_lc_sys as aws;
use zeroize::Zeroizing;

pub use mu::{MU_BYTES, Mu};

use super::{Algorithm, SignError, context_bytes};
use crate::aws::{Owned, succeeded};
use crate::encoding::oid;
use crate::encoding::pkcs8::PrivateKeyInfo;
use crate::encoding::seed::{self, Seed};
use crate::encoding::spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};

/// Length of a seed in bytes.
pub const SEED_BYTES: usize = 32;

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

    const fn algorithm(self) -> Algorithm {
        match self {
            Self::MlDsa44 => Algorithm::MlDsa44,
            Self::MlDsa65 => Algorithm::MlDsa65,
            Self::MlDsa87 => Algorithm::MlDsa87,
        }
    }

    const fn nid(self) -> i32 {
        match self {
            Self::MlDsa44 => aws::NID_MLDSA44,
            Self::MlDsa65 => aws::NID_MLDSA65,
            Self::MlDsa87 => aws::NID_MLDSA87,
        }
    }

    const fn oid(self) -> [u8; 9] {
        oid::nist_signature(match self {
            Self::MlDsa44 => 17,
            Self::MlDsa65 => 18,
            Self::MlDsa87 => 19,
        })
    }

    const fn invalid_key(self) -> SignError {
        SignError::InvalidKey { algorithm: self.algorithm() }
    }

    const fn failed(self) -> SignError {
        SignError::Failed { algorithm: self.algorithm() }
    }
}

/// A private key.
pub struct SigningKey {
    set: Set,
    key: Owned<aws::EVP_PKEY>,
    seed: Zeroizing<[u8; SEED_BYTES]>,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("set", &self.set).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Generates a key.
    pub fn generate(set: Set) -> Result<Self, SignError> {
        Self::from_seed(set, &crate::rand::secret())
    }

    /// Derives the key from `seed`.
    pub fn from_seed(set: Set, seed: &[u8; SEED_BYTES]) -> Result<Self, SignError> {
        let (data, len) = (seed.as_ptr(), seed.len());
        // SAFETY: `seed` has the length passed.
        let key =
            unsafe { Owned::new(aws::EVP_PKEY_pqdsa_new_raw_private_key(set.nid(), data, len)) };
        Ok(Self { set, key: key.ok_or(set.failed())?, seed: Zeroizing::new(*seed) })
    }

    /// Derives the key from a seed of [`SEED_BYTES`] bytes.
    pub fn from_raw(set: Set, seed: &[u8]) -> Result<Self, SignError> {
        Self::from_seed(set, seed.try_into().map_err(|_| set.invalid_key())?)
    }

    /// Parses a PKCS #8 (DER) with a seed, or with the seed and the expanded key. An expanded key
    /// without its seed is rejected.
    ///
    /// # Errors
    /// [`SignError::InvalidKey`], also if an expanded key or public key in it does not match the
    /// seed.
    pub fn from_pkcs8(set: Set, der: &[u8]) -> Result<Self, SignError> {
        let info = PrivateKeyInfo::from_der(der).map_err(|_| set.invalid_key())?;
        if info.algorithm != AlgorithmIdentifier::new(&set.oid()) {
            return Err(set.invalid_key());
        }
        let Seed { seed, expanded } =
            Seed::from_der(info.private_key).map_err(|_| set.invalid_key())?;
        let key = Self::from_raw(set, seed)?;
        let belongs = expanded.is_none_or(|bytes| crate::equal(&key.expanded(), bytes))
            && info.public_key.is_none_or(|public| public == public_bytes(set, &key.key));
        if belongs { Ok(key) } else { Err(set.invalid_key()) }
    }

    /// Returns the expanded key of FIPS 204.
    fn expanded(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(vec![0; self.set.expanded_bytes()]);
        let (key, mut len) = (self.key.as_ptr(), bytes.len());
        // SAFETY: the key is live, and `bytes` has room for `len` bytes.
        let written =
            unsafe { aws::EVP_PKEY_get_raw_private_key(key, bytes.as_mut_ptr(), &mut len) };
        assert_eq!((written, len), (1, bytes.len()), "a key of a seed has been expanded");
        bytes
    }

    /// Signs `message` in `context`, the purpose of the signature.
    ///
    /// # Errors
    /// [`SignError::Context`] if the context is longer than [`CONTEXT_MAX`](super::CONTEXT_MAX).
    pub fn sign_with_context(&self, context: &[u8], message: &[u8]) -> Result<Vec<u8>, SignError> {
        context_bytes(context)?;
        let mut signature = vec![0; self.set.signature_bytes()];
        let (out, mut len) = (signature.as_mut_ptr(), signature.len());
        let (data, data_len) = (message.as_ptr(), message.len());
        // SAFETY: the objects are live, and the buffers have the lengths passed.
        let is_made = unsafe {
            let operation = Owned::new(aws::EVP_MD_CTX_new()).ok_or(self.set.failed())?;
            let (operation, key) = (operation.as_ptr(), self.key.as_ptr());
            let mut parameters = ptr::null_mut();
            let none = ptr::null_mut();
            aws::EVP_DigestSignInit(operation, &mut parameters, ptr::null(), none, key) == 1
                && set_context(parameters, context)
                && aws::EVP_DigestSign(operation, out, &mut len, data, data_len) == 1
        };
        let is_made = succeeded(is_made.into()) && len == signature.len();
        if is_made { Ok(signature) } else { Err(self.set.failed()) }
    }

    /// Signs the message with this μ, computed by [`VerifyingKey::mu`]. The message may have been
    /// hashed in pieces, or elsewhere.
    ///
    /// # Errors
    /// [`SignError::Failed`] if out of memory.
    pub fn sign_mu(&self, mu: &[u8; MU_BYTES]) -> Result<Vec<u8>, SignError> {
        let mut signature = vec![0; self.set.signature_bytes()];
        let (out, mut len) = (signature.as_mut_ptr(), signature.len());
        // SAFETY: the objects are live, and the buffers have the lengths passed.
        let is_made = unsafe {
            let operation = Owned::new(aws::EVP_PKEY_CTX_new(self.key.as_ptr(), ptr::null_mut()));
            let operation = operation.ok_or(self.set.failed())?;
            aws::EVP_PKEY_sign_init(operation.as_ptr()) == 1
                && aws::EVP_PKEY_sign(operation.as_ptr(), out, &mut len, mu.as_ptr(), mu.len()) == 1
        };
        let is_made = succeeded(is_made.into()) && len == signature.len();
        if is_made { Ok(signature) } else { Err(self.set.failed()) }
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> VerifyingKey {
        let bytes = public_bytes(self.set, &self.key);
        VerifyingKey::from_raw(self.set, &bytes).expect("a key has a public half")
    }
}

impl super::SigningKey for SigningKey {
    fn algorithm(&self) -> Algorithm {
        self.set.algorithm()
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
        self.sign_with_context(&[], message)
    }

    fn verifying_key(&self) -> Box<dyn super::VerifyingKey> {
        Box::new(self.public())
    }

    fn to_raw(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.seed.to_vec())
    }

    fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        let inside = seed::to_der(&self.seed[..]);
        PrivateKeyInfo::new(AlgorithmIdentifier::new(&self.set.oid()), &inside).to_der()
    }
}

/// A public key.
pub struct VerifyingKey {
    set: Set,
    key: Owned<aws::EVP_PKEY>,
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyingKey").field("set", &self.set).finish_non_exhaustive()
    }
}

impl VerifyingKey {
    /// Parses the bytes of a public key. Every value of the right length is valid.
    pub fn from_raw(set: Set, bytes: &[u8]) -> Result<Self, SignError> {
        if bytes.len() != set.public_key_bytes() {
            return Err(set.invalid_key());
        }
        let (data, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: `bytes` has the length passed.
        let key =
            unsafe { Owned::new(aws::EVP_PKEY_pqdsa_new_raw_public_key(set.nid(), data, len)) };
        Ok(Self { set, key: key.ok_or(set.failed())? })
    }

    /// Parses a key in SubjectPublicKeyInfo (DER, RFC 9881 §4).
    pub fn from_spki(set: Set, der: &[u8]) -> Result<Self, SignError> {
        let info = SubjectPublicKeyInfo::from_der(der).map_err(|_| set.invalid_key())?;
        if info.algorithm != AlgorithmIdentifier::new(&set.oid()) {
            return Err(set.invalid_key());
        }
        Self::from_raw(set, info.key)
    }

    /// Verifies a signature over `message` in `context`.
    pub fn verify_with_context(
        &self,
        context: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), SignError> {
        context_bytes(context)?;
        let (sig, sig_len) = (signature.as_ptr(), signature.len());
        let (data, data_len) = (message.as_ptr(), message.len());
        // SAFETY: the objects are live, and the buffers have the lengths passed.
        let is_good = unsafe {
            let operation = Owned::new(aws::EVP_MD_CTX_new()).ok_or(self.set.failed())?;
            let (operation, key) = (operation.as_ptr(), self.key.as_ptr());
            let mut parameters = ptr::null_mut();
            let none = ptr::null_mut();
            aws::EVP_DigestVerifyInit(operation, &mut parameters, ptr::null(), none, key) == 1
                && set_context(parameters, context)
                && aws::EVP_DigestVerify(operation, sig, sig_len, data, data_len) == 1
        };
        succeeded(is_good.into()).then_some(()).ok_or(SignError::Unauthentic)
    }

    /// Starts the computation of μ for a message in `context`. [`SigningKey::sign_mu`] and
    /// [`Self::verify_mu`] take μ instead of the message.
    ///
    /// # Errors
    /// [`SignError::Context`] if the context is longer than [`CONTEXT_MAX`](super::CONTEXT_MAX).
    pub fn mu(&self, context: &[u8]) -> Result<Mu, SignError> {
        Mu::new(&public_bytes(self.set, &self.key), context)
    }

    /// Verifies a signature over the message with this μ, computed by [`Self::mu`].
    ///
    /// # Errors
    /// [`SignError::Unauthentic`].
    pub fn verify_mu(&self, mu: &[u8; MU_BYTES], signature: &[u8]) -> Result<(), SignError> {
        let (sig, sig_len) = (signature.as_ptr(), signature.len());
        // SAFETY: the objects are live, and the buffers have the lengths passed.
        let is_good = unsafe {
            let operation = Owned::new(aws::EVP_PKEY_CTX_new(self.key.as_ptr(), ptr::null_mut()));
            let operation = operation.ok_or(self.set.failed())?;
            aws::EVP_PKEY_verify_init(operation.as_ptr()) == 1
                && aws::EVP_PKEY_verify(operation.as_ptr(), sig, sig_len, mu.as_ptr(), mu.len())
                    == 1
        };
        succeeded(is_good.into()).then_some(()).ok_or(SignError::Unauthentic)
    }
}

impl super::VerifyingKey for VerifyingKey {
    fn algorithm(&self) -> Algorithm {
        self.set.algorithm()
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), SignError> {
        self.verify_with_context(&[], message, signature)
    }

    fn to_raw(&self) -> Vec<u8> {
        public_bytes(self.set, &self.key)
    }

    fn to_spki(&self) -> Vec<u8> {
        let oid = self.set.oid();
        let algorithm = AlgorithmIdentifier::new(&oid);
        SubjectPublicKeyInfo { algorithm, key: &self.to_raw() }.to_der()
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

fn public_bytes(set: Set, key: &Owned<aws::EVP_PKEY>) -> Vec<u8> {
    let mut bytes = vec![0; set.public_key_bytes()];
    let mut len = bytes.len();
    // SAFETY: the key is live, and `bytes` has room for `len` bytes.
    let written =
        unsafe { aws::EVP_PKEY_get_raw_public_key(key.as_ptr(), bytes.as_mut_ptr(), &mut len) };
    assert_eq!((written, len), (1, bytes.len()), "a key has its public half");
    bytes
}
