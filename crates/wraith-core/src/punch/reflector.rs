//! The third party that says where it sees us (SPEC §14.2): a pure function for whoever has a UDP port and shares a secret with
//! those who ask, a relay for instance.

use std::net::SocketAddr;
use std::time::Duration;

use rand_core::Rng;

use super::packet::{Keys, Message};
use crate::streams::Role;

/// Answers questions under one secret. Several clients may have the same: one that forges answers to another must see its questions.
#[derive(Debug)]
pub struct Reflector(Keys);

/// An answer, to be sent where the question came from, once, and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Not longer than the question.
    pub packet: Vec<u8>,
    /// It is wanted from another port of the address that was asked; who has none sends nothing.
    pub from_other_port: bool,
    /// How long it is to wait; 248 s at most. Who cannot keep it sends nothing.
    pub after: Duration,
}

impl Reflector {
    /// For those who were given `secret`.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(Keys::new(secret, Role::Responder))
    }

    /// The answer to a datagram that came from `from`. `None` if it is no question under this secret, which costs one hash.
    pub fn answer(&self, from: SocketAddr, datagram: &[u8], rng: &mut impl Rng) -> Option<Answer> {
        let (salt, wish) = self.0.open_question(datagram)?;
        let answer = Message { asks: false, answers: Some((salt, from)) };
        let packet = self.0.answer(&answer, datagram.len(), rng).1;
        let (from_other_port, after) = (wish.from_other_port, wish.pause());
        Some(Answer { packet, from_other_port, after })
    }
}
