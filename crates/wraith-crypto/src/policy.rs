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
//! transport, a policy selects the packet suites ([`Policy::packet_suites`]). Without the feature
//! `sm4`, `sm` has none, so a transfer refuses it ([`Policy::check_built`]). The protocol version
//! fixes the algorithms of the handshake: X25519 together with ML-KEM-768, ChaCha20-Poly1305 and
//! SHA-256.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::Suite;
use crate::names::{UnknownAlgorithm, is_same_name};

/// Error: this build has no packet suite that the policy permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the policy '{0}' needs the feature `sm4`, which this program was built without: build it with the feature, or choose another policy"
)]
pub struct PolicyNotBuilt(pub Policy);

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

    /// Returns the [`Suite::bit`]s of the packet suites that the policy permits and this build has.
    #[must_use]
    pub const fn packet_suites(self) -> u8 {
        let (aes, chacha) = (Suite::Aes256Gcm.bit(), Suite::ChaCha20Poly1305.bit());
        match self {
            Self::Default | Self::PqOnly => aes | chacha,
            Self::FipsLike => aes,
            Self::Sm if Suite::Sm4Gcm.is_built() => Suite::Sm4Gcm.bit(),
            Self::Sm => 0,
        }
    }

    /// Checks that this build has a packet suite that the policy permits.
    ///
    /// # Errors
    /// [`PolicyNotBuilt`] for [`Policy::Sm`] without the feature `sm4`.
    pub const fn check_built(self) -> Result<(), PolicyNotBuilt> {
        match self.packet_suites() {
            0 => Err(PolicyNotBuilt(self)),
            _ => Ok(()),
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

    #[test]
    fn every_policy_but_sm_is_always_built() {
        for policy in Policy::ALL {
            let is_built = policy != Policy::Sm || cfg!(feature = "sm4");
            assert_eq!(policy.check_built().is_ok(), is_built, "{policy}");
            assert_eq!(policy.packet_suites() != 0, is_built, "{policy}");
        }
    }

    #[test]
    #[cfg(not(feature = "sm4"))]
    fn the_policy_sm_without_its_suite_is_refused_with_the_reason_and_the_remedy() {
        let refused = Policy::Sm.check_built().unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the policy 'sm' needs the feature `sm4`, which this program was built without: \
             build it with the feature, or choose another policy"
        );
    }
}
