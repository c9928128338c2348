//! AES key wrap: deterministic encryption of keys without a nonce, for key file formats and
//! protocols that demand it. [`wrap`] accepts whole words of 8 bytes (RFC 3394), [`wrap_padded`]
//! any length (RFC 5649).
#![allow(unsafe_code)]

use std::ptr;

use aws_lc_sys::{
    AES_KEY, AES_set_decrypt_key, AES_set_encrypt_key, AES_unwrap_key, AES_unwrap_key_padded,
    AES_wrap_key, AES_wrap_key_padded,
};
use thiserror::Error;
use zeroize::{Zeroize, Zeroizing};

/// Maximum length of a key to wrap, in bytes.
pub const WRAPPED_KEY_MAX: usize = 1 << 20;

/// Reason why nothing was wrapped or unwrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyWrapError {
    /// The wrapping key does not have the length of an AES key.
    #[error("a wrapping key has 16, 24 or 32 bytes, not {found}")]
    KeyLength {
        /// Length of the wrapping key in bytes.
        found: usize,
    },
    /// The key to wrap has an invalid length. [`wrap`] accepts 16 bytes to [`WRAPPED_KEY_MAX`], in
    /// words of 8; [`wrap_padded`] accepts 1 byte to [`WRAPPED_KEY_MAX`].
    #[error("a key of {found} bytes cannot be wrapped: this length is not allowed")]
    Length {
        /// Length of the key to wrap in bytes.
        found: usize,
    },
    /// The input was wrapped under another key, or modified.
    #[error("not authentic: wrong key, or damaged")]
    Unauthentic,
}

/// An expanded AES key. Wiped when dropped.
struct Schedule(AES_KEY);

impl Drop for Schedule {
    fn drop(&mut self) {
        self.0.rd_key.zeroize();
    }
}

impl Schedule {
    fn new(key: &[u8], encrypt: bool) -> Result<Self, KeyWrapError> {
        let bits = match key.len() {
            16 => 128,
            24 => 192,
            32 => 256,
            found => return Err(KeyWrapError::KeyLength { found }),
        };
        let mut schedule = Self(AES_KEY { rd_key: [0; 60], rounds: 0 });
        let make = if encrypt { AES_set_encrypt_key } else { AES_set_decrypt_key };
        // SAFETY: the key has this number of bits; the schedule is writable.
        let failed = unsafe { make(key.as_ptr(), bits, &raw mut schedule.0) };
        assert_eq!(failed, 0, "the lengths are those of AES");
        Ok(schedule)
    }
}

/// Wraps `secret` under `key`. The result is 8 bytes longer than `secret`.
///
/// # Errors
/// [`KeyWrapError`] if a length is wrong.
pub fn wrap(key: &[u8], secret: &[u8]) -> Result<Vec<u8>, KeyWrapError> {
    let schedule = Schedule::new(key, true)?;
    let found = secret.len();
    if !(16..=WRAPPED_KEY_MAX).contains(&found) || !found.is_multiple_of(8) {
        return Err(KeyWrapError::Length { found });
    }
    let mut out = vec![0; found + 8];
    // SAFETY: the output has room for 8 bytes more than the input; a null IV selects the
    // standard's.
    let len = unsafe {
        AES_wrap_key(&raw const schedule.0, ptr::null(), out.as_mut_ptr(), secret.as_ptr(), found)
    };
    match usize::try_from(len) {
        Ok(len) if len == out.len() => Ok(out),
        _ => Err(KeyWrapError::Length { found }),
    }
}

/// Reverses [`wrap`].
///
/// # Errors
/// [`KeyWrapError::KeyLength`], or [`KeyWrapError::Unauthentic`] if `wrapped` is invalid.
pub fn unwrap(key: &[u8], wrapped: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyWrapError> {
    let schedule = Schedule::new(key, false)?;
    if !(24..=WRAPPED_KEY_MAX + 8).contains(&wrapped.len()) || !wrapped.len().is_multiple_of(8) {
        return Err(KeyWrapError::Unauthentic);
    }
    let mut out = Zeroizing::new(vec![0; wrapped.len() - 8]);
    // SAFETY: the output has room for 8 bytes less than the input.
    let len = unsafe {
        let (to, from) = (out.as_mut_ptr(), wrapped.as_ptr());
        AES_unwrap_key(&raw const schedule.0, ptr::null(), to, from, wrapped.len())
    };
    match usize::try_from(len) {
        Ok(len) if len == out.len() => Ok(out),
        _ => Err(KeyWrapError::Unauthentic),
    }
}

/// Wraps `secret` under `key`. The result is 8 bytes longer than `secret` padded to whole words.
///
/// # Errors
/// [`KeyWrapError`] if a length is wrong.
pub fn wrap_padded(key: &[u8], secret: &[u8]) -> Result<Vec<u8>, KeyWrapError> {
    let schedule = Schedule::new(key, true)?;
    let found = secret.len();
    if !(1..=WRAPPED_KEY_MAX).contains(&found) {
        return Err(KeyWrapError::Length { found });
    }
    let mut out = vec![0; found.next_multiple_of(8) + 8];
    let mut len = 0;
    // SAFETY: the output is passed with its length.
    let done = unsafe {
        let (to, room) = (out.as_mut_ptr(), out.len());
        AES_wrap_key_padded(&raw const schedule.0, to, &raw mut len, room, secret.as_ptr(), found)
    };
    match done == 1 && len == out.len() {
        true => Ok(out),
        false => Err(KeyWrapError::Length { found }),
    }
}

/// Reverses [`wrap_padded`].
///
/// # Errors
/// As [`unwrap`].
pub fn unwrap_padded(key: &[u8], wrapped: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyWrapError> {
    // A single block is decrypted and longer inputs are unwrapped; both need the decryption
    // schedule.
    let schedule = Schedule::new(key, false)?;
    if !(16..=WRAPPED_KEY_MAX + 8).contains(&wrapped.len()) || !wrapped.len().is_multiple_of(8) {
        return Err(KeyWrapError::Unauthentic);
    }
    let mut out = Zeroizing::new(vec![0; wrapped.len()]);
    let mut len = 0;
    // SAFETY: the output is passed with its length.
    let done = unsafe {
        let (to, room) = (out.as_mut_ptr(), out.len());
        let (from, bytes) = (wrapped.as_ptr(), wrapped.len());
        AES_unwrap_key_padded(&raw const schedule.0, to, &raw mut len, room, from, bytes)
    };
    if done != 1 || len > out.len() {
        return Err(KeyWrapError::Unauthentic);
    }
    // Truncating a vector does not move it, so the unused end is wiped here.
    out[len..].zeroize();
    out.truncate(len);
    Ok(out)
}
