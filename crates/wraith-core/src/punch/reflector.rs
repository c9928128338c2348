//! The reflector: a third party that reports to a client the source address of the client's
//! datagram (SPEC §14.2). It is a pure function for a host with a UDP port and a shared secret,
//! such as a relay.

use std::net::SocketAddr;
use std::time::Duration;

use rand_core::Rng;

use super::packet::{Keys, Message};
use crate::streams::Role;

/// Answers questions under one secret. Several clients may share it: to forge an answer to another
/// client, an attacker must see its questions.
#[derive(Debug)]
pub struct Reflector(Keys);

/// An answer. It must be sent once, to the source of the question and nowhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReflectorAnswer {
    /// The packet to send, no longer than the question.
    pub packet: Vec<u8>,
    /// Send it from another port of the address asked, or not at all.
    pub from_other_port: bool,
    /// Delay before sending, 248 s at most. A reflector that cannot delay sends nothing.
    pub after: Duration,
}

impl Reflector {
    /// Creates a reflector for the clients that have `secret`.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(Keys::new(secret, Role::Responder))
    }

    /// Returns the answer to a datagram from `from`. Returns `None`, at the cost of one hash, if it
    /// is not a question under this secret.
    pub fn answer(
        &self,
        from: SocketAddr,
        datagram: &[u8],
        rng: &mut impl Rng,
    ) -> Option<ReflectorAnswer> {
        let (salt, wish) = self.0.open_question(datagram)?;
        let answer = Message { asks: false, answers: Some((salt, from)) };
        let packet = self.0.answer(&answer, datagram.len(), rng).1;
        let (from_other_port, after) = (wish.from_other_port, wish.pause());
        Some(ReflectorAnswer { packet, from_other_port, after })
    }
}
