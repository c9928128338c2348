//! Address observation (SPEC §14.2), and requests in the clear to hosts without a shared secret.
//!
//! Invariant: an answer is accepted once, only from exactly the expected address, and only within a
//! few seconds of the expected time. The counterpart gets few packets.

use std::net::SocketAddr;
use std::time::Duration;

use rand_core::Rng;

use super::packet::{Keys, Salt, Wish};
use super::target::is_target;
use super::unproven_budget::UnprovenBudget;
use crate::{PathAddr, Time};

/// Times at which a reflector is asked, in milliseconds after the start.
const QUESTIONS_MS: [u64; 4] = [0, 250, 750, 1750];
/// Maximum wait for a reflector.
const OBSERVATION_MAX: Duration = Duration::from_millis(2750);
/// Accepted lateness of a delayed answer: a relay checks every 2 s for answers that are due.
const LATE_MAX: Duration = Duration::from_secs(3);
/// Maximum wait for a stranger's reply. A DHT node that has not answered by then will not.
const EXCHANGE_MAX: Duration = Duration::from_secs(3);

/// The manner of a reflector's answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerMode {
    /// At once, from the address asked.
    #[default]
    Itself,
    /// At once, from this other port of the same address. The answer arrives if the asking side's
    /// NAT admits that port.
    Port(u16),
    /// From the address asked, after this long without a packet. The answer arrives if the NAT has
    /// kept the mapping. Rounded down to a multiple of 8 s, 248 s at most.
    ItselfAfter(Duration),
}

/// A question to a reflector.
#[derive(Debug)]
pub(super) struct Observation {
    keys: Keys,
    pub(super) of: SocketAddr,
    answers_from: SocketAddr,
    wish: Wish,
    since: Time,
    done: usize,
    asked: Vec<Salt>,
}

impl Observation {
    pub(super) fn new(now: Time, keys: Keys, of: SocketAddr, by: AnswerMode) -> Self {
        let mut answers_from = of;
        let wish = match by {
            AnswerMode::Itself => Wish::default(),
            AnswerMode::Port(port) => {
                answers_from.set_port(port);
                Wish::from_other_port()
            }
            AnswerMode::ItselfAfter(pause) => Wish::after(pause),
        };
        Self { keys, of, answers_from, wish, since: now, done: 0, asked: Vec::new() }
    }

    /// Returns the observed address of the asking endpoint, if this is the answer.
    pub(super) fn handle(&self, from: PathAddr, datagram: &[u8]) -> Option<SocketAddr> {
        if from != self.answers_from.into() {
            return None;
        }
        let (_, message) = self.keys.open(datagram)?;
        let (answered, seen_at) = message.answers?;
        (self.asked.contains(&answered) && is_target(seen_at)).then_some(seen_at)
    }

    pub(super) fn poll_transmit(
        &mut self,
        now: Time,
        unproved: &mut UnprovenBudget,
        rng: &mut impl Rng,
    ) -> Option<Vec<u8>> {
        self.next().filter(|at| *at <= now)?;
        self.done += 1;
        if !unproved.take(now, self.of) {
            return None;
        }
        let (salt, packet) = self.keys.ask(self.wish, rng);
        self.asked.push(salt);
        Some(packet)
    }

    fn next(&self) -> Option<Time> {
        let at = QUESTIONS_MS.get(self.done)?;
        Some(self.since + Duration::from_millis(*at))
    }

    pub(super) fn is_over(&self, now: Time) -> bool {
        self.end() <= now
    }

    pub(super) fn timeout(&self) -> Time {
        self.next().unwrap_or_else(|| self.end())
    }

    fn end(&self) -> Time {
        let pause = self.wish.pause();
        let late = if pause.is_zero() { pause } else { pause + LATE_MAX };
        self.since + OBSERVATION_MAX + late
    }
}

/// A request in the clear that waits for its reply.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) with: SocketAddr,
    request: Option<Vec<u8>>,
    pub(super) until: Time,
}

impl Exchange {
    pub(super) fn new(now: Time, with: SocketAddr, request: &[u8]) -> Self {
        Self { with, request: Some(request.to_vec()), until: now + EXCHANGE_MAX }
    }

    pub(super) fn poll_transmit(
        &mut self,
        now: Time,
        unproved: &mut UnprovenBudget,
    ) -> Option<Vec<u8>> {
        self.request.take().filter(|_| unproved.take(now, self.with))
    }
}
