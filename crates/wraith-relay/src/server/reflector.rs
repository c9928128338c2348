//! Says clients where their other sockets are seen (SPEC §14.2). All have one secret, which the relay draws when it starts and gives to
//! each inside TLS: a stray datagram costs one hash, however many clients there are. Whoever has it can ask, and can forge an answer to a
//! question that it sees; what is answered is only ever a candidate that is tried.
//!
//! A question may ask for its answer after a pause. Invariant: of such answers a bounded number waits, one for each socket that asks.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Instant;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use wraith_core::punch;
use wraith_discovery::rates::Source;
use zeroize::Zeroizing;

use super::shared::lock;
use crate::random::Random;

/// Answers that wait for their time, and those of them to one IPv4 address or IPv6 /64: a doctor has five sockets.
const WAITING_MAX: usize = 256;
const WAITING_OF_ONE_MAX: usize = 16;

/// An answer that waits for its time.
struct Waiting {
    due: Instant,
    to: SocketAddr,
    packet: Vec<u8>,
}

/// See the module.
pub struct Reflector {
    secret: Zeroizing<[u8; 32]>,
    questions: punch::Reflector,
    rng: Mutex<ChaCha20Rng>,
    waiting: Mutex<Vec<Waiting>>,
}

impl Reflector {
    pub fn new(random: &mut Random) -> Self {
        let secret = Zeroizing::new(random.bytes());
        let questions = punch::Reflector::new(&secret);
        let rng = Mutex::new(ChaCha20Rng::from_seed(random.bytes()));
        Self { secret, questions, rng, waiting: Mutex::default() }
    }

    /// What clients ask with.
    pub fn secret(&self) -> [u8; 32] {
        *self.secret
    }

    /// The answer to a datagram that is nobody's here, to be sent where it came from: never longer than it. None if it asks nothing.
    pub fn answer(&self, from: SocketAddr, datagram: &[u8]) -> Option<punch::Answer> {
        self.questions.answer(from, datagram, &mut *lock(&self.rng))
    }

    /// Keeps an answer until it is due, in place of an earlier one to the same socket; not if too many wait.
    pub fn keep(&self, due: Instant, to: SocketAddr, packet: Vec<u8>) {
        let mut waiting = lock(&self.waiting);
        waiting.retain(|other| other.to != to);
        let source = Source::of(to.ip());
        let of_one = waiting.iter().filter(|other| Source::of(other.to.ip()) == source).count();
        if waiting.len() < WAITING_MAX && of_one < WAITING_OF_ONE_MAX {
            waiting.push(Waiting { due, to, packet });
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
    fn answers_that_wait_are_bounded_for_each_address_and_in_all_and_one_for_each_socket() {
        let reflector = Reflector::new(&mut Random::new().unwrap());
        let now = Instant::now();
        let later = now + Duration::from_secs(24);
        for port in 1..=100 {
            reflector.keep(later, address(1, port), vec![1]);
        }
        reflector.keep(later + Duration::from_secs(1), address(1, 1), vec![2]);
        assert_eq!(reflector.take_due(now), []);
        assert_eq!(reflector.take_due(later).len(), WAITING_OF_ONE_MAX - 1);
        assert_eq!(reflector.take_due(later + Duration::from_secs(1)), [(address(1, 1), vec![2])]);
        for host in 0..1000 {
            reflector.keep(later, address(host, 9), vec![3]);
        }
        assert_eq!(reflector.take_due(later).len(), WAITING_MAX);
        assert_eq!(reflector.take_due(later), []);
    }
}
