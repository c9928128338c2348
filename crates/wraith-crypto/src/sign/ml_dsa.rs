//! ML-DSA (FIPS 204), pure and hedged, computed by AWS-LC. A secret key is its seed ξ of 32 bytes, also in PKCS #8 (RFC 9881 §6, where
//! the expanded key can stand beside it); the expanded key is made of it once. With a context of at most 255 bytes, which is empty unless given.
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

/// Bytes of a seed.
pub const SEED_BYTES: usize = 32;

/// A parameter set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Set {
    /// ML-DSA-44, of category 2.
    MlDsa44,
    /// ML-DSA-65, of category 3.
    MlDsa65,
    /// ML-DSA-87, of category 5.
    MlDsa87,
}

impl Set {
    /// Bytes of a public key.
    #[must_use]
    pub const fn public_key_bytes(self) -> usize {
        match self {
            Self::MlDsa44 => 1312,
            Self::MlDsa65 => 1952,
            Self::MlDsa87 => 2592,
        }
    }

    /// Bytes of a signature.
    #[must_use]
    pub const fn signature_bytes(self) -> usize {
        match self {
            Self::MlDsa44 => 2420,
            Self::MlDsa65 => 3309,
            Self::MlDsa87 => 4627,
        }
    }

    /// Bytes of an expanded key (FIPS 204, table 2).
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

/// The secret half of a key pair.
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
    /// A new key.
    pub fn generate(set: Set) -> Result<Self, SignError> {
        Self::from_seed(set, &crate::rand::secret())
    }

    /// The key of `seed`.
    pub fn from_seed(set: Set, seed: &[u8; SEED_BYTES]) -> Result<Self, SignError> {
        let (data, len) = (seed.as_ptr(), seed.len());
        // SAFETY: `seed` has the length passed.
        let key =
            unsafe { Owned::new(aws::EVP_PKEY_pqdsa_new_raw_private_key(set.nid(), data, len)) };
        Ok(Self { set, key: key.ok_or(set.failed())?, seed: Zeroizing::new(*seed) })
    }

    /// The key of a seed of [`SEED_BYTES`].
    pub fn from_raw(set: Set, seed: &[u8]) -> Result<Self, SignError> {
        Self::from_seed(set, seed.try_into().map_err(|_| set.invalid_key())?)
    }

    /// The key of a PKCS #8 (DER) with a seed, or with the seed and the expanded key. An expanded key without its seed is refused.
    ///
    /// # Errors
    /// [`SignError::InvalidKey`], also if an expanded or a public key in it is not that of the seed.
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

    /// The key as FIPS 204 expands it.
    fn expanded(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(vec![0; self.set.expanded_bytes()]);
        let (key, mut len) = (self.key.as_ptr(), bytes.len());
        // SAFETY: the key is alive, and `bytes` has room for `len` bytes.
        let written =
            unsafe { aws::EVP_PKEY_get_raw_private_key(key, bytes.as_mut_ptr(), &mut len) };
        assert_eq!((written, len), (1, bytes.len()), "a key of a seed has been expanded");
        bytes
    }

    /// A signature over `message` in `context`, which is what the signature is for.
    ///
    /// # Errors
    /// [`SignError::Context`]: it is longer than [`CONTEXT_MAX`](super::CONTEXT_MAX).
    pub fn sign_with_context(&self, context: &[u8], message: &[u8]) -> Result<Vec<u8>, SignError> {
        context_bytes(context)?;
        let mut signature = vec![0; self.set.signature_bytes()];
        let (out, mut len) = (signature.as_mut_ptr(), signature.len());
        let (data, data_len) = (message.as_ptr(), message.len());
        // SAFETY: the objects are alive, and the buffers have the lengths passed.
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

    /// A signature over the message that has this μ, which [`VerifyingKey::mu`] makes of it. So a message can be signed that was hashed piece
    /// by piece, or elsewhere.
    ///
    /// # Errors
    /// [`SignError::Failed`]: there was no memory.
    pub fn sign_mu(&self, mu: &[u8; MU_BYTES]) -> Result<Vec<u8>, SignError> {
        let mut signature = vec![0; self.set.signature_bytes()];
        let (out, mut len) = (signature.as_mut_ptr(), signature.len());
        // SAFETY: the objects are alive, and the buffers have the lengths passed.
        let is_made = unsafe {
            let operation = Owned::new(aws::EVP_PKEY_CTX_new(self.key.as_ptr(), ptr::null_mut()));
            let operation = operation.ok_or(self.set.failed())?;
            aws::EVP_PKEY_sign_init(operation.as_ptr()) == 1
                && aws::EVP_PKEY_sign(operation.as_ptr(), out, &mut len, mu.as_ptr(), mu.len()) == 1
        };
        let is_made = succeeded(is_made.into()) && len == signature.len();
        if is_made { Ok(signature) } else { Err(self.set.failed()) }
    }

    /// The public half.
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

/// The public half of a key pair.
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
    /// The key that `bytes` are. All of the right length are one.
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

    /// The key of a SubjectPublicKeyInfo (DER, RFC 9881 §4).
    pub fn from_spki(set: Set, der: &[u8]) -> Result<Self, SignError> {
        let info = SubjectPublicKeyInfo::from_der(der).map_err(|_| set.invalid_key())?;
        if info.algorithm != AlgorithmIdentifier::new(&set.oid()) {
            return Err(set.invalid_key());
        }
        Self::from_raw(set, info.key)
    }

    /// Whether `signature` is one over `message` in `context`.
    pub fn verify_with_context(
        &self,
        context: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> Result<(), SignError> {
        context_bytes(context)?;
        let (sig, sig_len) = (signature.as_ptr(), signature.len());
        let (data, data_len) = (message.as_ptr(), message.len());
        // SAFETY: the objects are alive, and the buffers have the lengths passed.
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

    /// What makes the μ of a message in `context`: [`SigningKey::sign_mu`] and [`Self::verify_mu`] take it in place of the message.
    ///
    /// # Errors
    /// [`SignError::Context`]: it is longer than [`CONTEXT_MAX`](super::CONTEXT_MAX).
    pub fn mu(&self, context: &[u8]) -> Result<Mu, SignError> {
        Mu::new(&public_bytes(self.set, &self.key), context)
    }

    /// Whether `signature` is one over the message that has this μ, made by [`Self::mu`].
    ///
    /// # Errors
    /// [`SignError::Unauthentic`]: it is not.
    pub fn verify_mu(&self, mu: &[u8; MU_BYTES], signature: &[u8]) -> Result<(), SignError> {
        let (sig, sig_len) = (signature.as_ptr(), signature.len());
        // SAFETY: the objects are alive, and the buffers have the lengths passed.
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

/// Gives an operation its context.
///
/// # Safety
/// `parameters` are those of a live operation with a key of ML-DSA.
unsafe fn set_context(parameters: *mut aws::EVP_PKEY_CTX, context: &[u8]) -> bool {
    let (data, len) = (context.as_ptr(), context.len());
    // SAFETY: the caller's promise, and `context` has the length passed. It is copied.
    context.is_empty()
        || unsafe { aws::EVP_PKEY_CTX_set_signature_context(parameters, data, len) } == 1
}

fn public_bytes(set: Set, key: &Owned<aws::EVP_PKEY>) -> Vec<u8> {
    let mut bytes = vec![0; set.public_key_bytes()];
    let mut len = bytes.len();
    // SAFETY: the key is alive, and `bytes` has room for `len` bytes.
    let written =
        unsafe { aws::EVP_PKEY_get_raw_public_key(key.as_ptr(), bytes.as_mut_ptr(), &mut len) };
    assert_eq!((written, len), (1, bytes.len()), "a key has its public half");
    bytes
}
