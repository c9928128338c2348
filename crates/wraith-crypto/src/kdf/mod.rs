//! Key derivation.
//!
//! | input | function |
//! |---|---|
//! | a high-entropy secret, in this project's own protocols | [`derive()`], [`keyed`] (BLAKE3) |
//! | a high-entropy secret, where a standard demands it | [`hkdf`], or [`hkdf_extract`] and [`hkdf_expand`] |
//! | a password | [`argon2id`]; [`scrypt`] and [`pbkdf2`] where a format demands them |
//!
//! Password hashing is expensive for the verifier, too, so all costs have limits in this module.
//! Callers may pass cost parameters from a file or a peer without a check.

use thiserror::Error;

use crate::hash;

mod argon2id;
mod blake3;
mod hkdf;
mod pbkdf2;
mod scrypt;

pub use self::argon2id::{Argon2Params, argon2id, argon2id_with};
pub use self::blake3::{derive, derive_parts, hash, keyed};
pub use self::hkdf::{hkdf, hkdf_expand, hkdf_extract};
pub use self::pbkdf2::pbkdf2;
pub use self::scrypt::{ScryptParams, scrypt};

/// Maximum memory of one password hash, in bytes.
pub const MEMORY_BYTES_MAX: usize = 1 << 30;
/// Maximum number of bytes processed for one password hash: sixteen passes over the maximum memory.
/// Takes about ten seconds.
pub const WORK_BYTES_MAX: u64 = 16 << 30;
/// Maximum number of PBKDF2 iterations for a whole output. Takes about as long.
pub const ITERATIONS_MAX: u64 = 1 << 27;

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
    /// The hash function is extendable, so there is no HMAC of it.
    #[error("there is no HMAC of {0}")]
    Hash(hash::Algorithm),
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
