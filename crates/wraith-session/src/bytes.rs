//! Reading what was written by the same program, or by nobody knows whom.

use thiserror::Error;
use zeroize::Zeroizing;

/// Why a saved state, of whatever kind, was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StateError {
    /// It is of a version that this one does not know.
    #[error("the saved state is of version {0}, which this program does not know")]
    Version(u8),
    /// Not what this is saved as: torn, changed, or something else.
    #[error("the saved state is damaged")]
    Malformed,
}

/// What is left to read. Every method takes from the front, or nothing if there is too little.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(array)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(|&[byte]| byte)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().copied().map(u64::from_le_bytes)
    }

    pub(crate) fn secret(&mut self) -> Option<Zeroizing<[u8; 32]>> {
        self.array().copied().map(Zeroizing::new)
    }
}
