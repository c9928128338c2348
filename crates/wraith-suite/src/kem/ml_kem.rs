//! ML-KEM (FIPS 203), computed by AWS-LC. A secret key is its 64-byte seed d ‖ z. Each key is
//! expanded once, on construction.
//!
//! The functions on seeds are for test vectors, and for protocols that fix the randomness.

use wraith_aws_lc::ml_kem as aws;
use zeroize::Zeroizing;

use super::{Algorithm, KemError};

pub use aws::{ENCAPSULATION_SEED_BYTES, SECRET_BYTES, SEED_BYTES, Set};

/// Returns the name of a parameter set.
pub(super) const fn algorithm(set: Set) -> Algorithm {
    match set {
        Set::MlKem512 => Algorithm::MlKem512,
        Set::MlKem768 => Algorithm::MlKem768,
        _ => Algorithm::MlKem1024,
    }
}

/// A private key.
pub struct DecapsulationKey {
    set: Set,
    key: aws::SecretKey,
    seed: Zeroizing<[u8; SEED_BYTES]>,
}

wraith_crypto::redacted_debug!(DecapsulationKey, set);

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
        let invalid = KemError::InvalidKey { algorithm: algorithm(set) };
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
        algorithm(self.set)
    }

    fn encapsulation_key(&self) -> Box<dyn super::EncapsulationKey> {
        Box::new(self.public())
    }

    fn decapsulate(&self, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>, KemError> {
        checked_length(algorithm(self.set), ciphertext)?;
        Ok(Zeroizing::new(self.key.decapsulate(ciphertext).to_vec()))
    }

    fn to_raw(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.seed.to_vec())
    }
}

/// A public key.
pub struct EncapsulationKey {
    set: Set,
    key: aws::PublicKey,
    bytes: Vec<u8>,
}

wraith_crypto::redacted_debug!(EncapsulationKey, set);

impl EncapsulationKey {
    /// Parses the bytes of a public key.
    ///
    /// # Errors
    /// [`KemError::InvalidKey`] for another length, or if a coefficient is not below the modulus
    /// (FIPS 203 §7.2).
    pub fn from_raw(set: Set, bytes: &[u8]) -> Result<Self, KemError> {
        if bytes.len() != set.encapsulation_key_bytes() || !has_coefficients(bytes) {
            return Err(KemError::InvalidKey { algorithm: algorithm(set) });
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
            return Err(KemError::Failed { algorithm: algorithm(self.set) });
        }
        Ok((ciphertext, Zeroizing::new(secret.to_vec())))
    }
}

impl super::EncapsulationKey for EncapsulationKey {
    fn algorithm(&self) -> Algorithm {
        algorithm(self.set)
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
