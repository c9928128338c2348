//! ML-KEM (FIPS 203), computed by AWS-LC. A secret key is its seed d ‖ z of 64 bytes; the expanded key is made of it once, as is a public
//! key of its bytes.
//!
//! aws-lc-rs takes the randomness of a key and of an encapsulation from the system. The functions of AWS-LC that take it from
//! their caller are called here directly.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr;

use aws_lc_sys as aws;
use zeroize::Zeroizing;

use super::{Algorithm, KemError};
use crate::aws::{Owned, succeeded};

/// Bytes of a seed of a key.
pub const SEED_BYTES: usize = 64;
/// Bytes of the seed of an encapsulation.
pub const ENCAPSULATION_SEED_BYTES: usize = 32;
/// Bytes of a secret.
pub const SECRET_BYTES: usize = 32;
/// Bytes of the longest expanded key: that of ML-KEM-1024.
const EXPANDED_MAX: usize = 3168;

/// A parameter set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Set {
    /// ML-KEM-512, of category 1.
    MlKem512,
    /// ML-KEM-768, of category 3.
    MlKem768,
    /// ML-KEM-1024, of category 5.
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

    /// Bytes of an encapsulation key.
    #[must_use]
    pub const fn encapsulation_key_bytes(self) -> usize {
        self.algorithm().encapsulation_key_bytes()
    }

    /// Bytes of a ciphertext.
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

    /// The key of AWS-LC that `bytes` are, which have the right length.
    pub(super) fn public(self, bytes: &[u8]) -> Public {
        assert_eq!(bytes.len(), self.encapsulation_key_bytes(), "the caller has looked at it");
        let (data, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: `bytes` has the length passed, and AWS-LC makes a copy.
        let key =
            unsafe { Owned::new(aws::EVP_PKEY_kem_new_raw_public_key(self.nid(), data, len)) };
        Public(key.expect("only the length is looked at, and it is right"))
    }

    /// The key of AWS-LC of `seed`.
    pub(super) fn secret(self, seed: &[u8; SEED_BYTES]) -> Secret {
        let (mut key, mut seed_len) = (ptr::null_mut(), seed.len());
        // SAFETY: there is no engine, the context is alive, `seed` has `seed_len` bytes, and `key` is null, so that a new key is put there.
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

/// A public key in memory of AWS-LC.
pub(super) struct Public(Owned<aws::EVP_PKEY>);

impl Public {
    /// Writes the ciphertext and the secret that `seed` makes. Whether there are any: the coefficients of the key have to be below the
    /// modulus (FIPS 203 §7.2). The lengths are those of the set.
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
        // SAFETY: the context is alive, and each pointer is to as many bytes as the length beside it says.
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

/// A key pair in memory of AWS-LC, which wipes what it frees.
pub(super) struct Secret(Owned<aws::EVP_PKEY>);

impl Secret {
    /// Writes the encapsulation key to `bytes`, which have its length.
    pub(super) fn write_public(&self, bytes: &mut [u8]) {
        let (key, mut len) = (self.0.as_ptr(), bytes.len());
        // SAFETY: the key is alive, and `bytes` has room for `len` bytes.
        let written =
            unsafe { aws::EVP_PKEY_get_raw_public_key(key, bytes.as_mut_ptr(), &mut len) };
        assert_eq!((written, len), (1, bytes.len()), "a key from a seed has both halves");
    }

    /// The key as FIPS 203 expands it.
    fn expanded(&self) -> Zeroizing<Vec<u8>> {
        let (key, mut len) = (self.0.as_ptr(), EXPANDED_MAX);
        let mut bytes = Zeroizing::new(vec![0; len]);
        // SAFETY: the key is alive, and `bytes` has room for `len` bytes.
        let written =
            unsafe { aws::EVP_PKEY_get_raw_private_key(key, bytes.as_mut_ptr(), &mut len) };
        assert!(written == 1 && len <= EXPANDED_MAX, "a key from a seed has both halves");
        bytes.truncate(len);
        bytes
    }

    /// The secret in `ciphertext`, which has the length of the set.
    pub(super) fn decapsulate(&self, ciphertext: &[u8]) -> Zeroizing<[u8; SECRET_BYTES]> {
        let context = context(&self.0);
        let (mut secret, mut len) = (Zeroizing::new([0; SECRET_BYTES]), SECRET_BYTES);
        // SAFETY: the context is alive, `ciphertext` has the length passed, and `secret` has room for `len` bytes. AWS-LC
        // reads the ciphertext only: some of its bindings have no const there.
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

/// One operation with `key`, which it has a reference to.
fn context(key: &Owned<aws::EVP_PKEY>) -> Owned<aws::EVP_PKEY_CTX> {
    // SAFETY: the key is alive. There is no engine.
    let context = unsafe { Owned::new(aws::EVP_PKEY_CTX_new(key.as_ptr(), ptr::null_mut())) };
    context.expect("there is memory")
}

/// The secret half of a key pair.
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
    /// A new key.
    #[must_use]
    pub fn generate(set: Set) -> Self {
        Self::from_seed(set, &crate::rand::secret())
    }

    /// The key of `seed`, which is d ‖ z of FIPS 203, 32 bytes each.
    #[must_use]
    pub fn from_seed(set: Set, seed: &[u8; SEED_BYTES]) -> Self {
        Self { set, key: set.secret(seed), seed: Zeroizing::new(*seed) }
    }

    /// The key of a seed of [`SEED_BYTES`].
    pub fn from_raw(set: Set, seed: &[u8]) -> Result<Self, KemError> {
        let invalid = KemError::InvalidKey { algorithm: set.algorithm() };
        Ok(Self::from_seed(set, seed.try_into().map_err(|_| invalid)?))
    }

    /// Whether `bytes` are the expanded key, in time that does not depend on how many of them are.
    pub(super) fn expands_to(&self, bytes: &[u8]) -> bool {
        crate::equal(&self.key.expanded(), bytes)
    }

    /// The public half.
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

/// The public half of a key pair.
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
    /// The key that `bytes` are.
    ///
    /// # Errors
    /// [`KemError::InvalidKey`]: they have another length, or a coefficient is not below the modulus (FIPS 203 §7.2).
    pub fn from_raw(set: Set, bytes: &[u8]) -> Result<Self, KemError> {
        if bytes.len() != set.encapsulation_key_bytes() || !has_coefficients(bytes) {
            return Err(KemError::InvalidKey { algorithm: set.algorithm() });
        }
        Ok(Self { set, key: set.public(bytes), bytes: bytes.to_vec() })
    }

    /// The ciphertext and the secret that `seed` makes, which is m of FIPS 203: fresh randomness for each call, and as secret as what it
    /// makes.
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

/// Whether every coefficient in the encoding of a key, three bytes a pair of them, is below q. Behind them are the 32 bytes of ρ.
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
