//! Which handshake two parties speak, by its Noise name: `Noise_XXhfs+psk3_25519+MLKEM768_ChaChaPoly_BLAKE2s`.
//!
//! A name is taken as it stands or not at all: what is not known here has no default.

use std::fmt;
use std::str::FromStr;

use snow::params::{
    BaseChoice, CipherChoice, DHChoice, HandshakeChoice, HandshakeModifier, HandshakeModifierList,
    HandshakePattern, HashChoice, KemChoice, NoiseParams,
};
use thiserror::Error;
use wraith_crypto::{Policy, Suite};
use wraith_noise::primitives::HashFunction;

/// Who knows whose static key before, and who tells it (Noise revision 34, §7.5). The first letter is the initiator's key, the
/// second the responder's: X is sent encrypted, K is known before, I is sent at once, N there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// Nobody knows anybody: three messages, both identities encrypted.
    XX,
    /// The responder is known: three messages, the initiator's identity is hidden best.
    XK,
    /// The responder is known: two messages.
    IK,
    /// The responder is known, the initiator stays anonymous: two messages.
    NK,
    /// Nobody knows anybody: two messages, the initiator's identity is sent in the clear.
    IX,
}

impl Pattern {
    /// Every one.
    pub const ALL: [Self; 5] = [Self::XX, Self::XK, Self::IK, Self::NK, Self::IX];

    /// The name in the Noise framework.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::XX => "XX",
            Self::XK => "XK",
            Self::IK => "IK",
            Self::NK => "NK",
            Self::IX => "IX",
        }
    }

    /// Messages until both sides can split.
    #[must_use]
    pub const fn messages(self) -> u8 {
        match self {
            Self::XX | Self::XK => 3,
            Self::IK | Self::NK | Self::IX => 2,
        }
    }

    /// Whether the initiator must know the responder's static key before.
    #[must_use]
    pub const fn knows_responder(self) -> bool {
        matches!(self, Self::XK | Self::IK | Self::NK)
    }

    /// The message, from 0, in which the initiator's (true) or the responder's static key is sent, if it is.
    pub(crate) const fn tells_static_in(self, initiator: bool) -> Option<u8> {
        match (self, initiator) {
            (Self::XX | Self::XK, true) => Some(2),
            (Self::IK | Self::IX, true) => Some(0),
            (Self::XX | Self::IX, false) => Some(1),
            (Self::NK, true) | (Self::XK | Self::IK | Self::NK, false) => None,
        }
    }

    /// Whether the initiator has proved who it is when the handshake is over.
    pub(crate) const fn proves_initiator(self) -> bool {
        matches!(self, Self::XX | Self::XK)
    }

    /// Whether this side has a static key.
    pub(crate) const fn has_static(self, initiator: bool) -> bool {
        !matches!((self, initiator), (Self::NK, true))
    }

    const fn choice(self) -> HandshakePattern {
        match self {
            Self::XX => HandshakePattern::XX,
            Self::XK => HandshakePattern::XK,
            Self::IK => HandshakePattern::IK,
            Self::NK => HandshakePattern::NK,
            Self::IX => HandshakePattern::IX,
        }
    }
}

/// A handshake by all its parts. X25519 is the only curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Protocol {
    /// Who knows and tells whose key.
    pub pattern: Pattern,
    /// Whether ML-KEM-768 is mixed in beside X25519 (the `hfs` extension), so that who records today and has a quantum computer
    /// later reads nothing.
    pub hybrid: bool,
    /// The position of a pre-shared key, 0 to the number of messages, if there is one (Noise revision 34, §9).
    pub psk: Option<u8>,
    /// What encrypts.
    pub suite: Suite,
    /// What hashes.
    pub hash: HashFunction,
}

impl Protocol {
    /// XX with ML-KEM-768, for two who meet for the first time. AES-256-GCM is faster where the processor has it, but both sides have
    /// to name the same protocol: ChaCha20-Poly1305 is fast everywhere.
    pub const DEFAULT: Self = Self {
        pattern: Pattern::XX,
        hybrid: true,
        psk: None,
        suite: Suite::ChaCha20Poly1305,
        hash: HashFunction::Blake2s,
    };

    /// Whether `policy` allows it: what encrypts has to be among what the policy seals packets with. `fips-like` and `pq-only` also want ML-KEM-768
    /// beside X25519, and `fips-like` a hash of NIST's. `sm` says nothing of hash and key agreement, for which there are no names in
    /// Noise.
    #[must_use]
    pub const fn is_allowed_by(&self, policy: Policy) -> bool {
        let suite = policy.packet_suites() & self.suite.bit() != 0;
        match policy {
            Policy::PqOnly => suite && self.hybrid,
            Policy::FipsLike => {
                let hash = matches!(self.hash, HashFunction::Sha256 | HashFunction::Sha512);
                suite && self.hybrid && hash
            }
            _ => suite || matches!(policy, Policy::Default),
        }
    }

    /// snow knows the hybrid extension, and of KEMs only an older one by name; which one is computed with is the resolver's matter.
    pub(crate) fn params(&self) -> NoiseParams {
        let hybrid = self.hybrid.then_some(HandshakeModifier::Hfs);
        let psk = self.psk.map(HandshakeModifier::Psk);
        let list = hybrid.into_iter().chain(psk).collect();
        NoiseParams::new(
            self.to_string(),
            BaseChoice::Noise,
            HandshakeChoice {
                pattern: self.pattern.choice(),
                modifiers: HandshakeModifierList { list },
            },
            DHChoice::Curve25519,
            self.hybrid.then_some(KemChoice::Kyber1024),
            match self.suite {
                Suite::Aes256Gcm => CipherChoice::AESGCM,
                Suite::ChaCha20Poly1305 => CipherChoice::ChaChaPoly,
                // snow knows no other; the resolver computes what the suite is.
                Suite::Sm4Gcm => CipherChoice::AESGCM,
            },
            match self.hash {
                HashFunction::Sha256 => HashChoice::SHA256,
                HashFunction::Sha512 => HashChoice::SHA512,
                HashFunction::Blake2s => HashChoice::Blake2s,
                HashFunction::Blake2b => HashChoice::Blake2b,
            },
        )
    }
}

impl Default for Protocol {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Noise_{}", self.pattern.name())?;
        match (self.hybrid, self.psk) {
            (true, Some(position)) => write!(f, "hfs+psk{position}")?,
            (true, None) => f.write_str("hfs")?,
            (false, Some(position)) => write!(f, "psk{position}")?,
            (false, None) => {}
        }
        f.write_str(if self.hybrid { "_25519+MLKEM768" } else { "_25519" })?;
        f.write_str(match self.suite {
            Suite::Aes256Gcm => "_AESGCM",
            Suite::ChaCha20Poly1305 => "_ChaChaPoly",
            Suite::Sm4Gcm => "_SM4GCM",
        })?;
        write!(f, "_{}", self.hash.name())
    }
}

/// Not the name of a handshake that is spoken here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "no known handshake: expected Noise_PATTERN[hfs][+pskN]_25519[+MLKEM768]_CIPHER_HASH, with XX, XK, IK, NK or IX, with \
     AESGCM, ChaChaPoly or SM4GCM, and with SHA256, SHA512, BLAKE2s or BLAKE2b; hfs and MLKEM768 go together"
)]
pub struct UnknownProtocol;

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(text: &str) -> Result<Self, UnknownProtocol> {
        let mut parts = text.split('_');
        let mut part = || parts.next().ok_or(UnknownProtocol);
        if part()? != "Noise" {
            return Err(UnknownProtocol);
        }
        let handshake = part()?;
        let (name, modifiers) = handshake.split_at_checked(2).ok_or(UnknownProtocol)?;
        let pattern = Pattern::ALL.into_iter().find(|each| each.name() == name);
        let pattern = pattern.ok_or(UnknownProtocol)?;
        let (hybrid, psk) = match modifiers.strip_prefix("hfs") {
            Some("") => (true, None),
            Some(rest) => (true, Some(rest.strip_prefix('+').ok_or(UnknownProtocol)?)),
            None => (false, Some(modifiers).filter(|rest| !rest.is_empty())),
        };
        let psk = psk.map(|psk| position(psk, pattern)).transpose()?;
        if part()? != if hybrid { "25519+MLKEM768" } else { "25519" } {
            return Err(UnknownProtocol);
        }
        let suite = match part()? {
            "AESGCM" => Suite::Aes256Gcm,
            "ChaChaPoly" => Suite::ChaCha20Poly1305,
            "SM4GCM" => Suite::Sm4Gcm,
            _ => return Err(UnknownProtocol),
        };
        let hash = part()?;
        let hash = HashFunction::ALL.into_iter().find(|each| each.name() == hash);
        let hash = hash.ok_or(UnknownProtocol)?;
        match parts.next() {
            None => Ok(Self { pattern, hybrid, psk, suite, hash }),
            Some(_) => Err(UnknownProtocol),
        }
    }
}

fn position(modifier: &str, pattern: Pattern) -> Result<u8, UnknownProtocol> {
    match modifier.strip_prefix("psk").map(str::as_bytes) {
        Some([digit @ b'0'..=b'9']) if digit - b'0' <= pattern.messages() => Ok(digit - b'0'),
        _ => Err(UnknownProtocol),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_is_what_its_name_says() {
        for pattern in Pattern::ALL {
            for psk in (0..=pattern.messages()).map(Some).chain([None]) {
                for hash in HashFunction::ALL {
                    let suites = Suite::ALL.into_iter().zip([true, false, true]);
                    for (suite, hybrid) in suites {
                        let protocol = Protocol { pattern, hybrid, psk, suite, hash };
                        assert_eq!(protocol.to_string().parse(), Ok(protocol), "{protocol}");
                        assert_eq!(protocol.params().name, protocol.to_string());
                    }
                }
            }
        }
    }

    #[test]
    fn a_policy_allows_the_protocols_it_says() {
        let allowed = |name: &str| {
            let protocol: Protocol = name.parse().unwrap();
            Policy::ALL.map(|policy| protocol.is_allowed_by(policy))
        };
        // default, fips-like, sm, pq-only
        assert_eq!(allowed("Noise_XXhfs_25519+MLKEM768_AESGCM_SHA256"), [true, true, false, true]);
        assert_eq!(
            allowed("Noise_XXhfs_25519+MLKEM768_AESGCM_BLAKE2s"),
            [true, false, false, true]
        );
        assert_eq!(allowed("Noise_XX_25519_AESGCM_SHA512"), [true, false, false, false]);
        assert_eq!(
            allowed("Noise_XXhfs_25519+MLKEM768_ChaChaPoly_SHA256"),
            [true, false, false, true]
        );
        assert_eq!(allowed("Noise_XXhfs_25519+MLKEM768_SM4GCM_SHA256"), [true, false, true, false]);
    }

    #[test]
    fn what_is_not_quite_a_name_is_none() {
        for name in [
            "",
            "Noise",
            "Noise_XX_25519_ChaChaPoly",
            "Noise_XX_25519_ChaChaPoly_BLAKE2s_",
            "Noise_XX_448_ChaChaPoly_BLAKE2s",
            "Noise_NN_25519_ChaChaPoly_BLAKE2s",
            "Noise_XXhfs_25519_ChaChaPoly_BLAKE2s",
            "Noise_XX_25519+MLKEM768_ChaChaPoly_BLAKE2s",
            "Noise_XXpsk4_25519_ChaChaPoly_BLAKE2s",
            "Noise_IKpsk3_25519_ChaChaPoly_BLAKE2s",
            "Noise_XXpsk_25519_ChaChaPoly_BLAKE2s",
            "Noise_XX+psk3_25519_ChaChaPoly_BLAKE2s",
            "noise_xx_25519_chachapoly_blake2s",
            "Noise_\u{1f600}_25519_ChaChaPoly_BLAKE2s",
        ] {
            assert_eq!(name.parse::<Protocol>(), Err(UnknownProtocol), "{name}");
        }
    }
}
