//! PKCS #8: a private key with its algorithm identifier, unencrypted (RFC 5208). Version 2 also
//! holds the public key (RFC 5958).

use std::fmt;

use zeroize::Zeroizing;

use super::EncodingError;
use super::der::{self, Reader, Writer};
use super::spki::AlgorithmIdentifier;

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

impl fmt::Debug for PrivateKeyInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateKeyInfo").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl<'a> PrivateKeyInfo<'a> {
    /// Label of the PEM block.
    pub const PEM_LABEL: &'static str = "PRIVATE KEY";

    const ATTRIBUTES: u8 = der::context_constructed(0);
    const PUBLIC_KEY: u8 = der::context(1);

    /// Creates a key of version 1.
    #[must_use]
    pub const fn new(algorithm: AlgorithmIdentifier<'a>, private_key: &'a [u8]) -> Self {
        Self { algorithm, private_key, public_key: None }
    }

    /// Parses all of `der`. Attributes are parsed and skipped: each needs a name and at least one
    /// value, but the values are not interpreted.
    pub fn from_der(der: &'a [u8]) -> Result<Self, EncodingError> {
        let mut reader = Reader::of_sequence(der)?;
        let version = reader.small()?;
        if version > 1 {
            return Err(EncodingError::UnknownVersion);
        }
        let algorithm = AlgorithmIdentifier::read(&mut reader)?;
        let private_key = reader.octet_string()?;
        if let Some(attributes) = reader.optional(Self::ATTRIBUTES)? {
            once_or_more(Reader::new(attributes), |attributes| {
                let mut attribute = attributes.sequence()?;
                attribute.oid()?;
                let values = attribute.nested(der::SET)?;
                attribute.finish()?;
                once_or_more(values, |values| values.any().map(drop))
            })?;
        }
        // The public key distinguishes version 2, so in version 1 it counts as trailing bytes.
        let public_key = if version == 1 { Some(reader.read(Self::PUBLIC_KEY)?) } else { None };
        reader.finish()?;
        let public_key = public_key.map(der::whole_bytes).transpose()?;
        Ok(Self { algorithm, private_key, public_key })
    }

    /// Returns the DER encoding, of version 2 if there is a public key.
    #[must_use]
    pub fn to_der(&self) -> Zeroizing<Vec<u8>> {
        Writer::sequence_of(|w| {
            w.small(self.public_key.is_some().into());
            self.algorithm.write(w);
            w.octet_string(self.private_key);
            if let Some(key) = self.public_key {
                w.write(Self::PUBLIC_KEY, &[&[0], key].concat());
            }
        })
    }
}

/// Calls `read` at least once, and until `reader` is empty.
fn once_or_more<'a>(
    mut reader: Reader<'a>,
    mut read: impl FnMut(&mut Reader<'a>) -> Result<(), EncodingError>,
) -> Result<(), EncodingError> {
    read(&mut reader)?;
    while reader.peek().is_some() {
        read(&mut reader)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{oid, pem};
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
        let longer = [&der[..], &[0]].concat();
        assert_eq!(PrivateKeyInfo::from_der(&longer), Err(EncodingError::TrailingBytes));
        let mut other = der.clone();
        other[4] = 2;
        assert_eq!(PrivateKeyInfo::from_der(&other), Err(EncodingError::UnknownVersion));
        other[4] = 0;
        assert_eq!(PrivateKeyInfo::from_der(&other), Err(EncodingError::TrailingBytes));
    }

    /// Encodes a key of `version`, with optional `attributes` and public key.
    fn key(version: u32, attributes: Option<&[u8]>, has_public_key: bool) -> Zeroizing<Vec<u8>> {
        Writer::sequence_of(|w| {
            w.small(version);
            AlgorithmIdentifier::new(oid::ED25519).write(w);
            w.octet_string(b"key");
            if let Some(attributes) = attributes {
                w.write(PrivateKeyInfo::ATTRIBUTES, attributes);
            }
            if has_public_key {
                w.write(PrivateKeyInfo::PUBLIC_KEY, &[0, 1, 2]);
            }
        })
    }

    #[test]
    fn version_2_is_that_of_a_key_with_its_public_key() {
        let public_key = |version, has_public_key| {
            PrivateKeyInfo::from_der(&key(version, None, has_public_key))
                .map(|info| info.public_key.map(<[u8]>::to_vec))
        };
        assert_eq!(public_key(0, false), Ok(None));
        assert_eq!(public_key(1, true), Ok(Some(vec![1, 2])));
        assert_eq!(public_key(1, false), Err(EncodingError::Truncated));
        assert_eq!(public_key(0, true), Err(EncodingError::TrailingBytes));
        let attribute = [0x30, 7, 6, 1, 5, 0x31, 2, 5, 0];
        let of_version_2 = key(1, Some(&attribute), false);
        assert_eq!(PrivateKeyInfo::from_der(&of_version_2), Err(EncodingError::Truncated));
    }

    #[test]
    fn attributes_are_der() {
        let one = [0x30, 7, 6, 1, 5, 0x31, 2, 5, 0];
        let long = [0x30, 10, 6, 2, 0x2a, 3, 0x31, 4, 5, 0, 5, 0];
        for attributes in [&one[..], &long, &[&one[..], &long].concat()] {
            let der = key(0, Some(attributes), false);
            let info = PrivateKeyInfo::from_der(&der).unwrap();
            assert_eq!(info.to_der(), key(0, None, false), "they are passed over");
            assert!(PrivateKeyInfo::from_der(&key(1, Some(attributes), true)).is_ok());
        }
        let refused: [(&str, &[u8]); 10] = [
            ("no attribute", &[]),
            ("an empty one", &[0x30, 0]),
            ("garbage", &[0x30, 3, 0xff, 0xff, 0xff]),
            ("no values", &[0x30, 3, 6, 1, 5]),
            ("a set without values", &[0x30, 5, 6, 1, 5, 0x31, 0]),
            ("a value that is cut", &[0x30, 7, 6, 1, 5, 0x31, 2, 5, 1]),
            ("a value without a length", &[0x30, 6, 6, 1, 5, 0x31, 1, 5]),
            ("a name that is none", &[0x30, 7, 6, 1, 0x80, 0x31, 2, 5, 0]),
            ("something behind the values", &[0x30, 9, 6, 1, 5, 0x31, 2, 5, 0, 5, 0]),
            ("another type behind the attribute", &[0x30, 7, 6, 1, 5, 0x31, 2, 5, 0, 5, 0]),
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
