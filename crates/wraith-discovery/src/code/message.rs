//! Messages between joiner and creator at any meeting place: the messages of [`super::pake`] after
//! a type byte (SPEC §11.4).

use super::pake::{ANSWER_LEN, HELLO_LEN, PROOF_LEN, TICKET_LEN, WELCOME_LEN};
use crate::place::{MAX_MESSAGE_LEN, Refusal};

// The longest message must fit a place's limit.
const _: () = assert!(MAX_MESSAGE_LEN == 1 + WELCOME_LEN);

/// A message of the code exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Joiner: starts an exchange.
    Hello([u8; HELLO_LEN]),
    /// Creator: answers the hello.
    Answer([u8; ANSWER_LEN]),
    /// Joiner: the guess.
    Proof([u8; PROOF_LEN]),
    /// Creator: accepts the guess, with the payload for the joiner.
    Welcome(Box<[u8; WELCOME_LEN]>),
    /// Joiner: its ticket.
    Ticket(Box<[u8; TICKET_LEN]>),
    /// Creator: refuses.
    Refused(Refusal),
    /// Creator: confirms the joiner's ticket.
    Ack,
}

impl Message {
    /// Encodes `kind(1) ‖ body`.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, body): (u8, &[u8]) = match self {
            Self::Hello(bytes) => (1, bytes),
            Self::Answer(bytes) => (2, bytes),
            Self::Proof(bytes) => (3, bytes),
            Self::Welcome(bytes) => (4, &**bytes),
            Self::Ticket(bytes) => (5, &**bytes),
            Self::Refused(why) => (6, &[why.byte()]),
            Self::Ack => (7, &[]),
        };
        let mut out = Vec::with_capacity(1 + body.len());
        out.push(kind);
        out.extend_from_slice(body);
        out
    }

    /// Decodes bytes that are exactly one message.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, body) = bytes.split_first()?;
        Some(match kind {
            1 => Self::Hello(body.try_into().ok()?),
            2 => Self::Answer(body.try_into().ok()?),
            3 => Self::Proof(body.try_into().ok()?),
            4 => Self::Welcome(Box::new(body.try_into().ok()?)),
            5 => Self::Ticket(Box::new(body.try_into().ok()?)),
            6 => match body {
                [why] => Self::Refused(Refusal::from_byte(*why)?),
                _ => return None,
            },
            7 if body.is_empty() => Self::Ack,
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
            Message::Ticket(Box::new([5; TICKET_LEN])),
            Message::Refused(Refusal::Burned),
            Message::Ack,
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
