//! Common code of Ed25519 and Ed448: seeds and points as keys, and their encodings (RFC 8410).

use der::asn1::{ObjectIdentifier, OctetStringRef};
use der::{Decode as _, Encode as _};
use zeroize::Zeroizing;

use super::{Algorithm, SignError};
use crate::encoding::pkcs8::PrivateKeyInfo;
use crate::encoding::spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};

/// Names of one algorithm.
pub(super) struct Names {
    pub(super) algorithm: Algorithm,
    pub(super) oid: ObjectIdentifier,
}

impl Names {
    pub(super) const fn invalid(&self) -> SignError {
        SignError::InvalidKey { algorithm: self.algorithm }
    }

    const fn identifier(&self) -> AlgorithmIdentifier<'static> {
        AlgorithmIdentifier::new(self.oid)
    }

    pub(super) fn to_pkcs8(&self, seed: &[u8]) -> Zeroizing<Vec<u8>> {
        let inside = OctetStringRef::new(seed).and_then(|seed| seed.to_der());
        let inside = Zeroizing::new(inside.expect("seeds are small"));
        PrivateKeyInfo::new(self.identifier(), &inside).to_der()
    }

    /// Returns the seed in a PKCS #8, and the public key, if present.
    pub(super) fn read_pkcs8<'a>(
        &self,
        der: &'a [u8],
    ) -> Result<(&'a [u8], Option<&'a [u8]>), SignError> {
        let info = PrivateKeyInfo::from_der(der).map_err(|_| self.invalid())?;
        let seed = <&OctetStringRef>::from_der(info.private_key).map_err(|_| self.invalid())?;
        let is_ours = info.algorithm == self.identifier();
        if is_ours { Ok((seed.as_bytes(), info.public_key)) } else { Err(self.invalid()) }
    }

    pub(super) fn to_spki(&self, key: &[u8]) -> Vec<u8> {
        SubjectPublicKeyInfo { algorithm: self.identifier(), key }.to_der()
    }

    pub(super) fn read_spki<'a>(&self, der: &'a [u8]) -> Result<&'a [u8], SignError> {
        let info = SubjectPublicKeyInfo::from_der(der).map_err(|_| self.invalid())?;
        if info.algorithm == self.identifier() { Ok(info.key) } else { Err(self.invalid()) }
    }
}

/// Implements a signing key on top of `from_seed`, `seed`, `sign_message` and `public`.
macro_rules! signing_key {
    ($key:ident, $public:ident, $names:ident) => {
        impl $key {
            /// Generates a key.
            #[must_use]
            pub fn generate() -> Self {
                Self::from_seed(&crate::rand::secret())
            }

            /// Parses a key in PKCS #8 (DER, RFC 8410).
            pub fn from_pkcs8(der: &[u8]) -> Result<Self, SignError> {
                let (seed, public) = $names.read_pkcs8(der)?;
                let key = Self::from_raw(seed)?;
                let belongs = public.is_none_or(|public| public == key.public().to_bytes());
                if belongs { Ok(key) } else { Err($names.invalid()) }
            }

            /// Derives the key from a seed of [`SEED_BYTES`] bytes.
            pub fn from_raw(seed: &[u8]) -> Result<Self, SignError> {
                Ok(Self::from_seed(seed.try_into().map_err(|_| $names.invalid())?))
            }
        }

        wraith_crypto::redacted_debug!($key);

        impl super::SigningKey for $key {
            fn algorithm(&self) -> Algorithm {
                $names.algorithm
            }

            fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignError> {
                Ok(self.sign_message(message).to_vec())
            }

            fn verifying_key(&self) -> Box<dyn super::VerifyingKey> {
                Box::new(self.public())
            }

            fn to_raw(&self) -> Zeroizing<Vec<u8>> {
                Zeroizing::new(self.seed().to_vec())
            }

            fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
                $names.to_pkcs8(self.seed())
            }
        }
    };
}

/// Implements a verifying key on top of `from_bytes`, `to_bytes` and `is_signed`.
macro_rules! verifying_key {
    ($key:ident, $names:ident) => {
        impl $key {
            /// Parses a key in SubjectPublicKeyInfo (DER, RFC 8410).
            pub fn from_spki(der: &[u8]) -> Result<Self, SignError> {
                Self::from_raw($names.read_spki(der)?)
            }

            /// Parses an encoded point of [`PUBLIC_KEY_BYTES`] bytes.
            pub fn from_raw(point: &[u8]) -> Result<Self, SignError> {
                let point = point.try_into().map_err(|_| $names.invalid())?;
                Self::from_bytes(point).ok_or($names.invalid())
            }
        }

        impl super::VerifyingKey for $key {
            fn algorithm(&self) -> Algorithm {
                $names.algorithm
            }

            fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), SignError> {
                let signature = signature.try_into().map_err(|_| SignError::Unauthentic)?;
                self.is_signed(message, signature).then_some(()).ok_or(SignError::Unauthentic)
            }

            fn to_raw(&self) -> Vec<u8> {
                self.to_bytes().to_vec()
            }

            fn to_spki(&self) -> Vec<u8> {
                $names.to_spki(&self.to_bytes())
            }
        }
    };
}

pub(super) use {signing_key, verifying_key};
