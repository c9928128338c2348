//! Refusals of a relay, encoded as one byte.

use thiserror::Error;

/// Reason of a relay's refusal. Later versions may add more: unknown numbers decode as
/// [`Refusal::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Refusal {
    /// The relay uses another version of the protocol.
    #[error("the relay speaks another version of the protocol")]
    Version,
    /// The relay requires a token, which is missing or wrong.
    #[error("the relay requires a token, and the token is missing or wrong")]
    Token,
    /// The relay has an allowlist: it asks for an identity, or the identity is not on it.
    #[error("the relay admits only certain identities, and was shown none of them")]
    Identity,
    /// Too many wrong proofs, or too many requests, from this address in a short time.
    #[error(
        "too many wrong tokens or requests came from this address; check the token, and try again in a minute"
    )]
    TooOften,
    /// A limit of the relay or of this address is reached.
    #[error("the relay is full")]
    Full,
    /// The daily traffic limit is reached.
    #[error("the relay has reached its daily traffic limit")]
    Exhausted,
    /// The relay is about to stop.
    #[error("the relay is about to stop")]
    Draining,
    /// No client waits at the mailbox.
    #[error("no peer waits at this relay under that name")]
    NoMailbox,
    /// A reason unknown to this version.
    #[error("the relay refuses, with reason {0}")]
    Other(u8),
}

impl Refusal {
    const KNOWN: [Self; 8] = [
        Self::Version,
        Self::Token,
        Self::Identity,
        Self::TooOften,
        Self::Full,
        Self::Exhausted,
        Self::Draining,
        Self::NoMailbox,
    ];

    pub(super) fn to_wire(self) -> u8 {
        match (self, Self::KNOWN.iter().position(|known| *known == self)) {
            (Self::Other(number), _) => number,
            (_, position) => position.map_or(u8::MAX, |position| position as u8 + 1),
        }
    }

    pub(super) fn from_wire(number: u8) -> Self {
        let known = usize::from(number).checked_sub(1).and_then(|i| Self::KNOWN.get(i));
        known.copied().unwrap_or(Self::Other(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_survive_the_wire() {
        for number in 0..=u8::MAX {
            assert_eq!(Refusal::from_wire(number).to_wire(), number);
        }
    }
}
