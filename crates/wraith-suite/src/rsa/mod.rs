//! RSA key pairs of 2048 to 4096 bits, a multiple of 8, for [signatures](crate::sign::rsa) and
//! [encryption](crate::encrypt::rsa).
//!
//! AWS-LC generates the keys, checks them and computes with them.
//!
//! Reading a key checks that:
//!
//! - all its numbers are present (RFC 8017 §A.1.2, with two primes) and consistent;
//! - the modulus has an allowed length;
//! - the public exponent is odd and has at most 33 bits;
//! - the private exponent is below the modulus.
//!
//! Private operations are blinded.
//!
//! RFC 8017 §3.2 allows several encodings of one private key. Either prime may be first. The
//! private exponent is any number below the modulus that inverts the public exponent. The number of
//! such exponents is the greatest common divisor of p - 1 and q - 1, or one more. (Old programs
//! reduce the private exponent modulo the product of p - 1 and q - 1, new programs modulo their
//! least common multiple.) A key is written as it was read.

use std::ops::Deref;

use der::Decode as _;
use der::asn1::{AnyRef, SequenceRef, UintRef};
use wraith_aws_lc::rsa as aws;
use zeroize::Zeroizing;

use crate::encoding::oid;
use crate::encoding::pkcs8::PrivateKeyInfo;
use crate::encoding::spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};

#[cfg(test)]
mod tests;

/// Bits of the shortest modulus.
pub const BITS_MIN: u32 = 2048;
/// Bits of the longest modulus.
pub const BITS_MAX: u32 = 4096;
/// Default bits of a modulus (128 bits of strength).
pub(crate) const BITS_DEFAULT: u32 = 3072;

/// The public exponent of new keys, 2^16 + 1.
const E: u64 = 65_537;

const IDENTIFIER: AlgorithmIdentifier<'static> =
    AlgorithmIdentifier { oid: oid::RSA, parameters: Some(AnyRef::NULL) };

/// Returns the key if its modulus has an allowed length.
fn allowed(key: aws::Key) -> Option<aws::Key> {
    let bits = key.bits();
    ((BITS_MIN..=BITS_MAX).contains(&bits) && bits.is_multiple_of(8)).then_some(key)
}

/// Defines a key with the operations of AWS-LC's key.
macro_rules! key {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        pub(crate) struct $name(aws::Key);

        wraith_crypto::redacted_debug!(|it: $name| bytes: it.0.bytes());

        impl Deref for $name {
            type Target = aws::Key;

            fn deref(&self) -> &aws::Key {
                &self.0
            }
        }
    };
}

key!(/** A private key. */ PrivateKey);

impl PrivateKey {
    /// Generates a key with a modulus of `bits` bits. Returns `None` if that length is not allowed
    /// or there is no memory.
    pub(crate) fn generate(bits: u32) -> Option<Self> {
        let allowed = (BITS_MIN..=BITS_MAX).contains(&bits) && bits.is_multiple_of(128);
        allowed.then(|| aws::Key::generate(bits, E)).flatten().map(Self)
    }

    /// Parses an RSAPrivateKey (RFC 8017 §A.1.2, DER). Returns `None` if it is malformed, or its
    /// numbers are not consistent.
    pub(crate) fn from_pkcs1(der: &[u8]) -> Option<Self> {
        if !is_whole(der) {
            return None;
        }
        let key = aws::Key::from_private_der(der).and_then(allowed)?;
        key.private_exponent().is_some().then_some(Self(key))
    }

    /// Encodes the key as RSAPrivateKey.
    pub(crate) fn to_pkcs1(&self) -> Zeroizing<Vec<u8>> {
        self.0.to_private_der()
    }

    /// Parses a key in PKCS #8.
    pub(crate) fn from_pkcs8(der: &[u8]) -> Option<Self> {
        let info = PrivateKeyInfo::from_der(der).ok()?;
        // RSAPrivateKey contains the public half; no software writes it a second time.
        let is_ours = info.algorithm == IDENTIFIER && info.public_key.is_none();
        is_ours.then(|| Self::from_pkcs1(info.private_key)).flatten()
    }

    /// Encodes the key as PKCS #8.
    pub(crate) fn to_pkcs8(&self) -> Zeroizing<Vec<u8>> {
        PrivateKeyInfo::new(IDENTIFIER, &self.to_pkcs1()).to_der()
    }

    /// Returns the public half.
    pub(crate) fn public(&self) -> PublicKey {
        PublicKey(self.0.again())
    }
}

/// Returns whether `der` is the RSAPrivateKey of a key with two primes, none of its numbers is
/// zero, and the private exponent is no longer than the modulus.
///
/// AWS-LC also accepts keys with zeros, which it cannot check.
fn is_whole(der: &[u8]) -> bool {
    let numbers = numbers(der).unwrap_or_default();
    let [version, n, e, d, of_primes @ ..] = &numbers[..] else { return false };
    let is_zero = |number: &UintRef<'_>| number.as_bytes() == [0];
    of_primes.len() == 5
        && is_zero(version)
        && ![n, e, d].into_iter().chain(of_primes).any(is_zero)
        && d.len() <= n.len()
}

/// Returns the numbers of an RSAPrivateKey.
fn numbers(der: &[u8]) -> der::Result<Vec<UintRef<'_>>> {
    Vec::from_der(der)
}

key!(/** A public key. */ PublicKey);

impl PublicKey {
    /// Parses an RSAPublicKey (RFC 8017 §A.1.1, DER).
    pub(crate) fn from_pkcs1(der: &[u8]) -> Option<Self> {
        <&SequenceRef>::from_der(der).ok()?;
        aws::Key::from_public_der(der).and_then(allowed).map(Self)
    }

    /// Encodes the key as RSAPublicKey.
    pub(crate) fn to_pkcs1(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.to_public_der())
    }

    /// Parses a key in a SubjectPublicKeyInfo.
    pub(crate) fn from_spki(der: &[u8]) -> Option<Self> {
        let info = SubjectPublicKeyInfo::from_der(der).ok()?;
        (info.algorithm == IDENTIFIER).then(|| Self::from_pkcs1(info.key)).flatten()
    }

    /// Encodes the key as SubjectPublicKeyInfo.
    pub(crate) fn to_spki(&self) -> Vec<u8> {
        SubjectPublicKeyInfo { algorithm: IDENTIFIER, key: &self.to_pkcs1() }.to_der()
    }
}
