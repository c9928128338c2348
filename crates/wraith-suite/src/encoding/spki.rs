//! SubjectPublicKeyInfo: a public key with its algorithm identifier (RFC 5280 §4.1.2.7).

use super::EncodingError;
use super::der::{Reader, Writer};

/// The algorithm of a key (RFC 5280 §4.1.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlgorithmIdentifier<'a> {
    /// Content of the OBJECT IDENTIFIER (see [`super::oid`]).
    pub oid: &'a [u8],
    /// Parameters: a whole DER value, if any.
    pub parameters: Option<&'a [u8]>,
}

impl<'a> AlgorithmIdentifier<'a> {
    /// Creates an identifier without parameters.
    #[must_use]
    pub const fn new(oid: &'a [u8]) -> Self {
        Self { oid, parameters: None }
    }

    /// Reads the next value of `reader`.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, EncodingError> {
        let mut inside = reader.sequence()?;
        let oid = inside.oid()?;
        let parameters = inside.peek().map(|_| inside.element()).transpose()?;
        inside.finish()?;
        Ok(Self { oid, parameters })
    }

    /// Appends the identifier to `writer`.
    pub fn write(&self, writer: &mut Writer) {
        writer.sequence(|w| {
            w.oid(self.oid).raw(self.parameters.unwrap_or_default());
        });
    }

    /// Returns whether the algorithm is `oid`, and its parameter the OBJECT IDENTIFIER with the
    /// content `parameter` (a curve, for example).
    #[must_use]
    pub fn is_of(&self, oid: &[u8], parameter: &[u8]) -> bool {
        let named = self.parameters.and_then(|der| {
            let mut reader = Reader::new(der);
            reader.oid().ok().filter(|_| reader.finish().is_ok())
        });
        self.oid == oid && named == Some(parameter)
    }
}

/// A public key and its algorithm. All fields borrow from the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectPublicKeyInfo<'a> {
    /// The algorithm of the key.
    pub algorithm: AlgorithmIdentifier<'a>,
    /// The key, in the encoding of its algorithm.
    pub key: &'a [u8],
}

impl<'a> SubjectPublicKeyInfo<'a> {
    /// Label of the PEM block.
    pub const PEM_LABEL: &'static str = "PUBLIC KEY";

    /// Parses all of `der`.
    pub fn from_der(der: &'a [u8]) -> Result<Self, EncodingError> {
        let mut reader = Reader::of_sequence(der)?;
        let algorithm = AlgorithmIdentifier::read(&mut reader)?;
        let key = reader.bit_string()?;
        reader.finish()?;
        Ok(Self { algorithm, key })
    }

    /// Returns the DER encoding, which is unique.
    #[must_use]
    pub fn to_der(&self) -> Vec<u8> {
        let mut der = Writer::sequence_of(|w| {
            self.algorithm.write(w);
            w.bit_string(self.key);
        });
        std::mem::take(&mut *der)
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
        let parameters = [6, 1, 5];
        let algorithm = AlgorithmIdentifier { oid: &[1, 2], parameters: Some(&parameters) };
        let der = SubjectPublicKeyInfo { algorithm, key: b"key" }.to_der();
        assert!(SubjectPublicKeyInfo::from_der(&der).unwrap().algorithm.is_of(&[1, 2], &[5]));
        for len in 0..der.len() {
            assert!(SubjectPublicKeyInfo::from_der(&der[..len]).is_err(), "{len}");
        }
        let longer = [&der[..], &[0]].concat();
        assert_eq!(SubjectPublicKeyInfo::from_der(&longer), Err(EncodingError::TrailingBytes));
    }
}
