//! ML-DSA (FIPS 204), pure and hedged, computed by AWS-LC.
//!
//! A secret key is its 32-byte seed ξ, which is expanded once. PKCS #8 also holds the seed,
//! optionally with the expanded key (RFC 9881 §6). A context has at most 255 bytes, and is empty by
//! default.

mod mu;

use der::asn1::ObjectIdentifier;
use wraith_aws_lc::ml_dsa as aws;
use zeroize::Zeroizing;

pub use mu::{MU_BYTES, Mu};

use super::{Algorithm, SignError, context_bytes};
use crate::encoding::oid;
use crate::encoding::pkcs8::PrivateKeyInfo;
use crate::encoding::seed;
use crate::encoding::spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};

pub use aws::{SEED_BYTES, Set};

const fn algorithm(set: Set) -> Algorithm {
    match set {
        Set::MlDsa44 => Algorithm::MlDsa44,
        Set::MlDsa65 => Algorithm::MlDsa65,
        _ => Algorithm::MlDsa87,
    }
}

const fn oid(set: Set) -> ObjectIdentifier {
    oid::nist_signature(match set {
        Set::MlDsa44 => 17,
        Set::MlDsa65 => 18,
        _ => 19,
    })
}

const fn invalid_key(set: Set) -> SignError {
    SignError::InvalidKey { algorithm: algorithm(set) }
}

const fn failed(set: Set) -> SignError {
    SignError::Failed { algorithm: algorithm(set) }
}

/// A private key.
pub struct SigningKey {
    set: Set,
    key: aws::Key,
    seed: Zeroizing<[u8; SEED_BYTES]>,
}

wraith_crypto::redacted_debug!(SigningKey, set);

impl SigningKey {
    /// Generates a key.
    pub fn generate(set: Set) -> Result<Self, SignError> {
        Self::from_seed(set, &crate::rand::secret())
    }

    /// Derives the key from `seed`.
    pub fn from_seed(set: Set, seed: &[u8; SEED_BYTES]) -> Result<Self, SignError> {
        let key = aws::Key::from_seed(set, seed);
        Ok(Self { set, key: key.ok_or(failed(set))?, seed: Zeroizing::new(*seed) })
    }

    /// Derives the key from a seed of [`SEED_BYTES`] bytes.
    pub fn from_raw(set: Set, seed: &[u8]) -> Result<Self, SignError> {
        Self::from_seed(set, seed.try_into().map_err(|_| invalid_key(set))?)
    }

    /// Parses a PKCS #8 (DER) with a seed, or with the seed and the expanded key. An expanded key
    /// without its seed is rejected.
    ///
    /// # Errors
    /// [`SignError::InvalidKey`], also if an expanded key or public key in it does not match the
    /// seed.
    pub fn from_pkcs8(set: Set, der: &[u8]) -> Result<Self, SignError> {
        let info = PrivateKeyInfo::from_der(der).map_err(|_| invalid_key(set))?;
        if info.algorithm != AlgorithmIdentifier::new(oid(set)) {
            return Err(invalid_key(set));
        }
        let (seed, expanded) = seed::from_der(info.private_key).map_err(|_| invalid_key(set))?;
        let key = Self::from_raw(set, seed)?;
        let belongs = expanded.is_none_or(|bytes| crate::equal(&key.key.expanded(), bytes))
            && info.public_key.is_none_or(|public| public == key.key.public());
        if belongs { Ok(key) } else { Err(invalid_key(set)) }
    }

    /// Signs `message` in `context`, the purpose of the signature.
    ///
    /// # Errors
    /// [`SignError::Context`] if the context is longer than [`CONTEXT_MAX`](super::CONTEXT_MAX).
    pub fn sign_with_context(&self, context: &[u8], message: &[u8]) -> Result<Vec<u8>, SignError> {
        context_bytes(context)?;
        self.key.sign(context, message).ok_or(failed(self.set))
    }

    /// Signs the message with this μ, computed by [`VerifyingKey::mu`]. The message may have been
    /// hashed in pieces, or elsewhere.
    ///
    /// # Errors
    /// [`SignError::Failed`] if out of memory.
    pub fn sign_mu(&self, mu: &[u8; MU_BYTES]) -> Result<Vec<u8>, SignError> {
        self.key.sign_mu(mu).ok_or(failed(self.set))
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> VerifyingKey {
        VerifyingKey::from_raw(self.set, &self.key.public()).expect("a key has a public half")
    }
}

impl super::SigningKey for SigningKey {
    fn algorithm(&self) -> Algorithm {
        algorithm(self.set)
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
        PrivateKeyInfo::new(AlgorithmIdentifier::new(oid(self.set)), &inside).to_der()
    }
}

/// A public key.
pub struct VerifyingKey {
    set: Set,
    key: aws::Key,
}

wraith_crypto::redacted_debug!(VerifyingKey, set);

impl VerifyingKey {
    /// Parses the bytes of a public key. Every value of the right length is valid.
    pub fn from_raw(set: Set, bytes: &[u8]) -> Result<Self, SignError> {
        if bytes.len() != set.public_key_bytes() {
            return Err(invalid_key(set));
        }
        let key = aws::Key::from_public(set, bytes);
        Ok(Self { set, key: key.ok_or(failed(set))? })
    }

    /// Parses a key in SubjectPublicKeyInfo (DER, RFC 9881 §4).
    pub fn from_spki(set: Set, der: &[u8]) -> Result<Self, SignError> {
        let info = SubjectPublicKeyInfo::from_der(der).map_err(|_| invalid_key(set))?;
        if info.algorithm != AlgorithmIdentifier::new(oid(set)) {
            return Err(invalid_key(set));
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
        let is_good = self.key.verify(context, message, signature);
        is_good.then_some(()).ok_or(SignError::Unauthentic)
    }

    /// Starts the computation of μ for a message in `context`. [`SigningKey::sign_mu`] and
    /// [`Self::verify_mu`] take μ instead of the message.
    ///
    /// # Errors
    /// [`SignError::Context`] if the context is longer than [`CONTEXT_MAX`](super::CONTEXT_MAX).
    pub fn mu(&self, context: &[u8]) -> Result<Mu, SignError> {
        Mu::new(&self.key.public(), context)
    }

    /// Verifies a signature over the message with this μ, computed by [`Self::mu`].
    ///
    /// # Errors
    /// [`SignError::Unauthentic`].
    pub fn verify_mu(&self, mu: &[u8; MU_BYTES], signature: &[u8]) -> Result<(), SignError> {
        self.key.verify_mu(mu, signature).then_some(()).ok_or(SignError::Unauthentic)
    }
}

impl super::VerifyingKey for VerifyingKey {
    fn algorithm(&self) -> Algorithm {
        algorithm(self.set)
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), SignError> {
        self.verify_with_context(&[], message, signature)
    }

    fn to_raw(&self) -> Vec<u8> {
        self.key.public()
    }

    fn to_spki(&self) -> Vec<u8> {
        let algorithm = AlgorithmIdentifier::new(oid(self.set));
        SubjectPublicKeyInfo { algorithm, key: &self.to_raw() }.to_der()
    }
}
