//! Encoding and decoding of fields of fixed order and length.

use thiserror::Error;
use zeroize::{Zeroize, Zeroizing};

/// Why a saved state of any kind was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StateError {
    /// This program does not support the version of the state.
    #[error(
        "the saved state has version {0}, which this program does not support; update the program"
    )]
    Version(u8),
    /// The bytes are truncated, changed, or of another kind.
    #[error("the saved state is damaged")]
    Malformed,
}

impl From<InvalidEncoding> for StateError {
    fn from(_: InvalidEncoding) -> Self {
        Self::Malformed
    }
}

/// The error for bytes that end inside a field, hold an invalid value, or continue after the last
/// field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidEncoding;

/// Reads fields from the front of bytes that may be damaged or come from an attacker.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], InvalidEncoding> {
        let (field, rest) = self.0.split_first_chunk().ok_or(InvalidEncoding)?;
        self.0 = rest;
        Ok(*field)
    }

    pub(crate) fn secret(&mut self) -> Result<Zeroizing<[u8; 32]>, InvalidEncoding> {
        Ok(Zeroizing::new(self.array()?))
    }

    pub(crate) fn boxed<const N: usize>(&mut self) -> Result<Box<[u8; N]>, InvalidEncoding> {
        Ok(Box::new(self.array()?))
    }

    pub(crate) fn u8(&mut self) -> Result<u8, InvalidEncoding> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u32(&mut self) -> Result<u32, InvalidEncoding> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, InvalidEncoding> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads the version of a state.
    pub(crate) fn version(&mut self, expected: u8) -> Result<(), StateError> {
        match self.u8()? {
            version if version == expected => Ok(()),
            other => Err(StateError::Version(other)),
        }
    }

    /// Reads a byte that is 0 or 1.
    pub(crate) fn bool(&mut self) -> Result<bool, InvalidEncoding> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(InvalidEncoding),
        }
    }

    /// Reads a [`bool`](Self::bool) and, if it is set, the value that `read` decodes.
    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, InvalidEncoding>,
    ) -> Result<Option<T>, InvalidEncoding> {
        if self.bool()? { read(self).map(Some) } else { Ok(None) }
    }

    /// Reads a 32-bit count of at most `max`.
    pub(crate) fn count(&mut self, max: usize) -> Result<usize, InvalidEncoding> {
        let count = usize::try_from(self.u32()?).map_err(|_| InvalidEncoding)?;
        if count <= max { Ok(count) } else { Err(InvalidEncoding) }
    }

    /// Returns the bytes that are left.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Checks that no bytes are left.
    pub(crate) fn finish(self) -> Result<(), InvalidEncoding> {
        if self.0.is_empty() { Ok(()) } else { Err(InvalidEncoding) }
    }
}

/// Appends fields to a buffer. Wipes the old allocation when the buffer grows.
pub(crate) struct Writer(Zeroizing<Vec<u8>>);

impl Writer {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self(Zeroizing::new(Vec::with_capacity(capacity)))
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let needed = self.0.len() + bytes.len();
        if needed > self.0.capacity() {
            let mut larger = Vec::with_capacity(2 * needed);
            larger.extend_from_slice(&self.0);
            let mut outgrown = std::mem::replace(&mut *self.0, larger);
            outgrown.zeroize();
        }
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn bool(&mut self, value: bool) -> &mut Self {
        self.u8(value.into())
    }

    /// Writes a count, which is known to be below 2³².
    pub(crate) fn count(&mut self, value: usize) -> &mut Self {
        self.u32(u32::try_from(value).expect("collections here are bounded far below"))
    }

    pub(crate) fn option<T>(
        &mut self,
        value: Option<&T>,
        write: impl FnOnce(&mut Self, &T),
    ) -> &mut Self {
        self.bool(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
        self
    }

    pub(crate) fn finish(self) -> Zeroizing<Vec<u8>> {
        self.0
    }
}
