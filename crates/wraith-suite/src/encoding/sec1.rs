//! ECPrivateKey: the private key of an elliptic curve inside PKCS #8 (RFC 5915).

#![allow(clippy::needless_question_mark, reason = "`der` derives such code")]

use der::asn1::{AnyRef, ObjectIdentifier};
use der::{Decode as _, Encode as _, Sequence};
use zeroize::Zeroizing;

use super::pkcs8::PrivateKeyInfo;
use super::spki::AlgorithmIdentifier;

const VERSION: u8 = 1;

/// A private key. All fields borrow from the input. Its parts have not been checked.
#[derive(Clone, Copy, Sequence)]
pub struct EcPrivateKey<'a> {
    version: u8,
    /// The private key, big-endian.
    #[asn1(type = "OCTET STRING")]
    pub scalar: &'a [u8],
    /// The curve, if present.
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    pub curve: Option<AnyRef<'a>>,
    /// The public key, if present.
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true", type = "BIT STRING")]
    pub point: Option<&'a [u8]>,
}

wraith_crypto::redacted_debug!(|it: EcPrivateKey<'_>| curve: it.curve);

impl<'a> EcPrivateKey<'a> {
    /// Parses all of `der`. Returns `None` if it is no key, or names another curve.
    pub(crate) fn of_curve(curve: &ObjectIdentifier, der: &'a [u8]) -> Option<Self> {
        let key = Self::from_der(der).ok()?;
        let is_curve = key.curve.is_none_or(|found| found == curve.into());
        (key.version == VERSION && is_curve).then_some(key)
    }
}

/// Encodes a key as PKCS #8.
pub(crate) fn to_pkcs8(
    curve: &ObjectIdentifier,
    scalar: &[u8],
    point: &[u8],
) -> Zeroizing<Vec<u8>> {
    let key = EcPrivateKey { version: VERSION, scalar, curve: None, point: Some(point) };
    let inside = Zeroizing::new(key.to_der().expect("keys are small"));
    PrivateKeyInfo::new(AlgorithmIdentifier::of_curve(curve), &inside).to_der()
}
