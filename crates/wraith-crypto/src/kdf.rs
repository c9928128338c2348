//! Key derivation.
//!
//! | input | function |
//! |---|---|
//! | a high-entropy secret | [`derive()`], [`keyed`] (BLAKE3; `derive` and `keyed` of docs/SPEC.md) |
//! | a password | [`argon2id`] |
//!
//! Password hashing is expensive for the verifier, too, so all costs have limits in this module.
//! Callers may pass cost parameters from a file or a peer without a check.

mod argon2id;
mod limits;

use zeroize::{Zeroize, Zeroizing};

pub use argon2id::{Argon2Params, argon2id, argon2id_with};
pub use limits::{KdfError, MEMORY_BYTES_MAX, WORK_BYTES_MAX};

/// `derive(context, material)`: derives a 32-byte key from both. Every use has its own context.
#[must_use]
pub fn derive(context: &'static str, material: &[u8]) -> [u8; 32] {
    derive_parts(context, &[material])
}

/// Like [`derive()`], for the concatenation of `parts`.
#[must_use]
pub fn derive_parts(context: &'static str, parts: &[&[u8]]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for part in parts {
        hasher.update(part);
    }
    let derived = *Zeroizing::new(hasher.finalize()).as_bytes();
    // The hasher still holds the last 64 bytes of its input.
    hasher.zeroize();
    derived
}

/// `keyed(key, data)`: a message authentication code and pseudorandom function of 32 bytes.
#[must_use]
pub fn keyed(key: &[u8; 32], data: &[u8]) -> [u8; 32] {
    *blake3::keyed_hash(key, data).as_bytes()
}

/// Plain BLAKE3.
#[must_use]
pub fn hash(data: &[u8]) -> [u8; 32] {
    *blake3::hash(data).as_bytes()
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

    // From the test vectors published with BLAKE3, input length 0.
    #[test]
    fn the_three_modes_match_the_published_vectors() {
        let key = b"whats the Elvish word for friend";
        let context = "BLAKE3 2019-12-27 16:29:52 test vectors context";
        assert_eq!(
            HEXLOWER.encode(&hash(b"")),
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
        );
        assert_eq!(
            HEXLOWER.encode(&keyed(key, b"")),
            "92b2b75604ed3c761f9d6f62392c8a9227ad0ea3f09573e783f1498a4ed60d26"
        );
        assert_eq!(
            HEXLOWER.encode(&derive(context, b"")),
            "2cc39783c223154fea8dfb7c1b1660f2ac2dcbd1c1de8277b0b0dd39b7e50d7d"
        );
    }

    #[test]
    fn derivation_from_parts_is_derivation_from_their_concatenation() {
        assert_eq!(derive_parts("test", &[b"ab", b"", b"c"]), derive("test", b"abc"));
    }
}
