//! The third party that says where it sees us (SPEC §14.2): a pure function for whoever has a UDP port and shares a secret with
//! those who ask, a relay for instance.

use std::net::SocketAddr;

use rand_core::Rng;

use super::packet::{Keys, Message};
use crate::streams::Role;

/// Answers questions under one secret. Several clients may have the same: one that forges answers to another must see its questions.
#[derive(Debug)]
pub struct Reflector(Keys);

impl Reflector {
    /// For those who were given `secret`.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(Keys::new(secret, Role::Responder))
    }

    /// The answer to a datagram that came from `from`, to be sent there: not longer than the datagram. `None` if it is no question
    /// under this secret, which costs one hash.
    pub fn answer(&self, from: SocketAddr, datagram: &[u8], rng: &mut impl Rng) -> Option<Vec<u8>> {
        let (salt, message) = self.0.open(datagram)?;
        if !message.asks {
            return None;
        }
        let answer = Message { asks: false, answers: Some((salt, from)) };
        Some(self.0.answer(&answer, datagram.len(), rng).1)
    }
}
