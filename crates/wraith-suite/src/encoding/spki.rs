//! SubjectPublicKeyInfo: a public key with its algorithm identifier (RFC 5280 §4.1.2.7).

use der::asn1::{AnyRef, ObjectIdentifier};
use der::{Sequence, TagNumber, Tagged as _};

use super::oid;

/// The algorithm of a key (RFC 5280 §4.1.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Sequence)]
pub struct AlgorithmIdentifier<'a> {
    /// The algorithm (see [`super::oid`]).
    pub oid: ObjectIdentifier,
    /// Its parameters, if any.
    pub parameters: Option<AnyRef<'a>>,
}

impl<'a> AlgorithmIdentifier<'a> {
    /// Creates an identifier without parameters.
    #[must_use]
    pub const fn new(oid: ObjectIdentifier) -> Self {
        Self { oid, parameters: None }
    }

    /// Creates the identifier of keys of `curve`.
    #[must_use]
    pub fn of_curve(curve: &'a ObjectIdentifier) -> Self {
        Self { oid: oid::EC_PUBLIC_KEY, parameters: Some(curve.into()) }
    }

    pub(super) fn check(&self) -> der::Result<()> {
        oid::check_canonical(&self.oid)?;
        self.parameters.map_or(Ok(()), check_tag)
    }
}

/// Checks that the tag of a value of any type takes one byte, as all that keys need.
pub(super) fn check_tag(value: AnyRef<'_>) -> der::Result<()> {
    let is_short = value.tag().number() < TagNumber(31);
    is_short.then_some(()).ok_or(value.tag().value_error().into())
}

/// A public key and its algorithm. All fields borrow from the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Sequence)]
pub struct SubjectPublicKeyInfo<'a> {
    /// The algorithm of the key.
    pub algorithm: AlgorithmIdentifier<'a>,
    /// The key, in the encoding of its algorithm.
    #[asn1(type = "BIT STRING")]
    pub key: &'a [u8],
}

impl<'a> SubjectPublicKeyInfo<'a> {
    /// Label of the PEM block.
    pub const PEM_LABEL: &'static str = "PUBLIC KEY";

    /// Parses all of `der`.
    pub fn from_der(der: &'a [u8]) -> der::Result<Self> {
        let info: Self = der::Decode::from_der(der)?;
        info.algorithm.check()?;
        Ok(info)
    }

    /// Returns the DER encoding, which is unique.
    #[must_use]
    pub fn to_der(&self) -> Vec<u8> {
        der::Encode::to_der(self).expect("keys are small")
    }
}

#[cfg(test)]
mod tests {
    use super::super::oid;
    use super::*;

    #[test]
    fn a_key_comes_back_and_is_spelled_as_in_rfc_8410() {
        let text = "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=";
        let der = data_encoding::BASE64.decode(text.as_bytes()).unwrap();
        let info = SubjectPublicKeyInfo::from_der(&der).unwrap();
        assert_eq!(info.algorithm, AlgorithmIdentifier::new(oid::ED25519));
        assert_eq!((info.key.len(), info.key[0]), (32, 0x19));
        assert_eq!(info.to_der(), der);
    }

    #[test]
    fn truncated_or_extended_encodings_are_refused() {
        let der = SubjectPublicKeyInfo {
            algorithm: AlgorithmIdentifier::of_curve(&oid::P256),
            key: b"key",
        }
        .to_der();
        assert!(SubjectPublicKeyInfo::from_der(&der).is_ok());
        for len in 0..der.len() {
            assert!(SubjectPublicKeyInfo::from_der(&der[..len]).is_err(), "{len}");
        }
        assert!(SubjectPublicKeyInfo::from_der(&[&der[..], &[0]].concat()).is_err());
    }

    #[test]
    fn a_key_with_unused_bits_is_refused() {
        let mut der =
            SubjectPublicKeyInfo { algorithm: AlgorithmIdentifier::new(oid::ED25519), key: &[2] }
                .to_der();
        let at = der.len() - 2;
        assert_eq!(der[at..], [0, 2]);
        der[at] = 1;
        assert!(SubjectPublicKeyInfo::from_der(&der).is_err());
    }

    #[test]
    fn an_algorithm_with_leading_zeros_is_refused() {
        let der = [0x30, 12, 0x30, 6, 6, 4, 0x2b, 0x80, 0x65, 112, 3, 2, 0, 1];
        assert!(SubjectPublicKeyInfo::from_der(&der).is_err());
        let without = [0x30, 11, 0x30, 5, 6, 3, 0x2b, 0x65, 112, 3, 2, 0, 1];
        assert!(SubjectPublicKeyInfo::from_der(&without).is_ok());
    }

    #[test]
    fn a_parameter_with_a_large_tag_is_refused() {
        let der = [0x30, 14, 0x30, 8, 6, 3, 0x2b, 0x65, 112, 0x9f, 31, 0, 3, 2, 0, 1];
        assert!(SubjectPublicKeyInfo::from_der(&der).is_err());
        let small = [0x30, 13, 0x30, 7, 6, 3, 0x2b, 0x65, 112, 0x9e, 0, 3, 2, 0, 1];
        assert!(SubjectPublicKeyInfo::from_der(&small).is_ok());
    }
}
