//! Asking one address where it sees us (SPEC §14.2), and asking strangers something in the clear.
//!
//! Invariant: an answer counts once, from exactly the address that was asked, within a few seconds; whoever is asked gets few packets.

use std::net::SocketAddr;
use std::time::Duration;

use rand_core::Rng;

use super::packet::{Keys, Message, Salt};
use super::target::is_target;
use super::unproved::Unproved;
use crate::Time;

/// When a reflector is asked, after the start.
const QUESTIONS_MS: [u64; 4] = [0, 250, 750, 1750];
/// Longest wait for a reflector.
const OBSERVATION_MAX: Duration = Duration::from_millis(2750);
/// Longest wait for a stranger's reply: of a DHT node that has not answered by then, none comes.
const EXCHANGE_MAX: Duration = Duration::from_secs(3);

/// A question to a reflector.
#[derive(Debug)]
pub(super) struct Observation {
    keys: Keys,
    pub(super) of: SocketAddr,
    since: Time,
    done: usize,
    asked: Vec<Salt>,
}

impl Observation {
    pub(super) fn new(now: Time, keys: Keys, of: SocketAddr) -> Self {
        Self { keys, of, since: now, done: 0, asked: Vec::new() }
    }

    /// Where we are seen, if this is the answer.
    pub(super) fn handle(&self, from: SocketAddr, datagram: &[u8]) -> Option<SocketAddr> {
        if from != self.of {
            return None;
        }
        let (_, message) = self.keys.open(datagram)?;
        let (answered, seen_at) = message.answers?;
        (self.asked.contains(&answered) && is_target(seen_at)).then_some(seen_at)
    }

    pub(super) fn poll_transmit(
        &mut self,
        now: Time,
        unproved: &mut Unproved,
        rng: &mut impl Rng,
    ) -> Option<Vec<u8>> {
        self.next().filter(|at| *at <= now)?;
        self.done += 1;
        if !unproved.take(now, self.of) {
            return None;
        }
        let (salt, packet) = self.keys.question(&Message { asks: true, answers: None }, rng);
        self.asked.push(salt);
        Some(packet)
    }

    fn next(&self) -> Option<Time> {
        let at = QUESTIONS_MS.get(self.done)?;
        Some(self.since + Duration::from_millis(*at))
    }

    pub(super) fn is_over(&self, now: Time) -> bool {
        self.since + OBSERVATION_MAX <= now
    }

    pub(super) fn timeout(&self) -> Time {
        self.next().unwrap_or(self.since + OBSERVATION_MAX)
    }
}

/// A request in the clear whose reply is waited for.
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

    pub(super) fn poll_transmit(&mut self, now: Time, unproved: &mut Unproved) -> Option<Vec<u8>> {
        self.request.take().filter(|_| unproved.take(now, self.with))
    }
}
