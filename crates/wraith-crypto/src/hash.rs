//! SHA-256 (FIPS 180-4), which the Noise handshake hashes with. Everything else hashes with BLAKE3 ([`crate::kdf`]).

use std::fmt;

use aws_lc_rs::digest;

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

#[cfg(test)]
mod tests {
    use data_encoding::HEXLOWER;

    use super::*;

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
