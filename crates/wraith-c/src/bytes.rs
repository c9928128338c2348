//! Bytes that somebody else holds.

use std::ptr;

/// Bytes of somebody else: `len` of them at `data`, which may be NULL if `len` is 0. Text is UTF-8 without a NUL at its end.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct wraith_bytes_t {
    /// Where they begin.
    pub data: *const u8,
    /// How many there are.
    pub len: usize,
}

impl wraith_bytes_t {
    /// None.
    pub const EMPTY: Self = Self { data: ptr::null(), len: 0 };

    /// A view of `bytes`, good for as long as they are.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), len: bytes.len() }
    }
}
