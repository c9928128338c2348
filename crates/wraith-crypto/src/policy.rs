//! Policies: named sets of permitted algorithms, for users bound by regulation or worried about
//! quantum computers.
//!
//! | policy | permits |
//! |---|---|
//! | `default` | all but broken algorithms, and those that are safe only in expert hands |
//! | `fips-like` | algorithms approved by NIST (SP 800-131A, 800-140C and D): AES, SHA-2, SHA-3, their MACs, the NIST curves, FFDHE, EdDSA, RSA, ML-KEM, ML-DSA, SLH-DSA |
//! | `sm` | the Chinese national standards: SM2, SM3, SM4 |
//! | `pq-only` | algorithms that resist quantum computers: ML-KEM, alone or beside a curve, ML-DSA, SLH-DSA, and 256-bit symmetric keys |
//!
//! `fips-like` is called "like" because approved algorithms do not make a validated module. In the
//! transport, a policy selects the packet suites ([`Policy::packet_suites`]). The protocol version
//! fixes the algorithms of the handshake: X25519 together with ML-KEM-768, ChaCha20-Poly1305 and
//! SHA-256.

use std::fmt;
use std::str::FromStr;

use crate::Suite;
use crate::names::{UnknownAlgorithm, is_same_name};

/// A named set of permitted algorithms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// All but broken algorithms, and those that are safe only in expert hands.
    #[default]
    Default,
    /// Algorithms approved by NIST.
    FipsLike,
    /// The Chinese national standards.
    Sm,
    /// Algorithms that resist quantum computers.
    PqOnly,
}

impl Policy {
    /// Every policy.
    pub const ALL: [Self; 4] = [Self::Default, Self::FipsLike, Self::Sm, Self::PqOnly];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::FipsLike => "fips-like",
            Self::Sm => "sm",
            Self::PqOnly => "pq-only",
        }
    }

    /// Returns the [`Suite::bit`]s of the packet suites that the policy permits.
    #[must_use]
    pub const fn packet_suites(self) -> u8 {
        let (aes, chacha) = (Suite::Aes256Gcm.bit(), Suite::ChaCha20Poly1305.bit());
        match self {
            Self::Default | Self::PqOnly => aes | chacha,
            Self::FipsLike => aes,
            Self::Sm => Suite::Sm4Gcm.bit(),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Policy {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|each| is_same_name(each.name(), name));
        found.ok_or_else(|| UnknownAlgorithm::new("policy", name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_found_by_the_name_it_gives() {
        for policy in Policy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert_eq!("PQ_only".parse(), Ok(Policy::PqOnly));
        let unknown = Policy::from_str("nsa").unwrap_err();
        assert_eq!(unknown.to_string(), "unknown policy 'nsa'");
    }
}
