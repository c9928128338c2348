//! Where packets go, and how a connection moves to a new address (SPEC §8).
//!
//! [`Path`] is the validated address with its MTU; congestion and RTT of the same path live in `Recovery`, which is
//! told to start afresh when the path changes. [`Candidate`] is an address that sent us an authentic packet but has
//! not proven yet that it receives: it gets challenges only, and at most three times the bytes it sent.

use std::time::Duration;

use crate::mtud::MtuDiscovery;
use crate::{PathAddr, Time};

/// Bytes that may go to an unvalidated address per byte received from it (RFC 9000 §8).
const AMPLIFICATION_MAX: u64 = 3;
/// Smallest challenge: what a sender of one small packet is still allowed.
pub(crate) const CHALLENGE_LEN_MIN: usize = 64;
/// Longest wait before another challenge. Without backoff: the address is one the peer sends from, the bytes are bounded
/// by what it sends, and until one challenge and its response get through, nothing of ours reaches it.
const CHALLENGE_INTERVAL_MAX: Duration = Duration::from_millis(500);
/// Challenges sent to one candidate before it is given up.
const CHALLENGES_MAX: u32 = 5;

#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) remote: PathAddr,
    pub(crate) mtud: MtuDiscovery,
}

impl Path {
    pub(crate) fn new(remote: PathAddr, mtu_initial: u16, mtu_max: u16) -> Self {
        Self { remote, mtud: MtuDiscovery::new(mtu_initial, mtu_max) }
    }

    pub(crate) fn mtu(&self) -> usize {
        usize::from(self.mtud.current())
    }
}

#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) remote: PathAddr,
    pub(crate) challenge: [u8; 8],
    received: u64,
    sent: u64,
    challenges: u32,
    /// When the next challenge goes out, or, after the last, when the candidate is given up.
    next: Time,
}

impl Candidate {
    pub(crate) fn new(now: Time, remote: PathAddr, challenge: [u8; 8]) -> Self {
        Self { remote, challenge, received: 0, sent: 0, challenges: 0, next: now }
    }

    pub(crate) fn on_received(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    /// True if a challenge of `bytes` bytes may be sent now.
    pub(crate) fn may_challenge(&self, now: Time, bytes: usize) -> bool {
        self.challenges < CHALLENGES_MAX && self.next <= now && self.may_send(bytes)
    }

    pub(crate) fn on_challenge_sent(&mut self, now: Time, bytes: usize, pto: Duration) {
        self.sent += bytes as u64;
        self.challenges += 1;
        self.next = now + pto.min(CHALLENGE_INTERVAL_MAX);
    }

    /// True if it did not answer any challenge in time.
    pub(crate) fn is_given_up(&self, now: Time) -> bool {
        self.challenges >= CHALLENGES_MAX && self.next <= now
    }

    /// When there is something to do about it; `None` while only hearing more from it allows another challenge.
    pub(crate) fn timeout(&self) -> Option<Time> {
        let waits = self.challenges < CHALLENGES_MAX && !self.may_send(CHALLENGE_LEN_MIN);
        (!waits).then_some(self.next)
    }

    fn may_send(&self, bytes: usize) -> bool {
        self.sent + bytes as u64 <= AMPLIFICATION_MAX * self.received
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    /// Nothing here looks into the address.
    const REMOTE: PathAddr = PathAddr::Via(NonZeroU32::MIN);

    #[test]
    fn an_unvalidated_address_gets_at_most_three_times_what_it_sent() {
        let mut candidate = Candidate::new(Time::ZERO, REMOTE, [0; 8]);
        candidate.on_received(100);
        assert!(
            candidate.may_challenge(Time::ZERO, 300) && !candidate.may_challenge(Time::ZERO, 301)
        );
        candidate.on_challenge_sent(Time::ZERO, 300, Duration::from_millis(10));
        let later = Time::ZERO + Duration::from_secs(1);
        assert!(!candidate.may_challenge(later, 1));
        candidate.on_received(100);
        assert!(candidate.may_challenge(later, 300));
    }

    #[test]
    fn challenges_go_on_at_a_steady_pace_until_the_candidate_is_given_up() {
        let mut candidate = Candidate::new(Time::ZERO, REMOTE, [0; 8]);
        candidate.on_received(10_000);
        let mut now = Time::ZERO;
        for _ in 0..CHALLENGES_MAX {
            assert!(candidate.may_challenge(now, 1200) && !candidate.is_given_up(now));
            candidate.on_challenge_sent(now, 1200, Duration::from_secs(3));
            now += CHALLENGE_INTERVAL_MAX;
            assert_eq!(candidate.timeout(), Some(now));
        }
        assert!(!candidate.may_challenge(now, 1) && candidate.is_given_up(now));
    }

    #[test]
    fn a_candidate_that_may_get_no_more_asks_for_no_timer() {
        let mut candidate = Candidate::new(Time::ZERO, REMOTE, [0; 8]);
        candidate.on_received(30);
        assert_eq!(candidate.timeout(), Some(Time::ZERO));
        candidate.on_challenge_sent(Time::ZERO, CHALLENGE_LEN_MIN, Duration::from_millis(10));
        assert_eq!(candidate.timeout(), None);
        candidate.on_received(30);
        assert_eq!(candidate.timeout(), Some(Time::ZERO + Duration::from_millis(10)));
    }
}
