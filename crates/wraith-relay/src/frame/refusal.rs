//! Why a relay refuses, as one byte.

use thiserror::Error;

/// Why a relay does not do what it was asked. New ones may come: unknown numbers are [`Refusal::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Refusal {
    /// It speaks another version.
    #[error("the relay speaks another version of the protocol")]
    Version,
    /// It wants a token that was not shown, or another one.
    #[error("the relay wants a token, and this is not it")]
    Token,
    /// It is for certain identities only.
    #[error("the relay is for certain identities only, and this is none of them")]
    Identity,
    /// Too many wrong proofs, or questions, from this address in short time.
    #[error("the relay is asked too often from this address; try later")]
    TooOften,
    /// No room in all, or for this address.
    #[error("the relay is full")]
    Full,
    /// What it may carry in a day is used up.
    #[error("the relay has carried what it may carry in a day")]
    Exhausted,
    /// It is about to end.
    #[error("the relay is about to stop")]
    Draining,
    /// Nobody waits at that mailbox.
    #[error("nobody waits at this relay under that name")]
    NoMailbox,
    /// Something that this version does not know.
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
    fn a_refusal_keeps_its_number() {
        for number in 0..=u8::MAX {
            assert_eq!(Refusal::from_wire(number).to_wire(), number);
        }
    }
}
