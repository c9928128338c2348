//! The common parts of SM2 (GB/T 32918): keys, their encodings, the owner hash, and key derivation.
//!
//! A private key is a number from 1 to n − 2, as 32 big-endian bytes. A public key is an
//! uncompressed point (SEC 1) of 65 bytes. Compressed points are read too.

mod exchange;
mod key_derivation;

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::encoding::oid;
use crate::encoding::pkcs8::PrivateKeyInfo;
use crate::encoding::sec1::{self, EcPrivateKey};
use crate::encoding::spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};
use crate::hash::{Sha512, Sm3};
use wraith_kernels::sm2::{self as kernel, Affine, Scalar};

pub use exchange::{Confirmation, Exchange, ExchangeError, PrivateKey, Role};
pub(crate) use key_derivation::KeyStream;

/// Size of a scalar and of a coordinate in bytes.
pub(crate) const SCALAR_BYTES: usize = kernel::BYTES;
/// Size of a public key in bytes.
pub(crate) const POINT_BYTES: usize = 1 + 2 * SCALAR_BYTES;

/// The default identity of a key's owner (GM/T 0009).
pub const IDENTITY_DEFAULT: &[u8] = b"1234567812345678";
/// Maximum length of an identity in bytes. Its length in bits must fit in 16 bits.
pub const IDENTITY_MAX: usize = 8191;

/// Returns the implementation in use on this processor.
pub(crate) fn backend() -> crate::Backend {
    crate::Backend::own(kernel::features())
}

/// A public key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Public {
    pub(crate) point: Affine,
}

impl fmt::Debug for Public {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SM2 ")?;
        self.to_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Public {
    /// Decodes a point (SEC 1 §2.3.4).
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&form, coordinates) = bytes.split_first()?;
        let (x, y) = coordinates.split_first_chunk()?;
        let point = match form {
            2 | 3 if y.is_empty() => Affine::from_x(x, form == 3)?,
            4 => Affine::from_coordinates(x, y.try_into().ok()?)?,
            _ => return None,
        };
        Some(Self { point })
    }

    /// Encodes the point uncompressed.
    pub(crate) fn to_bytes(self) -> [u8; POINT_BYTES] {
        let mut bytes = [4; POINT_BYTES];
        let (x, y) = self.point.to_coordinates();
        bytes[1..=SCALAR_BYTES].copy_from_slice(&x);
        bytes[1 + SCALAR_BYTES..].copy_from_slice(&y);
        bytes
    }

    pub(crate) fn from_spki(der: &[u8]) -> Option<Self> {
        let info = SubjectPublicKeyInfo::from_der(der).ok()?;
        if info.algorithm != AlgorithmIdentifier::of_curve(&oid::SM2) {
            return None;
        }
        Self::from_bytes(info.key)
    }

    pub(crate) fn to_spki(self) -> Vec<u8> {
        let algorithm = AlgorithmIdentifier::of_curve(&oid::SM2);
        SubjectPublicKeyInfo { algorithm, key: &self.to_bytes() }.to_der()
    }

    /// Returns Z: the hash of `identity`, the curve and the key (GB/T 32918.2 §5.5). Returns `None`
    /// if the identity is longer than [`IDENTITY_MAX`].
    pub(crate) fn owner_hash(&self, identity: &[u8]) -> Option<[u8; 32]> {
        if identity.len() > IDENTITY_MAX {
            return None;
        }
        let bits = u16::try_from(8 * identity.len()).ok()?;
        let mut hash = Sm3::new();
        hash.update(&bits.to_be_bytes());
        hash.update(identity);
        hash.update(&CURVE);
        hash.update(&Self { point: Affine::G }.to_bytes()[1..]);
        hash.update(&self.to_bytes()[1..]);
        Some(hash.finish())
    }
}

/// The coefficients a and b of the curve.
const CURVE: [u8; 64] = [
    0xff, 0xff, 0xff, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc,
    0x28, 0xe9, 0xfa, 0x9e, 0x9d, 0x9f, 0x5e, 0x34, 0x4d, 0x5a, 0x9e, 0x4b, 0xcf, 0x65, 0x09, 0xa7,
    0xf3, 0x97, 0x89, 0xf5, 0x15, 0xab, 0x8f, 0x92, 0xdd, 0xbc, 0xbd, 0x41, 0x4d, 0x94, 0x0e, 0x93,
];

/// A private key with its public half. Wiped when dropped.
#[derive(Clone)]
pub(crate) struct Secret {
    /// From 1 to n − 2.
    pub(crate) scalar: Scalar,
    pub(crate) public: Public,
}

impl Zeroize for Secret {
    fn zeroize(&mut self) {
        self.scalar.zeroize();
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl ZeroizeOnDrop for Secret {}

wraith_crypto::redacted_debug!(Secret, public);

impl Secret {
    /// Generates a key.
    pub(crate) fn generate() -> Self {
        loop {
            if let Some(secret) = Self::from_scalar(random_scalar(&[])) {
                return secret;
            }
        }
    }

    fn from_scalar(scalar: Scalar) -> Option<Self> {
        if scalar.is_zero() || scalar.add(&Scalar::ONE).is_zero() {
            return None;
        }
        let public = Public { point: kernel::multiply_base(&scalar) };
        Some(Self { scalar, public })
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        Self::from_scalar(Scalar::from_bytes(bytes.try_into().ok()?)?)
    }

    pub(crate) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let bytes = Zeroizing::new(self.scalar.to_bytes());
        Zeroizing::new(bytes.to_vec())
    }

    /// Parses a PKCS #8 that contains an ECPrivateKey (RFC 5915).
    pub(crate) fn from_pkcs8(der: &[u8]) -> Option<Self> {
        let info = PrivateKeyInfo::from_der(der).ok()?;
        if info.algorithm != AlgorithmIdentifier::of_curve(&oid::SM2) {
            return None;
        }
        let secret = Self::from_sec1(info.private_key)?;
        let belongs = |public| Public::from_bytes(public) == Some(secret.public);
        info.public_key.is_none_or(belongs).then_some(secret)
    }

    /// Parses an ECPrivateKey (RFC 5915). Its curve and public half, if present, must match.
    pub(crate) fn from_sec1(der: &[u8]) -> Option<Self> {
        let key = EcPrivateKey::of_curve(&oid::SM2, der)?;
        let secret = Self::from_bytes(key.scalar)?;
        let belongs = |point| Public::from_bytes(point) == Some(secret.public);
        key.point.is_none_or(belongs).then_some(secret)
    }

    pub(crate) fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        sec1::to_pkcs8(&oid::SM2, &self.to_bytes(), &self.public.to_bytes())
    }
}

/// Implements the constructors of a key of an operation, on top of `new`. `$half` is [`Secret`] or
/// [`Public`], and `$parse` reads its DER.
macro_rules! constructors {
    ($key:ident, $half:ident, $parse:ident, $error:ident, $raw:literal, $der:literal) => {
        impl $key {
            #[doc = $raw]
            ///
            /// # Errors
            #[doc = concat!("[`", stringify!($error), "::InvalidKey`].")]
            pub fn from_raw(raw: &[u8]) -> Result<Self, $error> {
                $half::from_bytes(raw).map(Self::new).ok_or(INVALID)
            }

            #[doc = $der]
            ///
            /// # Errors
            #[doc = concat!("[`", stringify!($error), "::InvalidKey`].")]
            pub fn $parse(der: &[u8]) -> Result<Self, $error> {
                $half::$parse(der).map(Self::new).ok_or(INVALID)
            }
        }
    };
    ($key:ident, Secret, $error:ident) => {
        impl $key {
            /// Generates a key.
            #[must_use]
            pub fn generate() -> Self {
                Self::new(Secret::generate())
            }
        }

        $crate::sm2::constructors!(
            $key,
            Secret,
            from_pkcs8,
            $error,
            "Creates a key from 32 bytes, big-endian: a number from 1 to n − 2.",
            "Parses a key in PKCS #8 (DER)."
        );
    };
    ($key:ident, Public, $error:ident) => {
        $crate::sm2::constructors!(
            $key,
            Public,
            from_spki,
            $error,
            "Parses a point (SEC 1), compressed or not.",
            "Parses a key in SubjectPublicKeyInfo (DER)."
        );
    };
}
pub(crate) use constructors;

/// Returns a uniform number below n, derived from the system's randomness and `context`, at most 96
/// bytes.
///
/// With a secret and a message in the context, the number is as good as random even if the
/// randomness is not.
pub(crate) fn random_scalar(context: &[&[u8]]) -> Scalar {
    let mut seed = Zeroizing::new([0; 64]);
    crate::rand::fill(&mut seed[..if context.is_empty() { 64 } else { 32 }]);
    if !context.is_empty() {
        let mut hash = Sha512::new();
        hash.update(&seed[..32]);
        context.iter().for_each(|part| hash.update(part));
        *seed = hash.finish();
    }
    Scalar::reduced_wide(&seed)
}
