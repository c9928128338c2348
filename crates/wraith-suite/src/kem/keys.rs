//! Keys of every KEM, by algorithm.

use super::hybrid::{self, Hybrid};
use super::ml_kem::{self, Set};
use super::{Algorithm, DecapsulationKey, EncapsulationKey, KemError, formats};
use crate::Backend;

/// Family of an algorithm, with its parameters.
enum Family {
    MlKem(Set),
    Hybrid(Hybrid),
}

impl Algorithm {
    /// Generates a key.
    ///
    /// # Errors
    /// [`KemError::Failed`].
    pub fn generate(self) -> Result<Box<dyn DecapsulationKey>, KemError> {
        Ok(match self.family() {
            Family::MlKem(set) => Box::new(ml_kem::DecapsulationKey::generate(set)),
            Family::Hybrid(hybrid) => Box::new(hybrid::DecapsulationKey::generate(hybrid)),
        })
    }

    /// Creates a key from a seed: 64 bytes for ML-KEM, 96 for X25519MLKEM768, 32 for X-Wing.
    ///
    /// # Errors
    /// [`KemError::InvalidKey`] if the length is wrong.
    pub fn decapsulation_key(self, seed: &[u8]) -> Result<Box<dyn DecapsulationKey>, KemError> {
        Ok(match self.family() {
            Family::MlKem(set) => Box::new(ml_kem::DecapsulationKey::from_raw(set, seed)?),
            Family::Hybrid(hybrid) => Box::new(hybrid::DecapsulationKey::from_raw(hybrid, seed)?),
        })
    }

    /// Parses a private key for this algorithm in PKCS #8 (DER): the output of
    /// [`DecapsulationKey::to_pkcs8`], or for ML-KEM the seed with the expanded key. An expanded
    /// key without its seed is rejected.
    ///
    /// # Errors
    /// [`KemError::InvalidKey`], also if an expanded key or public key in it does not match the
    /// seed.
    pub fn decapsulation_key_pkcs8(
        self,
        der: &[u8],
    ) -> Result<Box<dyn DecapsulationKey>, KemError> {
        let invalid = KemError::InvalidKey { algorithm: self };
        let found = formats::read_pkcs8(self, der).ok_or(invalid)?;
        let key = self.decapsulation_key(found.seed)?;
        if let Some(expanded) = found.expanded {
            let Family::MlKem(set) = self.family() else { return Err(invalid) };
            if !ml_kem::DecapsulationKey::from_raw(set, found.seed)?.expands_to(expanded) {
                return Err(invalid);
            }
        }
        match found.public.is_none_or(|public| public == key.encapsulation_key().to_raw()) {
            true => Ok(key),
            false => Err(invalid),
        }
    }

    /// Parses a public key for this algorithm in SubjectPublicKeyInfo (DER).
    ///
    /// # Errors
    /// [`KemError::InvalidKey`].
    pub fn encapsulation_key_spki(self, der: &[u8]) -> Result<Box<dyn EncapsulationKey>, KemError> {
        let invalid = KemError::InvalidKey { algorithm: self };
        self.encapsulation_key(formats::read_spki(self, der).ok_or(invalid)?)
    }

    /// Parses a raw public key of [`Algorithm::encapsulation_key_bytes`] bytes.
    ///
    /// # Errors
    /// [`KemError::InvalidKey`].
    pub fn encapsulation_key(self, raw: &[u8]) -> Result<Box<dyn EncapsulationKey>, KemError> {
        Ok(match self.family() {
            Family::MlKem(set) => Box::new(ml_kem::EncapsulationKey::from_raw(set, raw)?),
            Family::Hybrid(hybrid) => Box::new(hybrid::EncapsulationKey::from_raw(hybrid, raw)?),
        })
    }

    /// Returns the implementation on this processor.
    #[must_use]
    pub fn backend(self) -> Backend {
        match self.family() {
            Family::MlKem(_) | Family::Hybrid(_) => Backend::AwsLc,
        }
    }

    const fn family(self) -> Family {
        match self {
            Self::MlKem512 => Family::MlKem(Set::MlKem512),
            Self::MlKem768 => Family::MlKem(Set::MlKem768),
            Self::MlKem1024 => Family::MlKem(Set::MlKem1024),
            Self::X25519MlKem768 => Family::Hybrid(Hybrid::X25519MlKem768),
            Self::XWing => Family::Hybrid(Hybrid::XWing),
        }
    }
}
