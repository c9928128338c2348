//! AES key wrap: deterministic encryption of keys without a nonce, for key file formats and
//! protocols that demand it. [`wrap`] accepts whole words of 8 bytes (RFC 3394), [`wrap_padded`]
//! any length (RFC 5649).

use thiserror::Error;
use wraith_aws_lc::key_wrap as aws;
use zeroize::Zeroizing;

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

/// Wraps `secret` under `key`. The result is 8 bytes longer than `secret`.
///
/// # Errors
/// [`KeyWrapError`] if a length is wrong.
pub fn wrap(key: &[u8], secret: &[u8]) -> Result<Vec<u8>, KeyWrapError> {
    check_key(key)?;
    let found = secret.len();
    let fits = (16..=WRAPPED_KEY_MAX).contains(&found) && found.is_multiple_of(8);
    fits.then(|| aws::wrap(key, secret)).flatten().ok_or(KeyWrapError::Length { found })
}

/// Reverses [`wrap`].
///
/// # Errors
/// [`KeyWrapError::KeyLength`], or [`KeyWrapError::Unauthentic`] if `wrapped` is invalid.
pub fn unwrap(key: &[u8], wrapped: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyWrapError> {
    unwrap_by(aws::unwrap, 24, key, wrapped)
}

/// Wraps `secret` under `key`. The result is 8 bytes longer than `secret` padded to whole words.
///
/// # Errors
/// [`KeyWrapError`] if a length is wrong.
pub fn wrap_padded(key: &[u8], secret: &[u8]) -> Result<Vec<u8>, KeyWrapError> {
    check_key(key)?;
    let found = secret.len();
    let fits = (1..=WRAPPED_KEY_MAX).contains(&found);
    fits.then(|| aws::wrap_padded(key, secret)).flatten().ok_or(KeyWrapError::Length { found })
}

/// Reverses [`wrap_padded`].
///
/// # Errors
/// As [`unwrap`].
pub fn unwrap_padded(key: &[u8], wrapped: &[u8]) -> Result<Zeroizing<Vec<u8>>, KeyWrapError> {
    unwrap_by(aws::unwrap_padded, 16, key, wrapped)
}

/// Unwraps at least `min` bytes.
fn unwrap_by<T>(
    unwrap: impl FnOnce(&[u8], &[u8]) -> Option<T>,
    min: usize,
    key: &[u8],
    wrapped: &[u8],
) -> Result<T, KeyWrapError> {
    check_key(key)?;
    let len = wrapped.len();
    let fits = (min..=WRAPPED_KEY_MAX + 8).contains(&len) && len.is_multiple_of(8);
    fits.then(|| unwrap(key, wrapped)).flatten().ok_or(KeyWrapError::Unauthentic)
}

fn check_key(key: &[u8]) -> Result<(), KeyWrapError> {
    match key.len() {
        16 | 24 | 32 => Ok(()),
        found => Err(KeyWrapError::KeyLength { found }),
    }
}
