//! The AEADs, their lengths, and the errors of their keys.

use thiserror::Error;

use crate::Suite;
use crate::algorithm::algorithms;

/// Reason why nothing was sealed or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AeadError {
    /// The key has the wrong length.
    #[error("a key of {algorithm} has {} bytes, not {found}", algorithm.key_bytes())]
    KeyLength {
        /// The algorithm in use.
        algorithm: Algorithm,
        /// Length of the key in bytes.
        found: usize,
    },
    /// The nonce has the wrong length.
    #[error("a nonce of {algorithm} has {expected} bytes here, not {found}")]
    NonceLength {
        /// The algorithm in use.
        algorithm: Algorithm,
        /// Length required by the key, in bytes.
        expected: usize,
        /// Length of the nonce in bytes.
        found: usize,
    },
    /// The nonce is empty, where any other length is allowed
    /// ([`AesGcm::seal_with_nonce`](super::AesGcm::seal_with_nonce)).
    #[error("the nonce is empty: {algorithm} needs at least one byte")]
    EmptyNonce {
        /// The algorithm in use.
        algorithm: Algorithm,
    },
    /// The tag has the wrong length.
    #[error("a tag of {algorithm} has {expected} bytes here, not {found}")]
    TagLength {
        /// The algorithm in use.
        algorithm: Algorithm,
        /// Length of the key's tags in bytes.
        expected: usize,
        /// Length of the tag in bytes.
        found: usize,
    },
    /// The text is longer than the key may seal under one nonce.
    #[error("{algorithm} seals at most {max} bytes at once here")]
    TooLong {
        /// The algorithm in use.
        algorithm: Algorithm,
        /// Maximum length in bytes.
        max: u64,
    },
    /// The key, the nonce, the associated data, the text or the tag differs from that of the
    /// sealing.
    #[error("not authentic: wrong key, or damaged")]
    Unauthentic,
}

algorithms! {
    /// An AEAD.
    "AEAD";
    "NIST SP 800-38D" {
        Aes128Gcm = "AES-128-GCM", Aes192Gcm = "AES-192-GCM", Aes256Gcm = "AES-256-GCM",
    }
    "NIST SP 800-38C" {
        Aes128Ccm = "AES-128-CCM", Aes192Ccm = "AES-192-CCM", Aes256Ccm = "AES-256-CCM",
    }
    "RFC 8452" {
        Aes128GcmSiv = "AES-128-GCM-SIV", Aes256GcmSiv = "AES-256-GCM-SIV",
    }
    "RFC 8439" {
        ChaCha20Poly1305 = "ChaCha20-Poly1305",
    }
    "draft-irtf-cfrg-xchacha" {
        XChaCha20Poly1305 = "XChaCha20-Poly1305",
    }
    "RFC 10032" {
        Aegis128L = "AEGIS-128L", Aegis128X2 = "AEGIS-128X2", Aegis256 = "AEGIS-256",
        Aegis256X2 = "AEGIS-256X2",
    }
    "RFC 8998" {
        Sm4Gcm = "SM4-GCM", Sm4Ccm = "SM4-CCM",
    }
}

impl Algorithm {
    /// Returns the algorithm of a packet suite.
    #[must_use]
    pub const fn of_suite(suite: Suite) -> Self {
        match suite {
            Suite::Aes256Gcm => Self::Aes256Gcm,
            Suite::ChaCha20Poly1305 => Self::ChaCha20Poly1305,
            Suite::Sm4Gcm => Self::Sm4Gcm,
        }
    }

    /// Returns the length of a key in bytes.
    #[must_use]
    pub const fn key_bytes(self) -> usize {
        use Algorithm::*;
        match self {
            Aes128Gcm | Aes128Ccm | Aes128GcmSiv | Sm4Gcm | Sm4Ccm | Aegis128L | Aegis128X2 => 16,
            Aes192Gcm | Aes192Ccm => 24,
            Aes256Gcm | Aes256Ccm | Aes256GcmSiv | ChaCha20Poly1305 | XChaCha20Poly1305 => 32,
            Aegis256 | Aegis256X2 => 32,
        }
    }

    /// Returns the length of a nonce in bytes. Nonces of 24 bytes or more may be random. Shorter
    /// ones have to be counters, or random for at most 2^32 messages (2^48 for AEGIS-128).
    #[must_use]
    pub const fn nonce_bytes(self) -> usize {
        use Algorithm::*;
        match self {
            XChaCha20Poly1305 => 24,
            Aegis128L | Aegis128X2 => 16,
            Aegis256 | Aegis256X2 => 32,
            _ => 12,
        }
    }

    /// Returns the length of a tag in bytes.
    #[must_use]
    pub const fn tag_bytes(self) -> usize {
        16
    }

    /// Returns the maximum length of a text in bytes:
    ///
    /// - 2^36 - 32 for GCM (SP 800-38D §5.2.1.1),
    /// - 2^24 - 1 for CCM with its 12-byte nonce,
    /// - 2^36 for AES-GCM-SIV,
    /// - 2^38 - 64 for ChaCha20,
    /// - 2^61 - 1 for AEGIS.
    #[must_use]
    pub const fn text_max(self) -> u64 {
        use Algorithm::*;
        match self {
            Aes128Gcm | Aes192Gcm | Aes256Gcm | Sm4Gcm => (1 << 36) - 32,
            Aes128Ccm | Aes192Ccm | Aes256Ccm | Sm4Ccm => (1 << 24) - 1,
            Aes128GcmSiv | Aes256GcmSiv => 1 << 36,
            ChaCha20Poly1305 | XChaCha20Poly1305 => (1 << 38) - 64,
            Aegis128L | Aegis128X2 | Aegis256 | Aegis256X2 => (1 << 61) - 1,
        }
    }

    /// Checks the lengths for sealing and opening ([`super::Aead`]).
    pub(crate) const fn check(
        self,
        nonce: &[u8],
        text: usize,
        tag: usize,
    ) -> Result<(), AeadError> {
        self.lengths().check(nonce, text, tag)
    }

    /// Returns the lengths of the algorithm's keys.
    pub(super) const fn lengths(self) -> Lengths {
        Lengths {
            algorithm: self,
            nonce_bytes: self.nonce_bytes(),
            tag_bytes: self.tag_bytes(),
            text_max: self.text_max(),
        }
    }

    /// Returns the error for a nonce of `found` bytes.
    pub(super) const fn nonce_length(self, found: usize) -> AeadError {
        AeadError::NonceLength { algorithm: self, expected: self.nonce_bytes(), found }
    }
}

/// Lengths that a key accepts, in most cases those of its algorithm.
#[derive(Clone, Copy)]
pub(super) struct Lengths {
    pub(super) algorithm: Algorithm,
    pub(super) nonce_bytes: usize,
    pub(super) tag_bytes: usize,
    pub(super) text_max: u64,
}

impl Lengths {
    /// Checks the lengths for sealing and opening ([`super::Aead`]).
    pub(super) const fn check(
        self,
        nonce: &[u8],
        text: usize,
        tag: usize,
    ) -> Result<(), AeadError> {
        let Self { algorithm, nonce_bytes, tag_bytes, text_max } = self;
        if nonce.len() != nonce_bytes {
            let found = nonce.len();
            return Err(AeadError::NonceLength { algorithm, expected: nonce_bytes, found });
        }
        if tag != tag_bytes {
            return Err(AeadError::TagLength { algorithm, expected: tag_bytes, found: tag });
        }
        if text as u64 > text_max {
            return Err(AeadError::TooLong { algorithm, max: text_max });
        }
        Ok(())
    }
}
