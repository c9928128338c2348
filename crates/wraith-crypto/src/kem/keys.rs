//! Keys of every KEM by its name.

use super::hybrid::{self, Hybrid};
use super::ml_kem::{self, Set};
use super::{Algorithm, DecapsulationKey, EncapsulationKey, KemError};
use crate::Backend;

/// What computes an algorithm, and its parameters there.
enum Family {
    MlKem(Set),
    Hybrid(Hybrid),
}

impl Algorithm {
    /// A new key.
    ///
    /// # Errors
    /// [`KemError::Failed`].
    pub fn generate(self) -> Result<Box<dyn DecapsulationKey>, KemError> {
        Ok(match self.family() {
            Family::MlKem(set) => Box::new(ml_kem::DecapsulationKey::generate(set)),
            Family::Hybrid(hybrid) => Box::new(hybrid::DecapsulationKey::generate(hybrid)),
        })
    }

    /// The key of a seed: 64 bytes of ML-KEM, 96 of X25519MLKEM768, 32 of X-Wing.
    ///
    /// # Errors
    /// [`KemError::InvalidKey`]: the length is wrong.
    pub fn decapsulation_key(self, seed: &[u8]) -> Result<Box<dyn DecapsulationKey>, KemError> {
        Ok(match self.family() {
            Family::MlKem(set) => Box::new(ml_kem::DecapsulationKey::from_raw(set, seed)?),
            Family::Hybrid(hybrid) => Box::new(hybrid::DecapsulationKey::from_raw(hybrid, seed)?),
        })
    }

    /// The key that `raw` is, of [`Algorithm::encapsulation_key_bytes`].
    ///
    /// # Errors
    /// [`KemError::InvalidKey`].
    pub fn encapsulation_key(self, raw: &[u8]) -> Result<Box<dyn EncapsulationKey>, KemError> {
        Ok(match self.family() {
            Family::MlKem(set) => Box::new(ml_kem::EncapsulationKey::from_raw(set, raw)?),
            Family::Hybrid(hybrid) => Box::new(hybrid::EncapsulationKey::from_raw(hybrid, raw)?),
        })
    }

    /// What computes it here.
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
