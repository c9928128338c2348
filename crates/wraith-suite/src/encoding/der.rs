//! The subset of DER (ITU-T X.690) for keys and signatures: definite lengths of at most four bytes,
//! tags below 31.

use zeroize::Zeroizing;

use super::EncodingError;

/// Tag of BOOLEAN.
pub const BOOLEAN: u8 = 0x01;
/// Tag of INTEGER.
pub const INTEGER: u8 = 0x02;
/// Tag of BIT STRING.
pub const BIT_STRING: u8 = 0x03;
/// Tag of OCTET STRING.
pub const OCTET_STRING: u8 = 0x04;
/// Tag of NULL.
pub const NULL: u8 = 0x05;
/// Tag of OBJECT IDENTIFIER.
pub const OBJECT_IDENTIFIER: u8 = 0x06;
/// Tag of SEQUENCE.
pub const SEQUENCE: u8 = 0x30;
/// Tag of SET.
pub const SET: u8 = 0x31;

/// Returns the context-specific tag `[number]` of a primitive value, as for an IMPLICIT string.
#[must_use]
pub const fn context(number: u8) -> u8 {
    assert!(number < 31, "larger tags take several bytes");
    0x80 | number
}

/// Returns the context-specific tag `[number]` of a constructed value, as for EXPLICIT tagging.
#[must_use]
pub const fn context_constructed(number: u8) -> u8 {
    context(number) | 0x20
}

/// Reads consecutive values. Only [`Self::finish`] detects trailing bytes; this crate always calls
/// it.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `der`.
    #[must_use]
    pub const fn new(der: &'a [u8]) -> Self {
        Self { rest: der }
    }

    /// Returns a reader for the content of `der`, which has to be one SEQUENCE without trailing
    /// bytes.
    pub fn of_sequence(der: &'a [u8]) -> Result<Self, EncodingError> {
        let mut whole = Self::new(der);
        let inside = whole.sequence()?;
        whole.finish()?;
        Ok(inside)
    }

    /// Returns the tag of the next value, if there is one.
    #[must_use]
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// [`EncodingError::TrailingBytes`] if there are more bytes.
    pub const fn finish(self) -> Result<(), EncodingError> {
        if self.rest.is_empty() { Ok(()) } else { Err(EncodingError::TrailingBytes) }
    }

    /// Reads the next value, of any type. Returns its tag and its content.
    pub fn any(&mut self) -> Result<(u8, &'a [u8]), EncodingError> {
        let (&tag, rest) = self.rest.split_first().ok_or(EncodingError::Truncated)?;
        if tag & 0x1f == 0x1f {
            return Err(EncodingError::UnexpectedTag);
        }
        let (len, rest) = length(rest)?;
        let (content, rest) = rest.split_at_checked(len).ok_or(EncodingError::Truncated)?;
        self.rest = rest;
        Ok((tag, content))
    }

    /// Reads the next value. Returns it with its tag and length.
    pub fn element(&mut self) -> Result<&'a [u8], EncodingError> {
        let before = self.rest;
        self.any()?;
        Ok(&before[..before.len() - self.rest.len()])
    }

    /// Reads the next value, which has to have `tag`. Returns its content.
    pub fn read(&mut self, tag: u8) -> Result<&'a [u8], EncodingError> {
        match self.peek() {
            None => Err(EncodingError::Truncated),
            Some(found) if found != tag => Err(EncodingError::UnexpectedTag),
            Some(_) => Ok(self.any()?.1),
        }
    }

    /// Reads the next value if it has `tag`. Returns its content.
    pub fn optional(&mut self, tag: u8) -> Result<Option<&'a [u8]>, EncodingError> {
        if self.peek() == Some(tag) { self.read(tag).map(Some) } else { Ok(None) }
    }

    /// Reads the next value, which has to have `tag`. Returns a reader for its content.
    pub fn nested(&mut self, tag: u8) -> Result<Self, EncodingError> {
        self.read(tag).map(Self::new)
    }

    /// Reads a SEQUENCE. Returns a reader for its content.
    pub fn sequence(&mut self) -> Result<Self, EncodingError> {
        self.nested(SEQUENCE)
    }

    /// Reads an OCTET STRING.
    pub fn octet_string(&mut self) -> Result<&'a [u8], EncodingError> {
        self.read(OCTET_STRING)
    }

    /// Reads a BIT STRING of whole bytes.
    pub fn bit_string(&mut self) -> Result<&'a [u8], EncodingError> {
        whole_bytes(self.read(BIT_STRING)?)
    }

    /// Reads an OBJECT IDENTIFIER. Returns its content.
    pub fn oid(&mut self) -> Result<&'a [u8], EncodingError> {
        let oid = self.read(OBJECT_IDENTIFIER)?;
        // Each number ends with a byte below 0x80, and none starts with a zero (0x80).
        let starts = oid.iter().enumerate().filter(|&(i, _)| i == 0 || oid[i - 1] < 0x80);
        let is_good =
            oid.last().is_some_and(|&last| last < 0x80) && { starts }.all(|(_, &b)| b != 0x80);
        if is_good { Ok(oid) } else { Err(EncodingError::NotDer) }
    }

    /// Reads a non-negative INTEGER. Returns its bytes, big-endian, without leading zeros; none for
    /// zero.
    pub fn unsigned(&mut self) -> Result<&'a [u8], EncodingError> {
        match *self.read(INTEGER)? {
            [0] => Ok(&[]),
            [0, ref number @ ..] if number[0] >= 0x80 => Ok(number),
            ref number @ [first, ..] if 0 < first && first < 0x80 => Ok(number),
            _ => Err(EncodingError::NotDer),
        }
    }

    /// Reads an INTEGER from 0 to 2^32 − 1.
    pub fn small(&mut self) -> Result<u32, EncodingError> {
        let number = self.unsigned()?;
        if number.len() > 4 {
            return Err(EncodingError::NotDer);
        }
        Ok(number.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte)))
    }

    /// Reads a NULL.
    pub fn null(&mut self) -> Result<(), EncodingError> {
        if self.read(NULL)?.is_empty() { Ok(()) } else { Err(EncodingError::NotDer) }
    }
}

/// Returns the bytes of a BIT STRING with this content, which must not have unused bits.
pub(crate) fn whole_bytes(content: &[u8]) -> Result<&[u8], EncodingError> {
    match content {
        [0, bytes @ ..] => Ok(bytes),
        _ => Err(EncodingError::NotDer),
    }
}

/// Reads a length. Returns it with the remaining bytes.
fn length(bytes: &[u8]) -> Result<(usize, &[u8]), EncodingError> {
    let (&first, rest) = bytes.split_first().ok_or(EncodingError::Truncated)?;
    let count = match first {
        0..=0x7f => return Ok((first.into(), rest)),
        0x81..=0x84 => usize::from(first & 0x7f),
        _ => return Err(EncodingError::NotDer),
    };
    let (number, rest) = rest.split_at_checked(count).ok_or(EncodingError::Truncated)?;
    let len = number.iter().fold(0u32, |sum, &byte| sum << 8 | u32::from(byte));
    if number[0] == 0 || len < 0x80 {
        return Err(EncodingError::NotDer);
    }
    Ok((usize::try_from(len).map_err(|_| EncodingError::Truncated)?, rest))
}

/// Writes consecutive values. The output may be secret, so every buffer is wiped when dropped.
#[derive(Default)]
pub struct Writer {
    bytes: Zeroizing<Vec<u8>>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("len", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl Writer {
    /// Creates an empty writer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the output of `inside`, wrapped in a SEQUENCE.
    #[must_use]
    pub fn sequence_of(inside: impl FnOnce(&mut Self)) -> Zeroizing<Vec<u8>> {
        let mut writer = Self::new();
        writer.sequence(inside);
        writer.finish()
    }

    /// Returns the output.
    #[must_use]
    pub fn finish(self) -> Zeroizing<Vec<u8>> {
        self.bytes
    }

    /// Writes bytes that are already DER.
    pub fn raw(&mut self, der: &[u8]) -> &mut Self {
        if self.bytes.capacity() - self.bytes.len() < der.len() {
            // A growing `Vec` would leave an unwiped copy behind.
            let mut larger = Vec::with_capacity((2 * self.bytes.len() + der.len()).max(256));
            larger.extend_from_slice(&self.bytes);
            self.bytes = Zeroizing::new(larger);
        }
        self.bytes.extend_from_slice(der);
        self
    }

    /// Writes a value.
    pub fn write(&mut self, tag: u8, content: &[u8]) -> &mut Self {
        self.head(tag, content.len()).raw(content)
    }

    /// Writes a value with the output of `inside` as its content.
    pub fn nested(&mut self, tag: u8, inside: impl FnOnce(&mut Self)) -> &mut Self {
        let mut content = Self::new();
        inside(&mut content);
        self.write(tag, &content.bytes)
    }

    /// Writes a SEQUENCE with the output of `inside` as its content.
    pub fn sequence(&mut self, inside: impl FnOnce(&mut Self)) -> &mut Self {
        self.nested(SEQUENCE, inside)
    }

    /// Writes an OCTET STRING.
    pub fn octet_string(&mut self, bytes: &[u8]) -> &mut Self {
        self.write(OCTET_STRING, bytes)
    }

    /// Writes a BIT STRING of whole bytes.
    pub fn bit_string(&mut self, bytes: &[u8]) -> &mut Self {
        self.head(BIT_STRING, bytes.len() + 1).raw(&[0]).raw(bytes)
    }

    /// Writes an OBJECT IDENTIFIER with this content.
    pub fn oid(&mut self, content: &[u8]) -> &mut Self {
        self.write(OBJECT_IDENTIFIER, content)
    }

    /// Writes a big-endian number as an INTEGER.
    pub fn unsigned(&mut self, number: &[u8]) -> &mut Self {
        let zeros = number.iter().take_while(|&&byte| byte == 0).count();
        let number = &number[zeros..];
        match number.first() {
            None => self.write(INTEGER, &[0]),
            Some(0x80..) => self.head(INTEGER, number.len() + 1).raw(&[0]).raw(number),
            Some(_) => self.write(INTEGER, number),
        }
    }

    /// Writes `number` as an INTEGER.
    pub fn small(&mut self, number: u32) -> &mut Self {
        self.unsigned(&number.to_be_bytes())
    }

    /// Writes NULL.
    pub fn null(&mut self) -> &mut Self {
        self.write(NULL, &[])
    }

    fn head(&mut self, tag: u8, len: usize) -> &mut Self {
        let len = u32::try_from(len).expect("keys and signatures are small");
        self.raw(&[tag]);
        if len < 0x80 {
            return self.raw(&[len as u8]);
        }
        let bytes = len.to_be_bytes();
        let bytes = &bytes[len.leading_zeros() as usize / 8..];
        self.raw(&[0x80 | bytes.len() as u8]).raw(bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_value_comes_back() {
        for len in [0, 1, 127, 128, 255, 256, 65_535, 65_536] {
            let bytes = vec![0xa5; len];
            let der = Writer::sequence_of(|w| {
                w.octet_string(&bytes).bit_string(&bytes).unsigned(&bytes).small(7).null();
                w.oid(&[0x2a, 0x86, 0x48]).nested(context_constructed(1), |w| {
                    w.write(context(0), &[1]);
                });
            });
            let mut reader = Reader::of_sequence(&der).unwrap();
            assert_eq!(reader.octet_string().unwrap(), bytes);
            assert_eq!(reader.bit_string().unwrap(), bytes);
            assert_eq!(reader.unsigned().unwrap(), bytes);
            assert_eq!(reader.small(), Ok(7));
            reader.null().unwrap();
            assert_eq!(reader.oid().unwrap(), [0x2a, 0x86, 0x48]);
            let mut inside = reader.nested(context_constructed(1)).unwrap();
            assert_eq!(inside.optional(context(1)), Ok(None));
            assert_eq!(inside.optional(context(0)), Ok(Some(&[1][..])));
            inside.finish().unwrap();
            reader.finish().unwrap();
        }
    }

    #[test]
    fn non_canonical_der_is_rejected() {
        let unsigned = |der: &[u8]| Reader::new(der).unsigned().err();
        assert_eq!(Reader::new(&[2, 1, 0]).unsigned(), Ok(&[][..]));
        assert_eq!(Reader::new(&[2, 2, 0, 0x80]).unsigned(), Ok(&[0x80][..]));
        assert_eq!(unsigned(&[2, 0]), Some(EncodingError::NotDer), "no bytes");
        assert_eq!(unsigned(&[2, 1, 0x80]), Some(EncodingError::NotDer), "negative");
        assert_eq!(unsigned(&[2, 2, 0, 0x7f]), Some(EncodingError::NotDer), "a zero too many");
        assert_eq!(unsigned(&[2, 2, 0, 0]), Some(EncodingError::NotDer));
        assert_eq!(unsigned(&[2, 0x81, 1, 5]), Some(EncodingError::NotDer), "a long length");
        assert_eq!(unsigned(&[2, 0x82, 0, 1, 5]), Some(EncodingError::NotDer));
        assert_eq!(unsigned(&[2, 0x80, 5, 0, 0]), Some(EncodingError::NotDer), "no length");
        assert_eq!(unsigned(&[2, 0x85, 0, 0, 0, 0, 1, 5]), Some(EncodingError::NotDer));
        assert_eq!(unsigned(&[2, 2, 5]), Some(EncodingError::Truncated));
        assert_eq!(unsigned(&[2, 0x84, 0xff, 0xff, 0xff, 0xff, 5]), Some(EncodingError::Truncated));
        assert_eq!(unsigned(&[4, 1, 5]), Some(EncodingError::UnexpectedTag));
        assert_eq!(Reader::new(&[0x1f, 1, 0]).any(), Err(EncodingError::UnexpectedTag));
        assert_eq!(Reader::new(&[3, 0]).bit_string(), Err(EncodingError::NotDer));
        assert_eq!(Reader::new(&[3, 2, 1, 0xfe]).bit_string(), Err(EncodingError::NotDer));
        assert_eq!(Reader::new(&[5, 1, 0]).null(), Err(EncodingError::NotDer));
        assert_eq!(Reader::new(&[6, 0]).oid(), Err(EncodingError::NotDer));
        assert_eq!(Reader::new(&[6, 2, 0x2a, 0x86]).oid(), Err(EncodingError::NotDer));
        assert_eq!(Reader::new(&[6, 3, 0x2a, 0x80, 1]).oid(), Err(EncodingError::NotDer));
        assert_eq!(Reader::new(&[2, 5, 1, 0, 0, 0, 0]).small(), Err(EncodingError::NotDer));
        let trailing = Reader::of_sequence(&[0x30, 0, 0]).err();
        assert_eq!(trailing, Some(EncodingError::TrailingBytes));
    }

    proptest! {
        #[test]
        fn any_parsed_bytes_encode_to_the_same_bytes(
            bytes in proptest::collection::vec(prop_oneof![0u8..8, any::<u8>()], 0..40),
        ) {
            let mut reader = Reader::new(&bytes);
            let mut writer = Writer::new();
            while let Ok((tag, content)) = reader.any() {
                writer.write(tag, content);
            }
            let read = bytes.len() - reader.rest.len();
            prop_assert_eq!(&writer.finish()[..], &bytes[..read]);
            if let Ok(number) = Reader::new(&bytes).unsigned() {
                let mut writer = Writer::new();
                writer.unsigned(number);
                prop_assert!(bytes.starts_with(&writer.finish()));
            }
        }
    }
}
