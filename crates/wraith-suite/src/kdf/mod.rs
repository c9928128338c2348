//! Key derivation.
//!
//! | input | function |
//! |---|---|
//! | a high-entropy secret, in this project's own protocols | [`derive()`], [`keyed`] (BLAKE3) |
//! | a high-entropy secret, where a standard demands it | [`hkdf`], or [`hkdf_extract`] and [`hkdf_expand`] |
//! | a password | [`argon2id`]; [`scrypt`] and [`pbkdf2`] where a format demands them |
//!
//! Password hashing is expensive for the verifier, too, so all costs have limits.
//! Callers may pass cost parameters from a file or a peer without a check.

mod hkdf;
mod pbkdf2;
mod scrypt;

pub use self::hkdf::{hkdf, hkdf_expand, hkdf_extract};
pub use self::pbkdf2::{ITERATIONS_MAX, pbkdf2};
pub use self::scrypt::{ScryptParams, scrypt};
pub use wraith_crypto::kdf::{
    Argon2Params, KdfError, MEMORY_BYTES_MAX, WORK_BYTES_MAX, argon2id, argon2id_with, derive,
    derive_parts, hash, keyed,
};
