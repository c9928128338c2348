//! Key file formats: PKCS #8 for private keys, SubjectPublicKeyInfo for public keys.
//!
//! | algorithm | content of the PKCS #8 | standard |
//! |---|---|---|
//! | ML-KEM | the seed, `[0]` IMPLICIT; with the expanded key beside the seed it is accepted too, if that key matches the seed | RFC 9935 |
//! | X-Wing | the raw seed | draft-connolly-cfrg-xwing-kem |
//! | X25519MLKEM768 | no standard format | |
//!
//! An expanded key of ML-KEM without its seed is rejected: the seed cannot be recovered, and this
//! crate writes only seeds.

use zeroize::Zeroizing;

use super::Algorithm;
use crate::encoding::oid;
use crate::encoding::pkcs8::PrivateKeyInfo;
use crate::encoding::seed;
use crate::encoding::spki::{AlgorithmIdentifier, SubjectPublicKeyInfo};

/// Content of a private key file. The parts have not been checked.
pub(super) struct Private<'a> {
    pub(super) seed: &'a [u8],
    /// ML-KEM's expanded key, if present.
    pub(super) expanded: Option<&'a [u8]>,
    pub(super) public: Option<&'a [u8]>,
}

const fn identifier(algorithm: Algorithm) -> Option<AlgorithmIdentifier<'static>> {
    Some(AlgorithmIdentifier::new(match algorithm {
        Algorithm::MlKem512 => oid::nist_kem(1),
        Algorithm::MlKem768 => oid::nist_kem(2),
        Algorithm::MlKem1024 => oid::nist_kem(3),
        Algorithm::XWing => oid::X_WING,
        Algorithm::X25519MlKem768 => return None,
    }))
}

/// Encodes `seed` as PKCS #8. Returns `None` if the algorithm has no format.
pub(super) fn to_pkcs8(algorithm: Algorithm, seed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let inside = match algorithm {
        Algorithm::XWing => Zeroizing::new(seed.to_vec()),
        _ => seed::to_der(seed),
    };
    Some(PrivateKeyInfo::new(identifier(algorithm)?, &inside).to_der())
}

/// Parses a PKCS #8 of `algorithm` into its parts.
pub(super) fn read_pkcs8(algorithm: Algorithm, der: &[u8]) -> Option<Private<'_>> {
    let info = PrivateKeyInfo::from_der(der).ok()?;
    let public = info.public_key;
    if Some(info.algorithm) != identifier(algorithm) {
        return None;
    }
    if algorithm == Algorithm::XWing {
        return Some(Private { seed: info.private_key, expanded: None, public });
    }
    let (seed, expanded) = seed::from_der(info.private_key).ok()?;
    Some(Private { seed, expanded, public })
}

/// Encodes the raw key `key` as SubjectPublicKeyInfo. Returns `None` if the algorithm has no
/// format.
pub(super) fn to_spki(algorithm: Algorithm, key: &[u8]) -> Option<Vec<u8>> {
    Some(SubjectPublicKeyInfo { algorithm: identifier(algorithm)?, key }.to_der())
}

/// Returns the raw key in a SubjectPublicKeyInfo of `algorithm`.
pub(super) fn read_spki(algorithm: Algorithm, der: &[u8]) -> Option<&[u8]> {
    let info = SubjectPublicKeyInfo::from_der(der).ok()?;
    (Some(info.algorithm) == identifier(algorithm)).then_some(info.key)
}
