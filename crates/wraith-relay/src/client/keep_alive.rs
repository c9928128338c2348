//! Keep-alive of a connection by PINGs, and detection of a dead connection: a state machine without a socket or
//! clock.

use std::time::{Duration, Instant};

use crate::random::Random;

/// Interval between PINGs, ± 20 %. The relay waits for three of them.
const PING_EVERY: Duration = Duration::from_secs(25);
/// Time without a PONG after which a connection is considered lost.
const PONG_TIMEOUT: Duration = Duration::from_secs(10);

/// PING timer and outstanding PING.
#[derive(Debug)]
pub struct KeepAlive {
    /// Send time of the unanswered PING.
    pinged: Option<Instant>,
    ping_at: Instant,
}

impl KeepAlive {
    /// Creates the state; the first PING is due at once.
    pub fn new(now: Instant) -> Self {
        Self { pinged: None, ping_at: now }
    }

    /// Returns the next deadline: for a PING, or for its answer.
    pub fn due(&self) -> Instant {
        self.pinged.map_or(self.ping_at, |pinged| pinged + PONG_TIMEOUT)
    }

    /// Reports whether a PING timed out.
    pub fn is_dead(&self, now: Instant) -> bool {
        self.pinged.is_some_and(|pinged| now >= pinged + PONG_TIMEOUT)
    }

    /// Reports whether a PING must be sent now, and marks it as sent.
    pub fn ping(&mut self, now: Instant, random: &mut Random) -> bool {
        if self.pinged.is_some() || now < self.ping_at {
            return false;
        }
        let fifth = PING_EVERY.as_millis() as u64 / 5;
        let spread = Duration::from_millis(random.below(2 * fifth + 1));
        self.ping_at = now + PING_EVERY - Duration::from_millis(fifth) + spread;
        self.pinged = Some(now);
        true
    }

    /// Handles a PONG. Returns the round-trip time if a PING was outstanding.
    pub fn pong(&mut self, now: Instant) -> Option<Duration> {
        self.pinged.take().map(|pinged| now.saturating_duration_since(pinged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ping_is_due_at_once_and_then_every_25_s_within_a_fifth() {
        let (start, mut random) = (Instant::now(), Random::new().unwrap());
        for _ in 0..100 {
            let mut keep_alive = KeepAlive::new(start);
            assert!(keep_alive.ping(start, &mut random));
            assert!(!keep_alive.ping(start, &mut random), "one at a time");
            let round_trip = Duration::from_millis(30);
            assert_eq!(keep_alive.pong(start + round_trip), Some(round_trip));
            assert_eq!(keep_alive.pong(start + round_trip), None, "to nothing");
            let next = keep_alive.due();
            assert!((20..=30).contains(&(next - start).as_secs()));
            assert!(!keep_alive.ping(next - Duration::from_millis(1), &mut random));
            assert!(keep_alive.ping(next, &mut random));
        }
    }

    #[test]
    fn a_silent_relay_is_dead_after_10_s() {
        let (start, mut random) = (Instant::now(), Random::new().unwrap());
        let mut keep_alive = KeepAlive::new(start);
        assert!(!keep_alive.is_dead(start + Duration::from_secs(3600)), "nothing was asked");
        assert!(keep_alive.ping(start, &mut random));
        assert_eq!(keep_alive.due(), start + PONG_TIMEOUT);
        assert!(!keep_alive.is_dead(start + PONG_TIMEOUT - Duration::from_millis(1)));
        assert!(keep_alive.is_dead(start + PONG_TIMEOUT));
    }
}
