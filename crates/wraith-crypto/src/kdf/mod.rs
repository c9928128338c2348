//! Keys from what is no key.
//!
//! | from | function |
//! |---|---|
//! | a secret that nobody can guess, in this project's own protocols | [`derive()`], [`keyed`] (BLAKE3) |
//! | the same, where a standard asks for it | [`hkdf`], or [`hkdf_extract`] and [`hkdf_expand`] |
//! | a password | [`argon2id`]; [`scrypt`] and [`pbkdf2`] where a format asks for them |
//!
//! What makes guessing passwords expensive costs the one who checks them as much, so all costs have limits here: whoever reads them from a
//! file or a peer can hand them over as they are.

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

/// Bytes of memory that a password may cost, at most.
pub const MEMORY_BYTES_MAX: usize = 1 << 30;
/// Bytes that are gone through for a password, at most: sixteen times all that memory, which takes some ten seconds.
pub const WORK_BYTES_MAX: u64 = 16 << 30;
/// Iterations of PBKDF2 for all of an output, at most: about as long.
pub const ITERATIONS_MAX: u64 = 1 << 27;

/// Why there is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KdfError {
    /// More bytes were asked for than the function has, or none, or fewer than it gives.
    #[error("the function gives {min} to {max} bytes, not {found}")]
    OutputLength {
        /// At least.
        min: usize,
        /// At most.
        max: usize,
        /// What was asked for.
        found: usize,
    },
    /// An extendable hash function, of which there is no HMAC.
    #[error("there is no HMAC of {0}")]
    Hash(hash::Algorithm),
    /// A number of iterations, passes or lanes, or a size of memory, that the function does not take, or that is above a limit here.
    #[error("the function does not take this cost")]
    Cost,
    /// A salt or another input of a length that the function does not take.
    #[error("the function does not take an input of this length")]
    InputLength,
    /// The memory is not there.
    #[error("there is not enough memory")]
    Memory,
}
