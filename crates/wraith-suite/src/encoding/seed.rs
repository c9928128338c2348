//! Private keys of ML-KEM (RFC 9935 §6) and ML-DSA (RFC 9881 §6) inside PKCS #8: a CHOICE of the
//! seed, `[0]` IMPLICIT, the expanded key, and a SEQUENCE of both.
//!
//! This crate writes the form with the seed only, and reads the two forms that contain a seed. An
//! expanded key without a seed is rejected, because the seed cannot be recovered from it.

use der::asn1::OctetStringRef;
use der::{Choice, Decode as _, Encode as _, Sequence};
use zeroize::Zeroizing;

#[derive(Choice)]
enum Private<'a> {
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT")]
    Seed(&'a OctetStringRef),
    Both(Both<'a>),
}

#[derive(Sequence)]
struct Both<'a> {
    #[asn1(type = "OCTET STRING")]
    seed: &'a [u8],
    #[asn1(type = "OCTET STRING")]
    expanded: &'a [u8],
}

/// Parses all of `der`. Returns the seed, and the expanded key beside it, if any. Neither their
/// lengths nor their match has been checked.
pub(crate) fn from_der(der: &[u8]) -> der::Result<(&[u8], Option<&[u8]>)> {
    Ok(match Private::from_der(der)? {
        Private::Seed(seed) => (seed.as_bytes(), None),
        Private::Both(Both { seed, expanded }) => (seed, Some(expanded)),
    })
}

/// Returns the DER encoding of `seed` without an expanded key.
pub(crate) fn to_der(seed: &[u8]) -> Zeroizing<Vec<u8>> {
    let der = OctetStringRef::new(seed).and_then(|seed| Private::Seed(seed).to_der());
    Zeroizing::new(der.expect("seeds are small"))
}
