//! AES key wrap: keys under a key, deterministic and without a nonce, as the standards for key files and protocols ask for.
//! [`wrap`] takes whole words of 8 bytes (RFC 3394), [`wrap_padded`] any length (RFC 5649).
#![allow(unsafe_code)]

use std::ptr;

use aws_lc_sys::{
    AES_KEY, AES_set_decrypt_key, AES_set_encrypt_key, AES_unwrap_key, AES_unwrap_key_padded,
    AES_wrap_key, AES_wrap_key_padded,
};
use thiserror::Error;
use zeroize::{Zeroize, Zeroizing};

/// Bytes of the longest key that is wrapped.
pub const WRAPPED_KEY_MAX: usize = 1 << 20;

/// Why nothing was wrapped or unwrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyWrapError {
    /// The wrapping key is not one of AES.
    #[error("a wrapping key has 16, 24 or 32 bytes, not {found}")]
    KeyLength {
        /// What was given.
        found: usize,
    },
    /// [`wrap`] takes 16 bytes to [`WRAPPED_KEY_MAX`], in words of 8; [`wrap_padded`] 1 byte to that.
    #[error("a key of {found} bytes cannot be wrapped so")]
    Length {
        /// What was given.
        found: usize,
    },
    /// It was not wrapped under this key, or damaged.
    #[error("not authentic: wrong key, or damaged")]
    Unauthentic,
}

/// An expanded key, wiped when dropped.
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
        // SAFETY: the key has as many bits; the schedule can be written.
        let failed = unsafe { make(key.as_ptr(), bits, &raw mut schedule.0) };
        assert_eq!(failed, 0, "the lengths are those of AES");
        Ok(schedule)
    }
}

/// `secret` under `key`: 8 bytes more than it has.
///
/// # Errors
/// A length is wrong.
pub fn wrap(key: &[u8], secret: &[u8]) -> Result<Vec<u8>, KeyWrapError> {
    let schedule = Schedule::new(key, true)?;
    let found = secret.len();
    if !(16..=WRAPPED_KEY_MAX).contains(&found) || !found.is_multiple_of(8) {
        return Err(KeyWrapError::Length { found });
    }
    let mut out = vec![0; found + 8];
    // SAFETY: the output has room for 8 bytes more than the input; without an IV it is the standard's.
    let len = unsafe {
        AES_wrap_key(&raw const schedule.0, ptr::null(), out.as_mut_ptr(), secret.as_ptr(), found)
    };
    match usize::try_from(len) {
        Ok(len) if len == out.len() => Ok(out),
        _ => Err(KeyWrapError::Length { found }),
    }
}

/// What [`wrap`] wrapped.
///
/// # Errors
/// The key has a wrong length, or [`KeyWrapError::Unauthentic`].
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

/// `secret` under `key`: 8 bytes more than it has in whole words.
///
/// # Errors
/// A length is wrong.
pub fn wrap_padded(key: &[u8], secret: &[u8]) -> Result<Vec<u8>, KeyWrapError> {
    let schedule = Schedule::new(key, true)?;
    let found = secret.len();
    if !(1..=WRAPPED_KEY_MAX).contains(&found) {
        return Err(KeyWrapError::Length { found });
    }
    let mut out = vec![0; found.next_multiple_of(8) + 8];
    let mut len = 0;
    // SAFETY: the output's room is told.
    let done = unsafe {
        let (to, room) = (out.as_mut_ptr(), out.len());
        AES_wrap_key_padded(&raw const schedule.0, to, &raw mut len, room, secret.as_ptr(), found)
    };
    match done == 1 && len == out.len() {
        true => Ok(out),
        false => Err(KeyWrapError::Length { found }),
    }
}

/// What [`wrap_padded`] wrapped.
///
/// # Errors
/// As [`unwrap`].
pub fn unwrap_padded(key: &[u8], wrapped: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyWrapError> {
    // A single block is decrypted, more are unwrapped; both with the keys of decryption.
    let schedule = Schedule::new(key, false)?;
    if !(16..=WRAPPED_KEY_MAX + 8).contains(&wrapped.len()) || !wrapped.len().is_multiple_of(8) {
        return Err(KeyWrapError::Unauthentic);
    }
    let mut out = Zeroizing::new(vec![0; wrapped.len()]);
    let mut len = 0;
    // SAFETY: the output's room is told.
    let done = unsafe {
        let (to, room) = (out.as_mut_ptr(), out.len());
        let (from, bytes) = (wrapped.as_ptr(), wrapped.len());
        AES_unwrap_key_padded(&raw const schedule.0, to, &raw mut len, room, from, bytes)
    };
    if done != 1 || len > out.len() {
        return Err(KeyWrapError::Unauthentic);
    }
    // Shortening a vector does not move it; what is behind is wiped now.
    out[len..].zeroize();
    out.truncate(len);
    Ok(out)
}
