//! The hash functions of the Noise framework: SHA-256 and SHA-512 (FIPS 180-4), computed by AWS-LC, BLAKE2s and BLAKE2b (RFC 7693).
//! The transport's handshake uses SHA-256. Everything else hashes with BLAKE3 ([`crate::kdf`]).

use std::fmt;

use aws_lc_rs::digest;
use blake2::digest::Digest;
use blake2::{Blake2b512, Blake2s256};

/// A running SHA-256.
#[derive(Clone)]
pub struct Sha256(digest::Context);

impl Sha256 {
    /// Length of the digest.
    pub const DIGEST_BYTES: usize = 32;
    /// Length of the compression function's input block, which HMAC needs to know.
    pub const BLOCK_BYTES: usize = 64;

    /// The hash of nothing, so far.
    #[must_use]
    pub fn new() -> Self {
        Self(digest::Context::new(&digest::SHA256))
    }

    /// Takes in `data`.
    pub fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    /// The digest of everything taken in.
    #[must_use]
    pub fn finish(self) -> [u8; Self::DIGEST_BYTES] {
        self.0.finish().as_ref().try_into().expect("a SHA-256 digest has 32 bytes")
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sha256").finish_non_exhaustive()
    }
}

/// A hash function of the Noise framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HashFunction {
    /// FIPS 180-4, 32 bytes.
    Sha256,
    /// FIPS 180-4, 64 bytes.
    Sha512,
    /// RFC 7693, 32 bytes.
    Blake2s,
    /// RFC 7693, 64 bytes.
    Blake2b,
}

impl HashFunction {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Sha256, Self::Sha512, Self::Blake2s, Self::Blake2b];

    /// Length of the digest.
    #[must_use]
    pub const fn digest_bytes(self) -> usize {
        match self {
            Self::Sha256 | Self::Blake2s => 32,
            Self::Sha512 | Self::Blake2b => 64,
        }
    }

    /// Length of the compression function's input block, which HMAC needs to know.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        2 * self.digest_bytes()
    }

    /// The name in the Noise framework (revision 34, §12).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "SHA256",
            Self::Sha512 => "SHA512",
            Self::Blake2s => "BLAKE2s",
            Self::Blake2b => "BLAKE2b",
        }
    }
}

/// A running hash of any [`HashFunction`].
#[derive(Clone)]
pub struct Hasher(Running);

#[derive(Clone)]
enum Running {
    Sha2(digest::Context),
    Blake2s(Box<Blake2s256>),
    Blake2b(Box<Blake2b512>),
}

impl Hasher {
    /// The hash of nothing, so far.
    #[must_use]
    pub fn new(function: HashFunction) -> Self {
        Self(match function {
            HashFunction::Sha256 => Running::Sha2(digest::Context::new(&digest::SHA256)),
            HashFunction::Sha512 => Running::Sha2(digest::Context::new(&digest::SHA512)),
            HashFunction::Blake2s => Running::Blake2s(Box::default()),
            HashFunction::Blake2b => Running::Blake2b(Box::default()),
        })
    }

    /// Takes in `data`.
    pub fn update(&mut self, data: &[u8]) {
        match &mut self.0 {
            Running::Sha2(context) => context.update(data),
            Running::Blake2s(state) => Digest::update(&mut **state, data),
            Running::Blake2b(state) => Digest::update(&mut **state, data),
        }
    }

    /// Writes the digest of everything taken in to the front of `out`.
    ///
    /// # Panics
    /// If `out` is shorter than the digest.
    pub fn finish_into(self, out: &mut [u8]) {
        match self.0 {
            Running::Sha2(context) => {
                let digest = context.finish();
                out[..digest.as_ref().len()].copy_from_slice(digest.as_ref());
            }
            Running::Blake2s(state) => out[..32].copy_from_slice(&state.finalize()),
            Running::Blake2b(state) => out[..64].copy_from_slice(&state.finalize()),
        }
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hasher").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

    #[test]
    fn every_hash_function_gives_the_published_digest_of_abc() {
        // FIPS 180-4's example and RFC 7693 appendices A and B.
        let digests = [
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
             2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
            "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982",
            "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1\
             7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923",
        ];
        for (function, expected) in HashFunction::ALL.into_iter().zip(digests) {
            let mut out = [0; 64];
            let mut hasher = Hasher::new(function);
            hasher.update(b"a");
            hasher.update(b"bc");
            hasher.finish_into(&mut out);
            assert_eq!(HEXLOWER.encode(&out[..function.digest_bytes()]), expected, "{function:?}");
        }
    }

    #[test]
    fn sha_256_matches_fips_180() {
        let mut hash = Sha256::new();
        hash.update(b"a");
        hash.update(b"bc");
        assert_eq!(
            HEXLOWER.encode(&hash.finish()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
