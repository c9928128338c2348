//! Borrowed byte slices in C form.

use std::ptr;

/// Maximum number of messages of one call.
pub const WRAITH_BATCH_MAX: usize = 65536;

/// Borrowed bytes: `len` bytes at `data`, which may be NULL if `len` is 0. Text is UTF-8 without a
/// terminating NUL.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct wraith_bytes_t {
    /// Pointer to the first byte.
    pub data: *const u8,
    /// Number of bytes.
    pub len: usize,
}

impl wraith_bytes_t {
    /// No bytes.
    pub const EMPTY: Self = Self { data: ptr::null(), len: 0 };

    /// Returns a view of `bytes`, valid for as long as they are.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), len: bytes.len() }
    }
}
