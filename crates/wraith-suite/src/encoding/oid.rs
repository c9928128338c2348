//! Object identifiers of key algorithms and curves.

use der::Tag;
use der::asn1::ObjectIdentifier;

/// rsaEncryption (RFC 8017).
pub const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
/// id-ecPublicKey (RFC 5480). Its parameter is the curve.
pub const EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
/// secp224r1 (RFC 5480).
pub const P224: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.33");
/// secp256r1 (RFC 5480).
pub const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
/// secp384r1 (RFC 5480).
pub const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
/// secp521r1 (RFC 5480).
pub const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");
/// brainpoolP256r1 (RFC 5639).
pub const BRAINPOOL_P256R1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.36.3.3.2.8.1.1.7");
/// brainpoolP384r1 (RFC 5639).
pub const BRAINPOOL_P384R1: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.3.36.3.3.2.8.1.1.11");
/// brainpoolP512r1 (RFC 5639).
pub const BRAINPOOL_P512R1: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.3.36.3.3.2.8.1.1.13");
/// The curve of SM2 (RFC 8998).
pub const SM2: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.156.10197.1.301");
/// Ed25519 (RFC 8410).
pub const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
/// Ed448 (RFC 8410).
pub const ED448: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.113");
/// X-Wing (draft-connolly-cfrg-xwing-kem).
pub const X_WING: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.62253.25722");

/// The signature algorithms of NIST, by their last number. 17 to 19 are ML-DSA-44/65/87 (RFC 9881),
/// 20 to 31 are SLH-DSA (RFC 9909).
#[must_use]
pub const fn nist_signature(n: u8) -> ObjectIdentifier {
    nist("2.16.840.1.101.3.4.3", n)
}

/// The KEMs of NIST, by their last number. 1 to 3 are ML-KEM-512/768/1024 (RFC 9935).
#[must_use]
pub const fn nist_kem(n: u8) -> ObjectIdentifier {
    nist("2.16.840.1.101.3.4.4", n)
}

/// Checks that no number of `oid` has leading zeros, which the decoder accepts.
pub(super) fn check_canonical(oid: &ObjectIdentifier) -> der::Result<()> {
    match ObjectIdentifier::from_arcs(oid.arcs()) {
        Ok(canonical) if canonical == *oid => Ok(()),
        _ => Err(Tag::ObjectIdentifier.non_canonical_error().into()),
    }
}

const fn nist(parent: &str, n: u8) -> ObjectIdentifier {
    match ObjectIdentifier::new_unwrap(parent).push_arc(n as u32) {
        Ok(oid) => oid,
        Err(_) => panic!("the encoding has room for one more number"),
    }
}
