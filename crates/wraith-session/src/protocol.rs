//! Handshake protocols by their Noise names, such as
//! `Noise_XXhfs+psk3_25519+MLKEM768_ChaChaPoly_BLAKE2s`.
//!
//! A name with an unknown part is refused; no part has a default.

use std::fmt;
use std::str::FromStr;

use snow::params::{
    BaseChoice, CipherChoice, DHChoice, HandshakeChoice, HandshakeModifier, HandshakeModifierList,
    HandshakePattern, HashChoice, KemChoice, NoiseParams,
};
use thiserror::Error;
use wraith_crypto::ml_kem_768::{CIPHERTEXT_BYTES, ENCAPSULATION_KEY_BYTES};
use wraith_crypto::{Policy, Suite, TAG_BYTES};

use crate::hash::HashFunction;

/// Represents ML-KEM-768 in the parameters, because snow names no newer KEM. The resolver of
/// `wraith-noise` computes ML-KEM-768.
const MLKEM768: KemChoice = KemChoice::Kyber1024;

/// Bytes of an X25519 public key.
const KEY_BYTES: usize = 32;

/// A handshake pattern (Noise revision 34, §7.5): which static keys exist and how each becomes
/// known. The first letter is the initiator's key, the second the responder's. X is sent encrypted,
/// K is known in advance, I is sent at once, and N means that the side has no static key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// No key is known in advance: three messages, both identities encrypted.
    XX,
    /// The responder is known: three messages, with the best protection of the initiator's
    /// identity.
    XK,
    /// The responder is known: two messages.
    IK,
    /// The responder is known, the initiator stays anonymous: two messages.
    NK,
    /// No key is known in advance: two messages, the initiator's identity is sent in the clear.
    IX,
}

impl Pattern {
    /// All patterns.
    pub const ALL: [Self; 5] = [Self::XX, Self::XK, Self::IK, Self::NK, Self::IX];

    /// Returns the pattern's name in the Noise framework.
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

    /// Returns the tokens of each message.
    const fn tokens(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::XX => &[&["e"], &["e", "ee", "s", "es"], &["s", "se"]],
            Self::XK => &[&["e", "es"], &["e", "ee"], &["s", "se"]],
            Self::IK => &[&["e", "es", "s", "ss"], &["e", "ee", "se"]],
            Self::NK => &[&["e", "es"], &["e", "ee"]],
            Self::IX => &[&["e", "s"], &["e", "ee", "se", "s", "es"]],
        }
    }

    /// Returns the number of messages until both sides can split.
    #[must_use]
    pub const fn messages(self) -> u8 {
        self.tokens().len() as u8
    }

    /// Returns whether the initiator must know the responder's static key in advance.
    #[must_use]
    pub const fn knows_responder(self) -> bool {
        matches!(self, Self::XK | Self::IK | Self::NK)
    }

    /// Returns whether message `number`, from 0, carries the static key of its writer.
    pub(crate) fn carries_static(self, number: usize) -> bool {
        self.tokens().get(number).is_some_and(|tokens| tokens.contains(&"s"))
    }

    /// Returns whether a message carries the static key of this side.
    pub(crate) fn sends_static(self, initiator: bool) -> bool {
        (usize::from(!initiator)..3).step_by(2).any(|number| self.carries_static(number))
    }

    /// Returns whether the finished handshake proves the initiator's identity.
    pub(crate) const fn proves_initiator(self) -> bool {
        matches!(self, Self::XX | Self::XK)
    }

    /// Returns whether this side has a static key.
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

/// All parameters of a handshake. X25519 is the only curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Protocol {
    /// Handshake pattern.
    pub pattern: Pattern,
    /// Mixes in ML-KEM-768 beside X25519 (the `hfs` extension). An attacker that records traffic
    /// today then cannot decrypt it with a later quantum computer.
    pub hybrid: bool,
    /// Position of the pre-shared key, from 0 to the number of messages, if there is one (Noise
    /// revision 34, §9).
    pub psk: Option<u8>,
    /// AEAD suite.
    pub suite: Suite,
    /// Hash function.
    pub hash: HashFunction,
}

impl Protocol {
    /// XX with ML-KEM-768, for two parties that meet for the first time. AES-256-GCM is faster on
    /// processors with AES instructions. But both sides must name the same protocol, and
    /// ChaCha20-Poly1305 is fast everywhere.
    pub const DEFAULT: Self = Self {
        pattern: Pattern::XX,
        hybrid: true,
        psk: None,
        suite: Suite::ChaCha20Poly1305,
        hash: HashFunction::Blake2s,
    };

    /// Returns whether `policy` allows this protocol. Its AEAD must be among the policy's packet
    /// suites. `fips-like` and `pq-only` also require ML-KEM-768 beside X25519, and `fips-like` a
    /// NIST hash. `sm` does not restrict hash and key agreement, because Noise has no names for
    /// those of the SM family.
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

    /// Returns the bytes of message `number`, from 0, without its payload.
    ///
    /// The count follows Noise (revision 34, §5.3 and §9.2): a public key is 32 bytes, and each
    /// part encrypted under an established key has a tag. The hybrid extension adds ML-KEM's key to
    /// the first message, after its first key agreement if there is one, and the ciphertext after
    /// `ee`.
    pub(crate) fn overhead(&self, number: usize) -> usize {
        let tag = |has_key| if has_key { TAG_BYTES } else { 0 };
        let mut has_key = self.psk == Some(0);
        let mut len = 0;
        for (at, tokens) in self.pattern.tokens().iter().enumerate().take(number + 1) {
            len = 0;
            let first_agreement = tokens.iter().position(|token| token.len() == 2);
            for (index, token) in tokens.iter().enumerate() {
                match *token {
                    "e" => {
                        len += KEY_BYTES;
                        has_key |= self.psk.is_some();
                    }
                    "s" => len += KEY_BYTES + tag(has_key),
                    _ => has_key = true,
                }
                if self.hybrid && at == 0 && index == first_agreement.unwrap_or(0) {
                    len += ENCAPSULATION_KEY_BYTES + tag(has_key);
                }
                if self.hybrid && *token == "ee" {
                    len += CIPHERTEXT_BYTES + TAG_BYTES;
                }
            }
            has_key |= self.psk == Some(at as u8 + 1);
            len += tag(has_key);
        }
        len
    }

    /// Returns the parameters for snow. snow supports the hybrid extension but names only an older
    /// KEM; the resolver decides which KEM is computed.
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
            self.hybrid.then_some(MLKEM768),
            match self.suite {
                Suite::Aes256Gcm => CipherChoice::AESGCM,
                Suite::ChaCha20Poly1305 => CipherChoice::ChaChaPoly,
                // snow has no SM4-GCM; the resolver computes the suite of the protocol.
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

/// The error for a name that is no supported handshake.
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
    fn every_protocol_matches_its_name() {
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
        // Columns: default, fips-like, sm, pq-only.
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
    fn near_miss_names_are_refused() {
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
