//! A reader for saved bytes, which may be damaged or come from an attacker.

use thiserror::Error;
use zeroize::Zeroizing;

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

/// The unread bytes. Each method takes a field from the front, or returns `None` if too few bytes
/// are left.
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
