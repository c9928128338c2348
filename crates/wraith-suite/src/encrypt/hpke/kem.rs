//! KEMs of HPKE: DHKEM (RFC 9180 §4.1) over the curves. Post-quantum and hybrid KEMs are used as
//! they are.

use zeroize::Zeroizing;

use super::labeled::{LabeledKdf, SuiteId};
use super::{HpkeError, Kdf};
use crate::agree::{self, ecdh};
use crate::ec::{self, Curve};
use crate::kem::DecapsulationKey as _;
use crate::kem::hybrid::{self, Hybrid};
use crate::kem::ml_kem::{self, Set};

/// KEM of a suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kem {
    /// DHKEM(P-256, HKDF-SHA256).
    P256,
    /// DHKEM(P-384, HKDF-SHA384).
    P384,
    /// DHKEM(P-521, HKDF-SHA512).
    P521,
    /// DHKEM(X25519, HKDF-SHA256).
    X25519,
    /// DHKEM(X448, HKDF-SHA512).
    X448,
    /// ML-KEM-512.
    MlKem512,
    /// ML-KEM-768.
    MlKem768,
    /// ML-KEM-1024.
    MlKem1024,
    /// X-Wing: ML-KEM-768 and X25519.
    XWing,
}

/// Family of a KEM, with its parameters.
#[derive(Clone, Copy)]
enum Family {
    Dh(agree::Algorithm),
    MlKem(Set),
    Hybrid(Hybrid),
}

impl Kem {
    /// Returns the ID in the registry (RFC 9180 §7.1, draft-ietf-hpke-pq).
    #[must_use]
    pub const fn id(self) -> u16 {
        match self {
            Self::P256 => 0x10,
            Self::P384 => 0x11,
            Self::P521 => 0x12,
            Self::X25519 => 0x20,
            Self::X448 => 0x21,
            Self::MlKem512 => 0x40,
            Self::MlKem768 => 0x41,
            Self::MlKem1024 => 0x42,
            Self::XWing => 0x647a,
        }
    }

    /// Returns the amount of randomness that a sender needs, in bytes.
    #[must_use]
    pub const fn seed_bytes(self) -> usize {
        match self.family() {
            Family::Dh(_) => self.secret_bytes(),
            Family::MlKem(_) => ml_kem::ENCAPSULATION_SEED_BYTES,
            Family::Hybrid(_) => hybrid::ENCAPSULATION_SEED_BYTES,
        }
    }

    /// Returns the length of a private key in bytes.
    #[must_use]
    pub const fn secret_bytes(self) -> usize {
        match self {
            Self::P256 | Self::X25519 | Self::XWing => 32,
            Self::P384 => 48,
            Self::P521 => 66,
            Self::X448 => 56,
            Self::MlKem512 | Self::MlKem768 | Self::MlKem1024 => 64,
        }
    }

    pub(super) fn new_seed(self) -> Zeroizing<Vec<u8>> {
        let mut seed = Zeroizing::new(vec![0; self.seed_bytes()]);
        crate::rand::fill(&mut seed);
        seed
    }

    const fn family(self) -> Family {
        match self {
            Self::P256 => Family::Dh(agree::Algorithm::EcdhP256),
            Self::P384 => Family::Dh(agree::Algorithm::EcdhP384),
            Self::P521 => Family::Dh(agree::Algorithm::EcdhP521),
            Self::X25519 => Family::Dh(agree::Algorithm::X25519),
            Self::X448 => Family::Dh(agree::Algorithm::X448),
            Self::MlKem512 => Family::MlKem(Set::MlKem512),
            Self::MlKem768 => Family::MlKem(Set::MlKem768),
            Self::MlKem1024 => Family::MlKem(Set::MlKem1024),
            Self::XWing => Family::Hybrid(Hybrid::XWing),
        }
    }

    const fn curve(self) -> Option<Curve> {
        match self {
            Self::P256 => Some(Curve::P256),
            Self::P384 => Some(Curve::P384),
            Self::P521 => Some(Curve::P521),
            _ => None,
        }
    }

    const fn kdf(self) -> Kdf {
        match self {
            Self::P384 => Kdf::Sha384,
            Self::P521 | Self::X448 => Kdf::Sha512,
            _ => Kdf::Sha256,
        }
    }

    fn labeled(self) -> LabeledKdf {
        LabeledKdf { kdf: self.kdf(), suite: SuiteId::kem(self.id()) }
    }

    /// DeriveKeyPair (RFC 9180 §7.1.3).
    fn derived(self, seed: &[u8]) -> Result<Box<dyn agree::PrivateKey>, HpkeError> {
        let labeled = self.labeled();
        let key = labeled.extract(&[], "dkp_prk", seed);
        let len = self.secret_bytes();
        let Some(curve) = self.curve() else {
            let secret = labeled.expanded(&key, "sk", &[], len);
            return self.dh_key(&secret);
        };
        for counter in 0..=u8::MAX {
            let mut scalar = labeled.expanded(&key, "candidate", &[counter], len);
            if matches!(self, Self::P521) {
                scalar[0] &= 1;
            }
            if let Ok(key) = ecdh::PrivateKey::from_scalar(curve, &scalar) {
                return Ok(Box::new(key));
            }
        }
        Err(HpkeError::InvalidKey { kem: self })
    }

    fn dh_key(self, secret: &[u8]) -> Result<Box<dyn agree::PrivateKey>, HpkeError> {
        let invalid = HpkeError::InvalidKey { kem: self };
        match self.family() {
            Family::Dh(algorithm) => algorithm.private_key(secret).map_err(|_| invalid),
            _ => Err(invalid),
        }
    }

    /// ExtractAndExpand of the Diffie-Hellman secret.
    fn shared(self, agreed: &[u8], context: &[u8]) -> Zeroizing<Vec<u8>> {
        let labeled = self.labeled();
        let key = labeled.extract(&[], "eae_prk", agreed);
        labeled.expanded(&key, "shared_secret", context, self.kdf().bytes())
    }
}

/// A private key.
pub struct PrivateKey {
    kem: Kem,
    secret: Secret,
    public: Vec<u8>,
}

enum Secret {
    Dh(Box<dyn agree::PrivateKey>),
    MlKem(ml_kem::DecapsulationKey),
    Hybrid(hybrid::DecapsulationKey),
}

wraith_crypto::redacted_debug!(PrivateKey, kem);

impl PrivateKey {
    /// Generates a key.
    pub fn generate(kem: Kem) -> Result<Self, HpkeError> {
        let secret = match kem.family() {
            Family::Dh(algorithm) => {
                Secret::Dh(algorithm.generate().map_err(|_| HpkeError::Failed { kem })?)
            }
            Family::MlKem(set) => Secret::MlKem(ml_kem::DecapsulationKey::generate(set)),
            Family::Hybrid(hybrid) => Secret::Hybrid(hybrid::DecapsulationKey::generate(hybrid)),
        };
        Ok(Self::new(kem, secret))
    }

    /// Creates a key from [`Kem::secret_bytes`] bytes.
    pub fn from_raw(kem: Kem, bytes: &[u8]) -> Result<Self, HpkeError> {
        let invalid = HpkeError::InvalidKey { kem };
        let secret = match kem.family() {
            Family::Dh(_) => Secret::Dh(kem.dh_key(bytes)?),
            Family::MlKem(set) => {
                Secret::MlKem(ml_kem::DecapsulationKey::from_raw(set, bytes).map_err(|_| invalid)?)
            }
            Family::Hybrid(hybrid) => {
                let key = hybrid::DecapsulationKey::from_raw(hybrid, bytes);
                Secret::Hybrid(key.map_err(|_| invalid)?)
            }
        };
        Ok(Self::new(kem, secret))
    }

    /// Derives a key from `ikm` as in RFC 9180, for the Diffie-Hellman KEMs only. `ikm` has to be
    /// unpredictable, and at least as long as a private key.
    pub fn derive(kem: Kem, ikm: &[u8]) -> Result<Self, HpkeError> {
        match kem.family() {
            Family::Dh(_) if ikm.len() >= kem.secret_bytes() => {
                Ok(Self::new(kem, Secret::Dh(kem.derived(ikm)?)))
            }
            _ => Err(HpkeError::InvalidKey { kem }),
        }
    }

    fn new(kem: Kem, secret: Secret) -> Self {
        use crate::kem::EncapsulationKey as _;
        let public = match &secret {
            Secret::Dh(key) => key.public_key(),
            Secret::MlKem(key) => key.public().to_raw(),
            Secret::Hybrid(key) => key.public().to_raw(),
        };
        Self { kem, secret, public }
    }

    /// Returns the KEM of the key.
    #[must_use]
    pub const fn kem(&self) -> Kem {
        self.kem
    }

    /// Returns the bytes of the key.
    #[must_use]
    pub fn to_raw(&self) -> Zeroizing<Vec<u8>> {
        match &self.secret {
            Secret::Dh(key) => key.to_raw(),
            Secret::MlKem(key) => key.to_raw(),
            Secret::Hybrid(key) => key.to_raw(),
        }
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        PublicKey::from_raw(self.kem, &self.public).expect("a key has a public half")
    }

    pub(super) fn decapsulate(
        &self,
        encapsulated: &[u8],
        identity: Option<&PublicKey>,
    ) -> Result<Zeroizing<Vec<u8>>, HpkeError> {
        let kem = self.kem;
        let invalid = HpkeError::InvalidEncapsulation { kem };
        let key = match &self.secret {
            Secret::Dh(key) => key,
            _ if identity.is_some() => return Err(HpkeError::CannotAuthenticate { kem }),
            Secret::MlKem(key) => return key.decapsulate(encapsulated).map_err(|_| invalid),
            Secret::Hybrid(key) => return key.decapsulate(encapsulated).map_err(|_| invalid),
        };
        let mut agreed = key.agree(encapsulated).map_err(|_| invalid)?;
        let mut context = [encapsulated, &self.public].concat();
        if let Some(identity) = identity {
            let second = key.agree(&identity.bytes);
            let second = second.map_err(|_| HpkeError::InvalidKey { kem })?;
            agreed = Zeroizing::new([&agreed[..], &second].concat());
            context.extend_from_slice(&identity.bytes);
        }
        Ok(kem.shared(&agreed, &context))
    }
}

/// A public key.
pub struct PublicKey {
    kem: Kem,
    bytes: Vec<u8>,
    parsed: Parsed,
}

enum Parsed {
    Dh,
    MlKem(ml_kem::EncapsulationKey),
    Hybrid(hybrid::EncapsulationKey),
}

wraith_crypto::redacted_debug!(PublicKey, kem);

impl PublicKey {
    /// Parses the bytes of a public key.
    pub fn from_raw(kem: Kem, bytes: &[u8]) -> Result<Self, HpkeError> {
        let invalid = HpkeError::InvalidKey { kem };
        let parsed = match kem.family() {
            Family::Dh(_) => {
                let is_good = match kem.curve() {
                    Some(curve) => ec::PublicKey::from_point(curve, bytes).is_some(),
                    None => bytes.len() == kem.secret_bytes(),
                };
                is_good.then_some(Parsed::Dh).ok_or(invalid)?
            }
            Family::MlKem(set) => {
                let key = ml_kem::EncapsulationKey::from_raw(set, bytes);
                Parsed::MlKem(key.map_err(|_| invalid)?)
            }
            Family::Hybrid(hybrid) => {
                let key = hybrid::EncapsulationKey::from_raw(hybrid, bytes);
                Parsed::Hybrid(key.map_err(|_| invalid)?)
            }
        };
        Ok(Self { kem, bytes: bytes.to_vec(), parsed })
    }

    /// Returns the KEM of the key.
    #[must_use]
    pub const fn kem(&self) -> Kem {
        self.kem
    }

    /// Returns the bytes of the key.
    #[must_use]
    pub fn to_raw(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// Returns the encapsulated key for the recipient, and the shared secret.
    pub(super) fn encapsulate(
        &self,
        seed: &[u8],
        identity: Option<&PrivateKey>,
    ) -> Result<(Vec<u8>, Zeroizing<Vec<u8>>), HpkeError> {
        let kem = self.kem;
        let invalid = HpkeError::InvalidKey { kem };
        match &self.parsed {
            Parsed::Dh => {}
            _ if identity.is_some() => return Err(HpkeError::CannotAuthenticate { kem }),
            Parsed::MlKem(key) => {
                let seed = seed.try_into().map_err(|_| invalid)?;
                return key.encapsulate_from_seed(seed).map_err(|_| invalid);
            }
            Parsed::Hybrid(key) => {
                let seed = seed.try_into().map_err(|_| invalid)?;
                return key.encapsulate_from_seed(seed).map_err(|_| invalid);
            }
        }
        // With less randomness, an attacker could guess the key.
        if seed.len() < kem.seed_bytes() {
            return Err(invalid);
        }
        let ephemeral = kem.derived(seed)?;
        let encapsulated = ephemeral.public_key();
        let mut agreed = ephemeral.agree(&self.bytes).map_err(|_| invalid)?;
        let mut context = [&encapsulated[..], &self.bytes].concat();
        if let Some(PrivateKey { secret: Secret::Dh(key), public, .. }) = identity {
            let second = key.agree(&self.bytes).map_err(|_| invalid)?;
            agreed = Zeroizing::new([&agreed[..], &second].concat());
            context.extend_from_slice(public);
        }
        Ok((encapsulated, kem.shared(&agreed, &context)))
    }
}
