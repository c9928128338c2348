//! PKCS #8: a private key with its algorithm identifier, unencrypted (RFC 5208). Version 2 also
//! holds the public key (RFC 5958).

#![allow(clippy::needless_question_mark, reason = "`der` derives such code")]

use der::asn1::{AnyRef, ObjectIdentifier};
use der::{Decode as _, Encode as _, Reader as _, Sequence, SliceReader, Tag, Tagged as _};
use zeroize::Zeroizing;

use super::oid;
use super::spki::{AlgorithmIdentifier, check_tag};

/// A private key and its algorithm. All fields borrow from the input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PrivateKeyInfo<'a> {
    /// The algorithm of the key.
    pub algorithm: AlgorithmIdentifier<'a>,
    /// The private key, in the encoding of its algorithm.
    pub private_key: &'a [u8],
    /// The public key in the encoding of its algorithm, if present (version 2). Whether it matches
    /// the private key has not been checked.
    pub public_key: Option<&'a [u8]>,
}

wraith_crypto::redacted_debug!(|it: PrivateKeyInfo<'_>| algorithm: it.algorithm);

impl<'a> PrivateKeyInfo<'a> {
    /// Label of the PEM block.
    pub const PEM_LABEL: &'static str = "PRIVATE KEY";

    /// Creates a key of version 1.
    #[must_use]
    pub const fn new(algorithm: AlgorithmIdentifier<'a>, private_key: &'a [u8]) -> Self {
        Self { algorithm, private_key, public_key: None }
    }

    /// Parses all of `der`. Attributes are parsed and skipped: each needs a name and at least one
    /// value, but the values are not interpreted.
    ///
    /// # Errors
    /// An error also if the version is unknown, or is not that of a key with or without its public
    /// key.
    pub fn from_der(der: &'a [u8]) -> der::Result<Self> {
        let OneAsymmetricKey { version, algorithm, private_key, attributes, public_key } =
            OneAsymmetricKey::from_der(der)?;
        algorithm.check()?;
        let is_empty = attributes.as_ref().is_some_and(Vec::is_empty);
        if version != u8::from(public_key.is_some()) || is_empty {
            return Err(Tag::Sequence.value_error().into());
        }
        attributes.iter().flatten().try_for_each(Attribute::check)?;
        Ok(Self { algorithm, private_key, public_key })
    }

    /// Returns the DER encoding, of version 2 if there is a public key.
    #[must_use]
    pub fn to_der(&self) -> Zeroizing<Vec<u8>> {
        let Self { algorithm, private_key, public_key } = *self;
        let version = public_key.is_some().into();
        let key =
            OneAsymmetricKey { version, algorithm, private_key, attributes: None, public_key };
        Zeroizing::new(key.to_der().expect("keys are small"))
    }
}

/// The encoded fields.
#[derive(Sequence)]
struct OneAsymmetricKey<'a> {
    /// 0, or 1 with a public key.
    version: u8,
    algorithm: AlgorithmIdentifier<'a>,
    #[asn1(type = "OCTET STRING")]
    private_key: &'a [u8],
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    attributes: Option<Vec<Attribute<'a>>>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", optional = "true", type = "BIT STRING")]
    public_key: Option<&'a [u8]>,
}

#[derive(Sequence)]
struct Attribute<'a> {
    name: ObjectIdentifier,
    /// A SET OF values. Other programs do not sort them.
    values: AnyRef<'a>,
}

impl Attribute<'_> {
    fn check(&self) -> der::Result<()> {
        oid::check_canonical(&self.name)?;
        self.values.tag().assert_eq(Tag::Set)?;
        let mut values = SliceReader::new(self.values.value())?;
        loop {
            check_tag(values.decode()?)?;
            if values.is_finished() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pem;
    use super::*;

    /// RFC 8410 §10.3: a key without its public key, and a key with it and an attribute.
    const VERSION_1: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
-----END PRIVATE KEY-----
";
    const VERSION_2: &str = "-----BEGIN PRIVATE KEY-----
MHICAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC
oB8wHQYKKoZIhvcNAQkJFDEPDA1DdXJkbGUgQ2hhaXJzgSEAGb9ECWmEzf6FQbrB
Z9w7lshQhqowtrbLDFw4rXAxZuE=
-----END PRIVATE KEY-----
";

    #[test]
    fn the_keys_of_rfc_8410_are_read() {
        let [first, second] =
            [VERSION_1, VERSION_2].map(|text| pem::decode("PRIVATE KEY", text).unwrap());
        let [first_info, second_info] =
            [&first, &second].map(|der| PrivateKeyInfo::from_der(der).unwrap());
        assert_eq!(first_info.algorithm, AlgorithmIdentifier::new(oid::ED25519));
        assert_eq!((first_info.private_key.len(), first_info.public_key), (34, None));
        assert_eq!(first_info.to_der(), first);
        assert_eq!(second_info.private_key, first_info.private_key);
        assert_eq!(second_info.public_key.map(|key| (key.len(), key[0])), Some((32, 0x19)));
        let again = second_info.to_der();
        assert_eq!(PrivateKeyInfo::from_der(&again), Ok(second_info));
    }

    #[test]
    fn truncated_extended_or_other_version_encodings_are_refused() {
        let der = pem::decode("PRIVATE KEY", VERSION_2).unwrap();
        for len in 0..der.len() {
            assert!(PrivateKeyInfo::from_der(&der[..len]).is_err(), "{len}");
        }
        assert!(PrivateKeyInfo::from_der(&der).is_ok());
        assert!(PrivateKeyInfo::from_der(&[&der[..], &[0]].concat()).is_err());
        let mut other = der.clone();
        for version in [0, 2, 0x80] {
            other[4] = version;
            assert!(PrivateKeyInfo::from_der(&other).is_err(), "{version}");
        }
    }

    #[test]
    fn an_algorithm_with_leading_zeros_is_refused() {
        let der = [0x30, 16, 2, 1, 0, 0x30, 6, 6, 4, 0x2b, 0x80, 0x65, 112, 4, 3, 1, 2, 3];
        assert!(PrivateKeyInfo::from_der(&der).is_err());
        let without = [0x30, 15, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 112, 4, 3, 1, 2, 3];
        assert!(PrivateKeyInfo::from_der(&without).is_ok());
    }

    #[test]
    fn other_fields_are_refused() {
        let der = key(1, None, true);
        // The second version would have a field [2] behind the public key.
        for more in [&[0xa2, 2, 5, 0][..], &[0x82, 1, 0], &[5, 0]] {
            let inside = [&der[2..], more].concat();
            let longer = [&[0x30, inside.len() as u8], &inside[..]].concat();
            assert!(PrivateKeyInfo::from_der(&longer).is_err(), "{more:?}");
        }
    }

    #[test]
    fn a_public_key_with_unused_bits_is_refused() {
        let mut der = key(1, None, true);
        let at = der.len() - 3;
        assert_eq!(der[at..], [0, 1, 2]);
        der[at] = 1;
        assert!(PrivateKeyInfo::from_der(&der).is_err());
    }

    /// Encodes a key of `version`, with optional `attributes` and public key.
    fn key(version: u8, attributes: Option<&[u8]>, has_public_key: bool) -> Vec<u8> {
        let mut inside = vec![2, 1, version];
        inside.extend(AlgorithmIdentifier::new(oid::ED25519).to_der().unwrap());
        inside.extend(b"\x04\x03key");
        if let Some(attributes) = attributes {
            inside.extend([&[0xa0, attributes.len() as u8], attributes].concat());
        }
        if has_public_key {
            inside.extend([0x81, 3, 0, 1, 2]);
        }
        [&[0x30, inside.len() as u8], &inside[..]].concat()
    }

    #[test]
    fn version_2_is_that_of_a_key_with_its_public_key() {
        let public_key = |version, has_public_key| {
            PrivateKeyInfo::from_der(&key(version, None, has_public_key))
                .map(|info| info.public_key.map(<[u8]>::to_vec))
                .ok()
        };
        assert_eq!(public_key(0, false), Some(None));
        assert_eq!(public_key(1, true), Some(Some(vec![1, 2])));
        assert_eq!((public_key(1, false), public_key(0, true)), (None, None));
        assert!(PrivateKeyInfo::from_der(&key(1, Some(&ATTRIBUTE), false)).is_err());
    }

    /// An attribute with the name 1.2.3 and the value NULL.
    const ATTRIBUTE: [u8; 10] = [0x30, 8, 6, 2, 0x2a, 3, 0x31, 2, 5, 0];

    #[test]
    fn attributes_are_der() {
        let long = &[0x30, 12, 6, 3, 0x2a, 0x81, 4, 0x31, 5, 5, 0, 4, 1, 9];
        for attributes in [&ATTRIBUTE[..], long, &[&ATTRIBUTE[..], long].concat()] {
            let der = key(0, Some(attributes), false);
            let info = PrivateKeyInfo::from_der(&der).unwrap();
            assert_eq!(*info.to_der(), key(0, None, false), "they are passed over");
            assert!(PrivateKeyInfo::from_der(&key(1, Some(attributes), true)).is_ok());
        }
        let refused: [(&str, &[u8]); 14] = [
            ("no attribute", &[]),
            ("an empty one", &[0x30, 0]),
            ("garbage", &[0x30, 3, 0xff, 0xff, 0xff]),
            ("no values", &[0x30, 4, 6, 2, 0x2a, 3]),
            ("a set without values", &[0x30, 6, 6, 2, 0x2a, 3, 0x31, 0]),
            ("a sequence of values", &[0x30, 8, 6, 2, 0x2a, 3, 0x30, 2, 5, 0]),
            ("a value that is cut", &[0x30, 8, 6, 2, 0x2a, 3, 0x31, 2, 5, 1]),
            ("a value without a length", &[0x30, 7, 6, 2, 0x2a, 3, 0x31, 1, 5]),
            ("a value with a large tag", &[0x30, 9, 6, 2, 0x2a, 3, 0x31, 3, 0x9f, 31, 0]),
            ("a name that is none", &[0x30, 8, 6, 2, 0x2a, 0x83, 0x31, 2, 5, 0]),
            ("a name with a number too large", &[0x30, 8, 6, 2, 0x80, 3, 0x31, 2, 5, 0]),
            ("a name with leading zeros", &[0x30, 9, 6, 3, 0x2a, 0x80, 3, 0x31, 2, 5, 0]),
            ("something behind the values", &[0x30, 10, 6, 2, 0x2a, 3, 0x31, 2, 5, 0, 5, 0]),
            ("another type behind the attribute", &[0x30, 8, 6, 2, 0x2a, 3, 0x31, 2, 5, 0, 5, 0]),
        ];
        for (why, attributes) in refused {
            assert!(PrivateKeyInfo::from_der(&key(0, Some(attributes), false)).is_err(), "{why}");
            assert!(PrivateKeyInfo::from_der(&key(1, Some(attributes), true)).is_err(), "{why}");
        }
    }

    #[test]
    fn debug_does_not_print_the_key() {
        let info = PrivateKeyInfo::new(AlgorithmIdentifier::new(oid::ED25519), &[171; 32]);
        assert!(!format!("{info:?}").contains("171"));
    }
}
