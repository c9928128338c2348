//! SHA-256 (FIPS 180-4), the hash function of the handshake, computed by AWS-LC.

/// Incremental state. Wiped when dropped.
#[derive(Clone)]
pub struct Sha256(wraith_aws_lc::hash::Sha256);

impl Sha256 {
    /// Length of the digest in bytes.
    pub const DIGEST_BYTES: usize = 32;
    /// Length of an input block in bytes, needed by HMAC.
    pub const BLOCK_BYTES: usize = 64;

    /// Creates the state of an empty message.
    #[must_use]
    pub fn new() -> Self {
        Self(wraith_aws_lc::hash::Sha256::new())
    }

    /// Hashes the next piece of the message.
    pub fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    /// Returns the digest of the message.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        self.0.finish()
    }

    /// Returns the digest of `data`.
    #[must_use]
    pub fn digest(data: &[u8]) -> [u8; 32] {
        let mut hash = Self::new();
        hash.update(data);
        hash.finish()
    }
}

impl Default for Sha256 {
    fn default() -> Self {
        Self::new()
    }
}

crate::redacted_debug!(Sha256);
