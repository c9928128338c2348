//! What guest and holder say to each other wherever they meet: the messages of [`crate::pake`] behind one byte that says
//! which (SPEC §11.4).

use crate::holder::Refusal;
use crate::pake::{ANSWER_LEN, GIFT_LEN, HELLO_LEN, PROOF_LEN, WELCOME_LEN};

/// The longest message.
pub const MAX_MESSAGE_LEN: usize = 1 + WELCOME_LEN;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Guest: I look for this code.
    Hello([u8; HELLO_LEN]),
    /// Holder: here I am.
    Answer([u8; ANSWER_LEN]),
    /// Guest: my guess.
    Proof([u8; PROOF_LEN]),
    /// Holder: it is right, and this is yours.
    Welcome(Box<[u8; WELCOME_LEN]>),
    /// Guest: this is yours.
    Gift(Box<[u8; GIFT_LEN]>),
    /// Holder: no.
    Refused(Refusal),
    /// Holder: I have your gift.
    Thanks,
}

impl Message {
    /// `kind(1) ‖ body`.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, body): (u8, &[u8]) = match self {
            Self::Hello(bytes) => (1, bytes),
            Self::Answer(bytes) => (2, bytes),
            Self::Proof(bytes) => (3, bytes),
            Self::Welcome(bytes) => (4, &**bytes),
            Self::Gift(bytes) => (5, &**bytes),
            Self::Refused(why) => (6, &[*why as u8]),
            Self::Thanks => (7, &[]),
        };
        let mut out = Vec::with_capacity(1 + body.len());
        out.push(kind);
        out.extend_from_slice(body);
        out
    }

    /// The message of these bytes, if they are exactly one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, body) = bytes.split_first()?;
        Some(match kind {
            1 => Self::Hello(body.try_into().ok()?),
            2 => Self::Answer(body.try_into().ok()?),
            3 => Self::Proof(body.try_into().ok()?),
            4 => Self::Welcome(Box::new(body.try_into().ok()?)),
            5 => Self::Gift(Box::new(body.try_into().ok()?)),
            6 => match body {
                [why] => Self::Refused(Refusal::from_wire(*why)?),
                _ => return None,
            },
            7 if body.is_empty() => Self::Thanks,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_message_survives_and_none_is_longer_than_the_longest() {
        for message in [
            Message::Hello([1; HELLO_LEN]),
            Message::Answer([2; ANSWER_LEN]),
            Message::Proof([3; PROOF_LEN]),
            Message::Welcome(Box::new([4; WELCOME_LEN])),
            Message::Gift(Box::new([5; GIFT_LEN])),
            Message::Refused(Refusal::Burned),
            Message::Thanks,
        ] {
            let bytes = message.encode();
            assert!(bytes.len() <= MAX_MESSAGE_LEN);
            assert_eq!(Message::decode(&bytes), Some(message));
            assert_eq!(Message::decode(&bytes[..bytes.len() - 1]), None);
            assert_eq!(Message::decode(&[&bytes[..], &[0]].concat()), None);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_refused_or_encode_to_themselves(
            kind in 0..10_u8,
            body in prop::collection::vec(any::<u8>(), 0..500),
        ) {
            let bytes = [&[kind][..], &body].concat();
            if let Some(message) = Message::decode(&bytes) {
                prop_assert_eq!(message.encode(), bytes);
            }
            let _ = Message::decode(&body);
        }
    }
}
