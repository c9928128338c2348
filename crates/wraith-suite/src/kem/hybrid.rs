//! Hybrids of ML-KEM-768 and X25519: the shared secret is safe as long as one of the two algorithms
//! is unbroken.
//!
//! | | X25519MLKEM768, of TLS | X-Wing |
//! |---|---|---|
//! | secret key | d ‖ z (ML-KEM) ‖ X25519's key, 96 bytes | a seed of 32 bytes, from which SHAKE256 derives such 96 bytes |
//! | public key, ciphertext | ML-KEM's ‖ X25519's | the same |
//! | shared secret | ML-KEM's ‖ X25519's, 64 bytes, for a key schedule | SHA3-256 of both secrets, of X25519's ciphertext and public key, and of a label |
//! | X25519 share of small order | rejected | accepted: ML-KEM's half keeps the secret safe |

use wraith_aws_lc::ml_kem as aws;
use zeroize::Zeroizing;

use super::ml_kem::{self, Set};
use super::{Algorithm, KemError};
use crate::agree::{x25519, x25519_public};
use crate::hash::{Sha3_256, Shake256};
use crate::rand::secret;

/// Length of an encapsulation seed in bytes: ML-KEM's, and the ephemeral secret of X25519.
pub const ENCAPSULATION_SEED_BYTES: usize = 64;

const SET: Set = Set::MlKem768;
const LABEL: &[u8] = b"\\.//^\\";

/// A hybrid KEM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hybrid {
    /// The hybrid of TLS (draft-ietf-tls-ecdhe-mlkem).
    X25519MlKem768,
    /// X-Wing (draft-connolly-cfrg-xwing-kem).
    XWing,
}

impl Hybrid {
    const fn algorithm(self) -> Algorithm {
        match self {
            Self::X25519MlKem768 => Algorithm::X25519MlKem768,
            Self::XWing => Algorithm::XWing,
        }
    }

    /// Returns the length of a secret key in bytes.
    #[must_use]
    pub const fn seed_bytes(self) -> usize {
        match self {
            Self::X25519MlKem768 => 96,
            Self::XWing => 32,
        }
    }

    const fn invalid_key(self) -> KemError {
        KemError::InvalidKey { algorithm: self.algorithm() }
    }

    /// Combines both secrets. Returns `None` if X25519's share has small order and the hybrid
    /// rejects it.
    fn combined(
        self,
        post_quantum: &[u8; 32],
        classical: Option<Zeroizing<[u8; 32]>>,
        share: &[u8; 32],
        key: &[u8; 32],
    ) -> Option<Zeroizing<Vec<u8>>> {
        match self {
            Self::X25519MlKem768 => {
                let mut both = Zeroizing::new(vec![0; 64]);
                let (first, second) = both.split_at_mut(32);
                first.copy_from_slice(post_quantum);
                second.copy_from_slice(&classical?[..]);
                Some(both)
            }
            Self::XWing => {
                let classical = classical.unwrap_or_default();
                let mut running = Sha3_256::new();
                for part in [post_quantum, &*classical, share, key, LABEL] {
                    running.update(part);
                }
                Some(Zeroizing::new(running.finish().to_vec()))
            }
        }
    }
}

/// A private key.
pub struct DecapsulationKey {
    hybrid: Hybrid,
    seed: Zeroizing<Vec<u8>>,
    post_quantum: aws::SecretKey,
    classical: Zeroizing<[u8; 32]>,
    /// X25519 public key of `classical`.
    share: [u8; 32],
}

wraith_crypto::redacted_debug!(DecapsulationKey, hybrid);

impl DecapsulationKey {
    /// Generates a key.
    #[must_use]
    pub fn generate(hybrid: Hybrid) -> Self {
        let seed = secret::<96>();
        Self::from_raw(hybrid, &seed[..hybrid.seed_bytes()]).expect("the length is right")
    }

    /// Creates a key from a seed of [`Hybrid::seed_bytes`] bytes.
    pub fn from_raw(hybrid: Hybrid, seed: &[u8]) -> Result<Self, KemError> {
        if seed.len() != hybrid.seed_bytes() {
            return Err(hybrid.invalid_key());
        }
        let mut expanded = Zeroizing::new([0; 96]);
        match hybrid {
            Hybrid::X25519MlKem768 => expanded.copy_from_slice(seed),
            Hybrid::XWing => {
                let mut running = Shake256::new();
                running.update(seed);
                running.finish(&mut *expanded);
            }
        }
        let (first, second) = expanded.split_first_chunk::<64>().expect("there are 96");
        let mut classical = Zeroizing::new([0; 32]);
        classical.copy_from_slice(second);
        let (post_quantum, share) = (SET.secret(first), x25519_public(&classical));
        Ok(Self { hybrid, seed: Zeroizing::new(seed.to_vec()), post_quantum, classical, share })
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> EncapsulationKey {
        let mut bytes = vec![0; self.hybrid.algorithm().encapsulation_key_bytes()];
        let (first, second) = bytes.split_at_mut(SET.encapsulation_key_bytes());
        self.post_quantum.write_public(first);
        second.copy_from_slice(&self.share);
        EncapsulationKey::new(self.hybrid, bytes)
    }
}

impl super::DecapsulationKey for DecapsulationKey {
    fn algorithm(&self) -> Algorithm {
        self.hybrid.algorithm()
    }

    fn encapsulation_key(&self) -> Box<dyn super::EncapsulationKey> {
        Box::new(self.public())
    }

    fn decapsulate(&self, ciphertext: &[u8]) -> Result<Zeroizing<Vec<u8>>, KemError> {
        let algorithm = self.hybrid.algorithm();
        ml_kem::checked_length(algorithm, ciphertext)?;
        let (first, share) = ciphertext.split_last_chunk::<32>().expect("the length is right");
        let post_quantum = self.post_quantum.decapsulate(first);
        let classical = x25519(&self.classical, share);
        self.hybrid
            .combined(&post_quantum, classical, share, &self.share)
            .ok_or(KemError::InvalidCiphertext { algorithm })
    }

    fn to_raw(&self) -> Zeroizing<Vec<u8>> {
        self.seed.clone()
    }
}

/// A public key.
pub struct EncapsulationKey {
    hybrid: Hybrid,
    post_quantum: aws::PublicKey,
    /// ML-KEM's key, then X25519's.
    bytes: Vec<u8>,
}

wraith_crypto::redacted_debug!(EncapsulationKey, hybrid);

impl EncapsulationKey {
    fn new(hybrid: Hybrid, bytes: Vec<u8>) -> Self {
        let post_quantum = SET.public(&bytes[..SET.encapsulation_key_bytes()]);
        Self { hybrid, post_quantum, bytes }
    }

    /// Parses the bytes of a public key.
    ///
    /// # Errors
    /// [`KemError::InvalidKey`] for another length, or if a coefficient of ML-KEM's key is not
    /// below the modulus.
    pub fn from_raw(hybrid: Hybrid, bytes: &[u8]) -> Result<Self, KemError> {
        let is_long = bytes.len() == hybrid.algorithm().encapsulation_key_bytes();
        if !is_long || !ml_kem::has_coefficients(&bytes[..SET.encapsulation_key_bytes()]) {
            return Err(hybrid.invalid_key());
        }
        Ok(Self::new(hybrid, bytes.to_vec()))
    }

    /// Returns the ciphertext and the shared secret for `seed`: m of ML-KEM, then the ephemeral
    /// secret of X25519.
    ///
    /// # Errors
    /// [`KemError::InvalidKey`] if this is the hybrid of TLS and X25519's half of the key has small
    /// order.
    pub fn encapsulate_from_seed(
        &self,
        seed: &[u8; ENCAPSULATION_SEED_BYTES],
    ) -> Result<(Vec<u8>, Zeroizing<Vec<u8>>), KemError> {
        let algorithm = self.hybrid.algorithm();
        let (m, ephemeral) = seed.split_first_chunk::<32>().expect("there are 64");
        let ephemeral: &[u8; 32] = ephemeral.try_into().expect("there are 64");
        let key = self.bytes.last_chunk().expect("the length is right");
        let mut ciphertext = vec![0; algorithm.ciphertext_bytes()];
        let mut post_quantum = Zeroizing::new([0; ml_kem::SECRET_BYTES]);
        let (first, second) = ciphertext.split_at_mut(SET.ciphertext_bytes());
        if !self.post_quantum.encapsulate(m, first, &mut post_quantum) {
            return Err(KemError::Failed { algorithm });
        }
        let share = x25519_public(ephemeral);
        second.copy_from_slice(&share);
        let classical = x25519(ephemeral, key);
        let secret = self.hybrid.combined(&post_quantum, classical, &share, key);
        Ok((ciphertext, secret.ok_or(self.hybrid.invalid_key())?))
    }
}

impl super::EncapsulationKey for EncapsulationKey {
    fn algorithm(&self) -> Algorithm {
        self.hybrid.algorithm()
    }

    fn encapsulate(&self) -> Result<(Vec<u8>, Zeroizing<Vec<u8>>), KemError> {
        self.encapsulate_from_seed(&secret())
    }

    fn to_raw(&self) -> Vec<u8> {
        self.bytes.clone()
    }
}
