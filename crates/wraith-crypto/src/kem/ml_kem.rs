//! ML-KEM (FIPS 203), computed by AWS-LC. A secret key is its 64-byte seed d ‖ z. Each key is
//! expanded once, on construction.
//!
//! aws-lc-rs draws the randomness of keys and encapsulations from the system. In this module the
//! caller passes the randomness in, so the module calls functions of AWS-LC with that parameter.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr;

use aws_lc_sys as aws;
use zeroize::Zeroizing;

use super::{Algorithm, KemError};
use crate::aws::{Owned, succeeded};

/// Length of a key's seed in bytes.
pub const SEED_BYTES: usize = 64;
/// Length of an encapsulation seed in bytes.
pub const ENCAPSULATION_SEED_BYTES: usize = 32;
/// Length of a shared secret in bytes.
pub const SECRET_BYTES: usize = 32;
/// Maximum length of an expanded key in bytes: ML-KEM-1024's.
const EXPANDED_MAX: usize = 3168;

/// A parameter set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Set {
    /// ML-KEM-512, security category 1.
    MlKem512,
    /// ML-KEM-768, security category 3.
    MlKem768,
    /// ML-KEM-1024, security category 5.
    MlKem1024,
}

impl Set {
    pub(super) const fn algorithm(self) -> Algorithm {
        match self {
            Self::MlKem512 => Algorithm::MlKem512,
            Self::MlKem768 => Algorithm::MlKem768,
            Self::MlKem1024 => Algorithm::MlKem1024,
        }
    }

    /// Returns the length of an encapsulation key in bytes.
    #[must_use]
    pub const fn encapsulation_key_bytes(self) -> usize {
        self.algorithm().encapsulation_key_bytes()
    }

    /// Returns the length of a ciphertext in bytes.
    #[must_use]
    pub const fn ciphertext_bytes(self) -> usize {
        self.algorithm().ciphertext_bytes()
    }

    const fn nid(self) -> i32 {
        match self {
            Self::MlKem512 => aws::NID_MLKEM512,
            Self::MlKem768 => aws::NID_MLKEM768,
            Self::MlKem1024 => aws::NID_MLKEM1024,
        }
    }

    /// Creates AWS-LC's key from `bytes`, which must have the right length.
    pub(super) fn public(self, bytes: &[u8]) -> Public {
        assert_eq!(
            bytes.len(),
            self.encapsulation_key_bytes(),
            "the caller has checked the length"
        );
        let (data, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: `bytes` has the length passed, and AWS-LC copies it.
        let key =
            unsafe { Owned::new(aws::EVP_PKEY_kem_new_raw_public_key(self.nid(), data, len)) };
        Public(key.expect("AWS-LC checks only the length, which is right"))
    }

    /// Creates AWS-LC's key from `seed`.
    pub(super) fn secret(self, seed: &[u8; SEED_BYTES]) -> Secret {
        let (mut key, mut seed_len) = (ptr::null_mut(), seed.len());
        // SAFETY: a null engine is allowed, the context is live, and `seed` has `seed_len` bytes.
        // `key` is null, so AWS-LC stores a new key there.
        let key = unsafe {
            let none = ptr::null_mut();
            let context = Owned::new(aws::EVP_PKEY_CTX_new_id(aws::EVP_PKEY_KEM, none));
            let context = context.expect("there is memory");
            let context = context.as_ptr();
            let is_ready = aws::EVP_PKEY_CTX_kem_set_params(context, self.nid()) == 1
                && aws::EVP_PKEY_keygen_init(context) == 1;
            assert!(is_ready, "AWS-LC has ML-KEM");
            let seed = seed.as_ptr();
            let made = aws::EVP_PKEY_keygen_deterministic(context, &mut key, seed, &mut seed_len);
            assert_eq!(made, 1, "a seed of this length has a key");
            Owned::new(key)
        };
        Secret(key.expect("there is a key where one was made"))
    }
}

/// A public key held by AWS-LC.
pub(super) struct Public(Owned<aws::EVP_PKEY>);

impl Public {
    /// Writes the ciphertext and the shared secret for `seed`. Returns false if a coefficient of
    /// the key is not below the modulus (FIPS 203 §7.2). The buffers must have the lengths of the
    /// parameter set.
    #[must_use]
    pub(super) fn encapsulate(
        &self,
        seed: &[u8; ENCAPSULATION_SEED_BYTES],
        ciphertext: &mut [u8],
        secret: &mut [u8; SECRET_BYTES],
    ) -> bool {
        let context = context(&self.0);
        let (mut ciphertext_len, mut secret_len) = (ciphertext.len(), secret.len());
        let mut seed_len = seed.len();
        // SAFETY: the context is live, and each pointer is passed with its length.
        let made = unsafe {
            aws::EVP_PKEY_encapsulate_deterministic(
                context.as_ptr(),
                ciphertext.as_mut_ptr(),
                &mut ciphertext_len,
                secret.as_mut_ptr(),
                &mut secret_len,
                seed.as_ptr(),
                &mut seed_len,
            )
        };
        let is_whole = (ciphertext_len, secret_len) == (ciphertext.len(), secret.len());
        succeeded(made) && is_whole
    }
}

/// A key pair held by AWS-LC, which wipes memory that it frees.
pub(super) struct Secret(Owned<aws::EVP_PKEY>);

impl Secret {
    /// Writes the encapsulation key to `bytes`, which must have its length.
    pub(super) fn write_public(&self, bytes: &mut [u8]) {
        let (key, mut len) = (self.0.as_ptr(), bytes.len());
        // SAFETY: the key is live, and `bytes` has room for `len` bytes.
        let written =
            unsafe { aws::EVP_PKEY_get_raw_public_key(key, bytes.as_mut_ptr(), &mut len) };
        assert_eq!((written, len), (1, bytes.len()), "a key from a seed has both halves");
    }

    /// Returns the expanded key of FIPS 203.
    fn expanded(&self) -> Zeroizing<Vec<u8>> {
        let (key, mut len) = (self.0.as_ptr(), EXPANDED_MAX);
        let mut bytes = Zeroizing::new(vec![0; len]);
        // SAFETY: the key is live, and `bytes` has room for `len` bytes.
        let written =
            unsafe { aws::EVP_PKEY_get_raw_private_key(key, bytes.as_mut_ptr(), &mut len) };
        assert!(written == 1 && len <= EXPANDED_MAX, "a key from a seed has both halves");
        bytes.truncate(len);
        bytes
    }

    /// Returns the shared secret in `ciphertext`, which must have the length of the parameter set.
    pub(super) fn decapsulate(&self, ciphertext: &[u8]) -> Zeroizing<[u8; SECRET_BYTES]> {
        let context = context(&self.0);
        let (mut secret, mut len) = (Zeroizing::new([0; SECRET_BYTES]), SECRET_BYTES);
        // SAFETY: the context is live, `ciphertext` has the length passed, and `secret` has room
        // for `len` bytes. AWS-LC only reads the ciphertext; some of its bindings lack the const.
        let opened = unsafe {
            aws::EVP_PKEY_decapsulate(
                context.as_ptr(),
                secret.as_mut_ptr(),
                &mut len,
                ciphertext.as_ptr().cast_mut(),
                ciphertext.len(),
            )
        };
        assert_eq!(
            (opened, len),
            (1, SECRET_BYTES),
            "every ciphertext of this length has a secret"
        );
        secret
    }
}

/// Creates a context for one operation with `key`; it holds its own reference to the key.
fn context(key: &Owned<aws::EVP_PKEY>) -> Owned<aws::EVP_PKEY_CTX> {
    // SAFETY: the key is live, and a null engine is allowed.
    let context = unsafe { Owned::new(aws::EVP_PKEY_CTX_new(key.as_ptr(), ptr::null_mut())) };
    context.expect("there is memory")
}

/// A private key.
pub struct DecapsulationKey {
    set: Set,
    key: Secret,
    seed: Zeroizing<[u8; SEED_BYTES]>,
}

impl fmt::Debug for DecapsulationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecapsulationKey").field("set", &self.set).finish_non_exhaustive()
    }
}

impl DecapsulationKey {
    /// Generates a key.
    #[must_use]
    pub fn generate(set: Set) -> Self {
        Self::from_seed(set, &crate::rand::secret())
    }

    /// Derives the key from `seed`, d ‖ z of FIPS 203, 32 bytes each.
    #[must_use]
    pub fn from_seed(set: Set, seed: &[u8; SEED_BYTES]) -> Self {
        Self { set, key: set.secret(seed), seed: Zeroizing::new(*seed) }
    }

    /// Derives the key from a seed of [`SEED_BYTES`] bytes.
    pub fn from_raw(set: Set, seed: &[u8]) -> Result<Self, KemError> {
        let invalid = KemError::InvalidKey { algorithm: set.algorithm() };
        Ok(Self::from_seed(set, seed.try_into().map_err(|_| invalid)?))
    }

    /// Returns whether `bytes` equal the expanded key. The time does not depend on how many of them
    /// match.
    pub(super) fn expands_to(&self, bytes: &[u8]) -> bool {
        crate::equal(&self.key.expanded(), bytes)
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> EncapsulationKey {
        let mut bytes = vec![0; self.set.encapsulation_key_bytes()];
        self.key.write_public(&mut bytes);
        EncapsulationKey { set: self.set, key: self.set.public(&bytes), bytes }
    }
}

impl super::DecapsulationKey for DecapsulationKey {
    fn algorithm(&self) -> Algorithm {
        self.set.algorithm()
    }

    fn encapsulation_key(&self) -> Box<dyn super::EncapsulationKey> {
        Box::new(self.public())
    }

    fn decapsulate(&self, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>, KemError> {
        checked_length(self.set.algorithm(), ciphertext)?;
        Ok(Zeroizing::new(self.key.decapsulate(ciphertext).to_vec()))
    }

    fn to_raw(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.seed.to_vec())
    }
}

/// A public key.
pub struct EncapsulationKey {
    set: Set,
    key: Public,
    bytes: Vec<u8>,
}

impl fmt::Debug for EncapsulationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncapsulationKey").field("set", &self.set).finish_non_exhaustive()
    }
}

impl EncapsulationKey {
    /// Parses the bytes of a public key.
    ///
    /// # Errors
    /// [`KemError::InvalidKey`] for another length, or if a coefficient is not below the modulus
    /// (FIPS 203 §7.2).
    pub fn from_raw(set: Set, bytes: &[u8]) -> Result<Self, KemError> {
        if bytes.len() != set.encapsulation_key_bytes() || !has_coefficients(bytes) {
            return Err(KemError::InvalidKey { algorithm: set.algorithm() });
        }
        Ok(Self { set, key: set.public(bytes), bytes: bytes.to_vec() })
    }

    /// Returns the ciphertext and the shared secret for `seed`, m of FIPS 203. It has to be fresh
    /// randomness for each call, and as secret as the shared secret.
    pub fn encapsulate_from_seed(
        &self,
        seed: &[u8; ENCAPSULATION_SEED_BYTES],
    ) -> Result<(Vec<u8>, Zeroizing<Vec<u8>>), KemError> {
        let mut ciphertext = vec![0; self.set.ciphertext_bytes()];
        let mut secret = Zeroizing::new([0; SECRET_BYTES]);
        if !self.key.encapsulate(seed, &mut ciphertext, &mut secret) {
            return Err(KemError::Failed { algorithm: self.set.algorithm() });
        }
        Ok((ciphertext, Zeroizing::new(secret.to_vec())))
    }
}

impl super::EncapsulationKey for EncapsulationKey {
    fn algorithm(&self) -> Algorithm {
        self.set.algorithm()
    }

    fn encapsulate(&self) -> Result<(Vec<u8>, Zeroizing<Vec<u8>>), KemError> {
        self.encapsulate_from_seed(&crate::rand::secret())
    }

    fn to_raw(&self) -> Vec<u8> {
        self.bytes.clone()
    }
}

/// Returns whether every coefficient of an encoded key is below q. Three bytes encode two
/// coefficients; the last 32 bytes are ρ.
pub(super) fn has_coefficients(key: &[u8]) -> bool {
    const Q: u16 = 3329;
    key[..key.len() - 32].chunks_exact(3).all(|bytes| {
        let low = u16::from(bytes[0]) | u16::from(bytes[1] & 15) << 8;
        let high = u16::from(bytes[1] >> 4) | u16::from(bytes[2]) << 4;
        low < Q && high < Q
    })
}

pub(super) const fn checked_length(
    algorithm: Algorithm,
    ciphertext: &[u8],
) -> Result<(), KemError> {
    let found = ciphertext.len();
    if found == algorithm.ciphertext_bytes() {
        Ok(())
    } else {
        Err(KemError::CiphertextLength { algorithm, found })
    }
}
