//! Limits on the cost of password hashing, and the errors of key derivation.

use thiserror::Error;

/// Maximum memory of one password hash, in bytes.
pub const MEMORY_BYTES_MAX: usize = 1 << 30;
/// Maximum number of bytes processed for one password hash: sixteen passes over the maximum memory.
/// Takes about ten seconds.
pub const WORK_BYTES_MAX: u64 = 16 << 30;

/// Reason why no key was derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KdfError {
    /// The function does not support an output of this length.
    #[error("the function supports outputs of {min} to {max} bytes, not {found}")]
    OutputLength {
        /// Least length in bytes.
        min: usize,
        /// Maximum length in bytes.
        max: usize,
        /// Requested length in bytes.
        found: usize,
    },
    /// The hash function of this name is extendable, so there is no HMAC of it. An error of the
    /// functions of `wraith-suite`, which share this type.
    #[error("there is no HMAC of {0}")]
    Hash(&'static str),
    /// A cost parameter (iterations, passes, lanes or memory) is invalid, or above a limit of this
    /// module.
    #[error("the cost parameters are invalid or above the limit")]
    Cost,
    /// The salt or another input has an invalid length.
    #[error("the function does not take an input of this length")]
    InputLength,
    /// Out of memory.
    #[error("there is not enough memory")]
    Memory,
}
