//! The text of a packet and its counter. Input and output are in the same memory or in two places.

use super::ghash::{BLOCK, GROUP_BYTES};

/// The places from which the bytes of a text are read, and to which they are written.
///
/// Invariant: `len` bytes at `out` are readable and writable. The text's bytes from `head` on are
/// readable at `source` plus their offset. Both hold for the lifetime of the borrows from which the
/// text was made; callers of the constructors keep those borrows alive.
pub(super) struct Text {
    out: *mut u8,
    pub(super) len: usize,
    /// Number of bytes of the text that are already in `out`: whole groups, or all.
    head: usize,
    /// The address of byte 0 if all of the text came from the source.
    source: *const u8,
}

impl Text {
    pub(super) fn in_place(in_out: &mut [u8]) -> Self {
        let (len, out) = (in_out.len(), in_out.as_mut_ptr());
        Self { out, len, head: len, source: out }
    }

    pub(super) fn gathered(out: &mut [u8], filled: usize, source: &[u8]) -> Self {
        assert_eq!(out.len(), filled + source.len(), "the source fills the rest");
        // Complete the group in which the source begins, so that every group comes from one place.
        let head = filled.next_multiple_of(GROUP_BYTES).min(out.len());
        out[filled..head].copy_from_slice(&source[..head - filled]);
        let source = source.as_ptr().wrapping_sub(filled);
        Self { out: out.as_mut_ptr(), len: out.len(), head, source }
    }

    /// Returns the address from which to read the group that begins at `offset`.
    #[inline]
    pub(super) fn from(&self, offset: usize) -> *const u8 {
        if offset < self.head {
            self.out.wrapping_add(offset)
        } else {
            self.source.wrapping_add(offset)
        }
    }

    /// Returns the address to which to write the byte at `offset`.
    #[inline]
    pub(super) fn to(&self, offset: usize) -> *mut u8 {
        self.out.wrapping_add(offset)
    }
}

/// The first counter block (J0 of SP 800-38D §7.1), as a number: the counter of the tag. The text
/// begins with the next one.
#[derive(Clone, Copy)]
pub(super) struct Start(pub(super) u128);

impl Start {
    /// Returns the first counter block of a nonce of 96 bits.
    #[inline]
    pub(super) fn of_nonce(nonce: &[u8; 12]) -> Self {
        let mut block = [0; BLOCK];
        block[..12].copy_from_slice(nonce);
        block[12..].copy_from_slice(&1_u32.to_be_bytes());
        Self(u128::from_be_bytes(block))
    }

    /// Returns the next block: the lowest 32 bits count.
    #[inline]
    pub(super) const fn next(self) -> [u8; BLOCK] {
        let low = (self.0 as u32).wrapping_add(1);
        ((self.0 & !(u32::MAX as u128)) | low as u128).to_be_bytes()
    }
}
