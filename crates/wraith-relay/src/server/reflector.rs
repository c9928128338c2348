//! Reports the observed addresses of clients' other sockets (SPEC §14.2).
//!
//! All clients share one secret, which the relay draws at start and sends inside TLS. A stray
//! datagram therefore costs one hash, however many clients there are. Any client can send requests
//! with this secret, and can forge an answer to a request that it observes. So an answer is only a
//! candidate address, which the asking client tests.
//!
//! A request may ask for a delayed answer. Invariant: the number of delayed answers is bounded,
//! with at most one per asking socket.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Instant;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::punch;
use wraith_discovery::rates::Source;
use zeroize::Zeroizing;

use crate::lock::lock;
use crate::random::Random;

/// Most delayed answers in total, and most per IPv4 address or IPv6 /64. The `doctor` command uses
/// five sockets.
const WAITING_MAX: usize = 256;
const WAITING_OF_ONE_MAX: usize = 16;

/// A delayed answer.
struct DelayedAnswer {
    due: Instant,
    to: SocketAddr,
    packet: Vec<u8>,
}

/// Answers address requests and keeps the delayed answers.
pub struct Reflector {
    secret: Zeroizing<[u8; 32]>,
    questions: punch::Reflector,
    rng: Mutex<ChaCha20Rng>,
    waiting: Mutex<Vec<DelayedAnswer>>,
}

impl Reflector {
    pub fn new(random: &mut Random) -> Self {
        let secret = Zeroizing::new(random.bytes());
        let questions = punch::Reflector::new(&secret);
        let rng = Mutex::new(ChaCha20Rng::from_seed(random.bytes()));
        Self { secret, questions, rng, waiting: Mutex::default() }
    }

    /// Returns the secret for clients.
    pub fn secret(&self) -> [u8; 32] {
        *self.secret
    }

    /// Returns the answer to a request, to be sent to its source and never longer than the request.
    /// `None` if it is no request.
    pub fn answer(&self, from: SocketAddr, datagram: &[u8]) -> Option<punch::ReflectorAnswer> {
        self.questions.answer(from, datagram, &mut *lock(&self.rng))
    }

    /// Keeps an answer until it is due, replacing an earlier one to the same socket. It is dropped
    /// if a limit is reached.
    pub fn schedule(&self, due: Instant, to: SocketAddr, packet: Vec<u8>) {
        let mut waiting = lock(&self.waiting);
        waiting.retain(|other| other.to != to);
        let source = Source::of(to.ip());
        let of_one = waiting.iter().filter(|other| Source::of(other.to.ip()) == source).count();
        if waiting.len() < WAITING_MAX && of_one < WAITING_OF_ONE_MAX {
            waiting.push(DelayedAnswer { due, to, packet });
        }
    }

    /// Takes the answers that are due.
    pub fn take_due(&self, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut waiting = lock(&self.waiting);
        let due = waiting.extract_if(.., |answer| answer.due <= now);
        due.map(|answer| (answer.to, answer.packet)).collect()
    }
}

impl fmt::Debug for Reflector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn address(host: usize, port: u16) -> SocketAddr {
        (([192, 0, (host >> 8) as u8, host as u8]), port).into()
    }

    #[test]
    fn delayed_answers_are_bounded_per_socket_per_address_and_in_total() {
        let reflector = Reflector::new(&mut Random::new().unwrap());
        let now = Instant::now();
        let later = now + Duration::from_secs(24);
        for port in 1..=100 {
            reflector.schedule(later, address(1, port), vec![1]);
        }
        reflector.schedule(later + Duration::from_secs(1), address(1, 1), vec![2]);
        assert_eq!(reflector.take_due(now), []);
        assert_eq!(reflector.take_due(later).len(), WAITING_OF_ONE_MAX - 1);
        assert_eq!(reflector.take_due(later + Duration::from_secs(1)), [(address(1, 1), vec![2])]);
        for host in 0..1000 {
            reflector.schedule(later, address(host, 9), vec![3]);
        }
        assert_eq!(reflector.take_due(later).len(), WAITING_MAX);
        assert_eq!(reflector.take_due(later), []);
    }
}
