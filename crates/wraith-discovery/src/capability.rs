//! The secret that authorizes a transfer. `Debug` never shows it, comparison takes constant time,
//! and drop wipes it.

use std::fmt;

/// 128 random bits. Any holder of these bits may fetch the files that they name (SPEC §2).
#[derive(Clone)]
pub struct Capability([u8; Capability::LEN]);

impl Capability {
    /// Length of a capability in bytes; 128 bits cannot be guessed online or offline.
    pub const LEN: usize = 16;

    /// Uses 16 random bytes as the secret.
    pub const fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        Self(bytes)
    }

    /// Returns the secret for the encrypted session or the ticket; never for a log.
    pub const fn as_bytes(&self) -> &[u8; Self::LEN] {
        &self.0
    }
}

impl PartialEq for Capability {
    /// Compares in constant time.
    fn eq(&self, other: &Self) -> bool {
        wraith_crypto::equal(&self.0, &other.0)
    }
}

impl Eq for Capability {}

impl fmt::Debug for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Capability(secret)")
    }
}

impl Drop for Capability {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Capability::from_bytes([0xab; 16]);
        assert_eq!(format!("{secret:?}"), "Capability(secret)");
    }

    #[test]
    fn secrets_are_equal_only_when_every_byte_is() {
        let secret = Capability::from_bytes([7; 16]);
        assert_eq!(secret, secret.clone());
        for at in 0..16 {
            let mut other = [7; 16];
            other[at] ^= 0x80;
            assert_ne!(secret, Capability::from_bytes(other));
        }
    }
}
