//! Message authentication codes: a holder of the key can verify that a message is unmodified.
//!
//! The caller passes the message to a [`Mac`] in pieces. Compare its tag with [`Mac::verify`],
//! never with `==`. The type of each algorithm has the same methods: `new` (SipHash has one
//! constructor per tag length), `update`, `finish` and `verify`.

use thiserror::Error;

use crate::algorithm::algorithms;
use crate::{Backend, Unauthentic, hash};

mod cmac;
mod gmac;
mod hmac;
mod siphash;
mod siphash_rounds;

pub use cmac::{CbcMacSm4, CmacAes, CmacSm4};
pub use gmac::GmacAes;
pub use hmac::Hmac;
pub use siphash::SipHash;

/// Authentication of one message with some algorithm.
pub trait Mac: Send {
    /// Returns the algorithm.
    fn algorithm(&self) -> Algorithm;

    /// Authenticates the next piece of the message.
    fn update(&mut self, data: &[u8]);

    /// Writes the tag of the message to the front of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than [`Algorithm::tag_bytes`].
    fn finish_into(self: Box<Self>, out: &mut [u8]);

    /// Verifies the tag of the message, in constant time. A truncated tag is rejected.
    ///
    /// # Errors
    /// [`Unauthentic`] if `tag` is wrong.
    fn verify(self: Box<Self>, tag: &[u8]) -> Result<(), Unauthentic> {
        let mut expected = [0; TAG_MAX];
        let expected = &mut expected[..self.algorithm().tag_bytes()];
        self.finish_into(expected);
        same(expected, tag)
    }
}

/// Compares a tag with the expected one, in constant time.
fn same(expected: &[u8], tag: &[u8]) -> Result<(), Unauthentic> {
    match crate::equal(expected, tag) {
        true => Ok(()),
        false => Err(Unauthentic),
    }
}

/// Implements the methods and traits of a MAC with tags of 16 bytes. Its only field has `algorithm`,
/// `update`, and `$finish`, which returns the tag.
macro_rules! block_mac {
    ($name:ident, $finish:ident) => {
        impl $name {
            /// Authenticates the next piece of the message.
            pub fn update(&mut self, data: &[u8]) {
                self.0.update(data);
            }

            /// Returns the tag of the message.
            #[must_use]
            pub fn finish(mut self) -> [u8; 16] {
                self.0.$finish()
            }

            /// Verifies the tag of the message, in constant time. A truncated tag is rejected.
            ///
            /// # Errors
            /// [`Unauthentic`](crate::Unauthentic) if `tag` is wrong.
            pub fn verify(self, tag: &[u8]) -> Result<(), $crate::Unauthentic> {
                $crate::mac::same(&self.finish(), tag)
            }
        }

        impl $crate::mac::Mac for $name {
            fn algorithm(&self) -> $crate::mac::Algorithm {
                self.0.algorithm
            }

            fn update(&mut self, data: &[u8]) {
                self.0.update(data);
            }

            fn finish_into(mut self: Box<Self>, out: &mut [u8]) {
                out[..16].copy_from_slice(&self.0.$finish());
            }
        }

        impl ::zeroize::ZeroizeOnDrop for $name {}

        wraith_crypto::redacted_debug!(|it: $name| algorithm: it.0.algorithm);
    };
}
use block_mac;

/// Maximum length of a tag in bytes.
pub const TAG_MAX: usize = 64;

/// Reason why no message could be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MacError {
    /// The key has the wrong length.
    #[error("a key of {algorithm} has {expected} bytes, not {found}")]
    KeyLength {
        /// The algorithm in use.
        algorithm: Algorithm,
        /// Required length in bytes.
        expected: usize,
        /// Length of the key in bytes.
        found: usize,
    },
    /// The nonce has the wrong length: GMAC needs 12 bytes, the other algorithms none.
    #[error("a nonce of {algorithm} has {expected} bytes, not {found}")]
    NonceLength {
        /// The algorithm in use.
        algorithm: Algorithm,
        /// Required length in bytes.
        expected: usize,
        /// Length of the nonce in bytes.
        found: usize,
    },
}

algorithms! {
    /// A message authentication code.
    "MAC";
    "RFC 2104" {
        HmacSha1 = "HMAC-SHA-1", HmacSha224 = "HMAC-SHA-224", HmacSha256 = "HMAC-SHA-256",
        HmacSha384 = "HMAC-SHA-384", HmacSha512 = "HMAC-SHA-512", HmacSha3_224 = "HMAC-SHA3-224",
        HmacSha3_256 = "HMAC-SHA3-256", HmacSha3_384 = "HMAC-SHA3-384",
        HmacSha3_512 = "HMAC-SHA3-512",
        HmacSm3 = "HMAC-SM3",
        HmacMd5 = "HMAC-MD5",
    }
    "NIST SP 800-38B" {
        CmacAes128 = "CMAC-AES-128", CmacAes192 = "CMAC-AES-192", CmacAes256 = "CMAC-AES-256",
        CmacSm4 = "CMAC-SM4",
    }
    "GB/T 15852.1" {
        CbcMacSm4 = "CBC-MAC-SM4",
    }
    "NIST SP 800-38D" {
        GmacAes128 = "GMAC-AES-128", GmacAes192 = "GMAC-AES-192", GmacAes256 = "GMAC-AES-256",
    }
    "SipHash-2-4, Aumasson and Bernstein 2012" {
        SipHash64 = "SipHash-64", SipHash128 = "SipHash-128",
    }
}

impl Algorithm {
    /// Returns the length of a tag in bytes.
    #[must_use]
    pub const fn tag_bytes(self) -> usize {
        use Algorithm::*;
        match self {
            HmacSha1 => 20,
            HmacSha224 | HmacSha3_224 => 28,
            HmacSha256 | HmacSha3_256 | HmacSm3 => 32,
            HmacSha384 | HmacSha3_384 => 48,
            HmacSha512 | HmacSha3_512 => 64,
            SipHash64 => 8,
            HmacMd5 | SipHash128 | CmacAes128 | CmacAes192 | CmacAes256 | CmacSm4 => 16,
            CbcMacSm4 | GmacAes128 | GmacAes192 | GmacAes256 => 16,
        }
    }

    /// Returns the length of a key in bytes. `None` if any length is allowed (HMAC: use the length
    /// of a tag).
    #[must_use]
    pub const fn key_bytes(self) -> Option<usize> {
        use Algorithm::*;
        match self {
            CmacAes128 | CmacSm4 | CbcMacSm4 | GmacAes128 | SipHash64 | SipHash128 => Some(16),
            CmacAes192 | GmacAes192 => Some(24),
            CmacAes256 | GmacAes256 => Some(32),
            _ => None,
        }
    }

    /// Returns the length of the nonce in bytes. GMAC needs a new nonce for each message; the other
    /// algorithms have none.
    #[must_use]
    pub const fn nonce_bytes(self) -> usize {
        match self {
            Self::GmacAes128 | Self::GmacAes192 | Self::GmacAes256 => 12,
            _ => 0,
        }
    }

    /// Returns the implementation on this processor.
    #[must_use]
    pub fn backend(self) -> Backend {
        match self.hash() {
            Some(hash) => hash.backend(),
            None => match self {
                Self::CmacAes128 | Self::CmacAes192 | Self::CmacAes256 => {
                    crate::cipher::aes_backend()
                }
                Self::GmacAes128 | Self::GmacAes192 | Self::GmacAes256 => GmacAes::backend(),
                Self::CmacSm4 | Self::CbcMacSm4 => crate::cipher::sm4_backend(),
                _ => Backend::Own("portable".into()),
            },
        }
    }

    /// Starts a message under `key`. `nonce` is empty if [`Self::nonce_bytes`] is 0.
    ///
    /// # Errors
    /// [`MacError`] if a length is wrong.
    pub fn start(self, key: &[u8], nonce: &[u8]) -> Result<Box<dyn Mac>, MacError> {
        let algorithm = self;
        let (expected, found) = (self.key_bytes().unwrap_or(key.len()), key.len());
        let wrong = MacError::KeyLength { algorithm, expected, found };
        if found != expected {
            return Err(wrong);
        }
        let (expected, found) = (self.nonce_bytes(), nonce.len());
        if found != expected {
            return Err(MacError::NonceLength { algorithm, expected, found });
        }
        let mac: Option<Box<dyn Mac>> = match self {
            Self::CmacAes128 | Self::CmacAes192 | Self::CmacAes256 => {
                CmacAes::new(key).map(|mac| Box::new(mac) as _)
            }
            Self::GmacAes128 | Self::GmacAes192 | Self::GmacAes256 => nonce
                .first_chunk()
                .and_then(|nonce| GmacAes::new(key, nonce))
                .map(|mac| Box::new(mac) as _),
            Self::SipHash64 => key.first_chunk().map(|key| Box::new(SipHash::new_64(key)) as _),
            Self::SipHash128 => key.first_chunk().map(|key| Box::new(SipHash::new_128(key)) as _),
            Self::CmacSm4 => key.first_chunk().map(|key| Box::new(CmacSm4::new(key)) as _),
            Self::CbcMacSm4 => key.first_chunk().map(|key| Box::new(CbcMacSm4::new(key)) as _),
            _ => hmac::start(self, key),
        };
        mac.ok_or(wrong)
    }

    /// Returns the hash function of an HMAC, or `None` for another algorithm.
    #[must_use]
    pub const fn hash(self) -> Option<hash::Algorithm> {
        Some(match self {
            Self::HmacSha1 => hash::Algorithm::Sha1,
            Self::HmacSha224 => hash::Algorithm::Sha224,
            Self::HmacSha256 => hash::Algorithm::Sha256,
            Self::HmacSha384 => hash::Algorithm::Sha384,
            Self::HmacSha512 => hash::Algorithm::Sha512,
            Self::HmacSha3_224 => hash::Algorithm::Sha3_224,
            Self::HmacSha3_256 => hash::Algorithm::Sha3_256,
            Self::HmacSha3_384 => hash::Algorithm::Sha3_384,
            Self::HmacSha3_512 => hash::Algorithm::Sha3_512,
            Self::HmacSm3 => hash::Algorithm::Sm3,
            Self::HmacMd5 => hash::Algorithm::Md5,
            _ => return None,
        })
    }
}
