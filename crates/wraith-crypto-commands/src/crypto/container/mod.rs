//! The file format of `wraith crypto enc`: a header and chunks. Invariant: the plaintext of a chunk
//! is released only after the chunk is verified.
//!
//! The chunks use STREAM (Hoang, Reyhanitabar, Rogaway, Vizár: "Online Authenticated-Encryption and
//! its Nonce-Reuse Misuse-Resistance", CRYPTO 2015). Each nonce holds the number of the chunk and a
//! mark for the last one. So no chunk can be omitted, moved, repeated, or taken for the end. Each
//! file has a new key (HKDF of the secret and a random salt). The header commits to the key, so
//! that no file decrypts with two keys to two texts. docs/CRYPTO.md describes the bytes.

mod head;
mod open;
mod seal;

use wraith_suite::aead::{self, Aead, AeadError};
use wraith_suite::kem::{DecapsulationKey, EncapsulationKey};
use zeroize::Zeroizing;

use crate::failure::Failure;

pub use open::open;
pub use seal::seal;

/// Plaintext bytes of every chunk except the last, which has at most as many. It has 0 only if the
/// whole text is empty.
const CHUNK_BYTES: usize = 1 << 16;
/// Bytes of a tag, the same for every AEAD of the format.
const TAG_BYTES: usize = 16;

/// The secret or public key to encrypt with.
pub enum Recipient {
    Secret(Zeroizing<Vec<u8>>),
    Passphrase(Zeroizing<Vec<u8>>),
    Kem(Box<dyn EncapsulationKey>),
}

/// The secret or private key to decrypt with.
pub enum Unlock {
    Secret(Zeroizing<Vec<u8>>),
    Passphrase(Zeroizing<Vec<u8>>),
    /// Asks for a passphrase, once the header says that the file needs one.
    Asked(fn() -> Result<Zeroizing<Vec<u8>>, Failure>),
    Kem(Box<dyn DecapsulationKey>),
}

/// Why encryption failed.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error(transparent)]
    Io(#[from] Failure),
    #[error("the text has more than 2^32 chunks of 64 KiB")]
    TooLong,
    #[error(transparent)]
    Aead(#[from] AeadError),
    #[error("out of memory, or no randomness")]
    Failed,
}

/// Why decryption failed, or stopped before the end.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    Io(#[from] Failure),
    #[error("it is empty")]
    Empty,
    #[error("not encrypted by wraith crypto enc: the first bytes differ")]
    Foreign,
    #[error("it ends within its header")]
    ShortHead,
    #[error("its header is damaged, or of an unknown version")]
    BadHead,
    #[error("it was encrypted {with}, and the given secret does not fit")]
    OtherSecret {
        with: &'static str,
        /// The options to type.
        next: &'static str,
    },
    #[error("its key derivation needs more memory or time than allowed")]
    TooCostly,
    #[error("wrong key or passphrase, or a damaged header")]
    WrongSecret,
    #[error("it is cut off after {text_bytes} bytes of plaintext")]
    CutOff { text_bytes: u64 },
    #[error("it is damaged or cut off after {text_bytes} bytes of plaintext")]
    Damaged { text_bytes: u64 },
    #[error(transparent)]
    Aead(#[from] AeadError),
    #[error("out of memory, or no randomness")]
    Failed,
}

/// Cipher state of one file, for its chunks in order.
struct Chunks {
    key: Box<dyn Aead>,
    /// Nonce of the next chunk; its last five bytes are the number and the mark.
    nonce: Vec<u8>,
    next: Option<u32>,
}

impl Chunks {
    /// Starts with the first chunk. `prefix` is the common prefix of all nonces.
    fn new(key: Box<dyn Aead>, prefix: &[u8]) -> Self {
        let mut nonce = prefix.to_vec();
        nonce.resize(prefix.len() + COUNTER_BYTES, 0);
        Self { key, nonce, next: Some(0) }
    }

    /// Returns the nonce of the next chunk; None when all numbers are used.
    fn nonce(&mut self, is_last: bool) -> Option<&[u8]> {
        let at = self.nonce.len() - COUNTER_BYTES;
        self.nonce[at..at + 4].copy_from_slice(&self.next?.to_be_bytes());
        self.nonce[at + 4] = is_last.into();
        Some(&self.nonce)
    }

    fn advance(&mut self) {
        self.next = self.next.and_then(|next| next.checked_add(1));
    }
}

/// Bytes of the number and the mark in a nonce.
const COUNTER_BYTES: usize = 5;

/// Returns the length of the nonce prefix.
const fn prefix_bytes(algorithm: aead::Algorithm) -> usize {
    algorithm.nonce_bytes() - COUNTER_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_nonce_comes_twice_and_the_last_chunk_has_one_of_its_own() {
        let algorithm = aead::Algorithm::ChaCha20Poly1305;
        let key = algorithm.key(&[1; 32]).unwrap();
        let mut chunks = Chunks::new(key, &[7; 7]);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            for is_last in [false, true] {
                assert!(seen.insert(chunks.nonce(is_last).unwrap().to_vec()));
            }
            chunks.advance();
        }
        chunks.next = Some(u32::MAX);
        assert_eq!(chunks.nonce(false).unwrap(), [7, 7, 7, 7, 7, 7, 7, 255, 255, 255, 255, 0]);
        chunks.advance();
        assert_eq!(chunks.nonce(true), None);
    }
}
