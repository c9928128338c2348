//! Where packets go, and how a connection moves to a new address (SPEC §8).
//!
//! [`Path`] is the validated address with its MTU; congestion and RTT of the same path live in `Recovery`, which is
//! told to start afresh when the path changes. [`Candidate`] is an address that is to prove that it receives full datagrams: one that
//! sent us an authentic packet, the one that the connection has just left, or one that it is to move to. [`Response`] is the answer to a
//! challenge.
//!
//! Invariant: challenges and responses to an address that has not proven that it receives are together at most three
//! times the bytes that came from it (to one that our own side named, [`CHALLENGES_MAX`] challenges), and a response is never longer
//! than the datagram that asked for it.

use std::time::Duration;

use crate::mtud::MtuDiscovery;
use crate::{PathAddr, Time};

/// Bytes that may go to an unvalidated address per byte received from it (RFC 9000 §8).
const AMPLIFICATION_MAX: u64 = 3;
/// Size of a packet with PATH_CHALLENGE whose answer shows that the path carries it, both ways, and the largest with
/// PATH_RESPONSE. No path is in use without that (RFC 9000 §8.2.1).
const CHALLENGE_LEN: usize = 1200;
/// Smallest challenge: what a sender of one small packet is still allowed. Its answer shows that the address is true.
const CHALLENGE_LEN_MIN: usize = 64;
/// Longest wait before another challenge. Without backoff: the address is one the peer sends from, the bytes are bounded
/// by what it sends, and until one challenge and its response get through, nothing of ours reaches it.
const CHALLENGE_INTERVAL_MAX: Duration = Duration::from_millis(500);
/// Challenges that follow each other by the probe timeout of the path in use. The others take the longest wait: three
/// seconds in all, since nothing is known of the round trip there (RFC 9000 §8.2.4).
const CHALLENGES_PROMPT: u32 = 5;
/// Challenges sent to one candidate before it is given up.
const CHALLENGES_MAX: u32 = CHALLENGES_PROMPT + 6;
/// Longest round trip that is concluded from challenges, of which the first may have been lost.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(1);
/// How long an address that has answered is remembered without packets that move us there: who validates a path moves at once,
/// and much later the path may be gone.
const ANSWER_LIFETIME: Duration = Duration::from_secs(10);

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

/// A PATH_RESPONSE that is owed.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) to: PathAddr,
    pub(crate) data: [u8; 8],
    /// Bytes of the datagram it goes in.
    pub(crate) len: usize,
}

impl Response {
    /// The answer to a challenge that came from `to` in a datagram of `asked` bytes.
    pub(crate) fn new(to: PathAddr, data: [u8; 8], asked: usize) -> Self {
        Self { to, data, len: asked.min(CHALLENGE_LEN) }
    }
}

/// What the answer to a challenge means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The candidate receives there. Whether the path carries [`CHALLENGE_LEN`] bytes is asked next.
    Receives,
    /// It does, both ways.
    Carries,
}

#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) remote: PathAddr,
    /// What a challenge in [`CHALLENGE_LEN`] bytes says, and one in [`CHALLENGE_LEN_MIN`].
    full: [u8; 8],
    small: [u8; 8],
    /// It was in use before, so the path is known to carry full challenges.
    known: bool,
    /// It has answered: the bytes that may go there are no longer counted.
    receives: bool,
    /// The path carries full datagrams both ways.
    carries: bool,
    /// The peer validated the path before it used it: it moves on purpose, and the path that it leaves still works.
    pub(crate) is_planned: bool,
    /// A packet that moves us there has come from it.
    pub(crate) is_used: bool,
    /// When the first challenge left.
    asked_at: Option<Time>,
    /// Bytes that may still be sent to it.
    allowed: u64,
    /// Since it was new, or has answered.
    challenges: u32,
    asked_in_full: bool,
    /// When the next challenge goes out, or, after the last, when the candidate is given up.
    next: Time,
}

impl Candidate {
    /// An address that sent us an authentic packet: [`Self::on_received`] tells how much. The two challenges differ.
    pub(crate) fn new(now: Time, remote: PathAddr, [full, small]: [[u8; 8]; 2]) -> Self {
        Self {
            remote,
            full,
            small,
            known: false,
            receives: false,
            carries: false,
            is_planned: false,
            is_used: false,
            asked_at: None,
            allowed: 0,
            challenges: 0,
            asked_in_full: false,
            next: now,
        }
    }

    /// As [`Self::new`], of an address that was in use before.
    pub(crate) fn back(now: Time, remote: PathAddr, challenges: [[u8; 8]; 2]) -> Self {
        Self { known: true, ..Self::new(now, remote, challenges) }
    }

    /// The validated address that the connection has just left. It gets the smallest challenges.
    pub(crate) fn left(now: Time, remote: PathAddr, challenges: [[u8; 8]; 2]) -> Self {
        let allowed = u64::from(CHALLENGES_MAX) * CHALLENGE_LEN_MIN as u64;
        Self { allowed, ..Self::new(now, remote, challenges) }
    }

    /// An address that our own side wants to move to. It gets full challenges from the first on, and nothing else.
    pub(crate) fn chosen(now: Time, remote: PathAddr, challenges: [[u8; 8]; 2]) -> Self {
        let allowed = u64::from(CHALLENGES_MAX) * CHALLENGE_LEN as u64;
        Self { allowed, is_planned: true, is_used: true, ..Self::new(now, remote, challenges) }
    }

    /// A datagram of `bytes` bytes came from there, in answer to which `owed` bytes go back anyway.
    pub(crate) fn on_received(&mut self, bytes: usize, owed: usize) {
        self.allowed += (AMPLIFICATION_MAX * bytes as u64).saturating_sub(owed as u64);
    }

    /// A response came, from wherever. `None` if it is to nothing that was asked there.
    pub(crate) fn on_response(&mut self, now: Time, data: [u8; 8]) -> Option<Answer> {
        if data == self.full || (self.known && data == self.small) {
            return Some(Answer::Carries);
        }
        if data != self.small {
            return None;
        }
        if !self.receives {
            self.receives = true;
            if !self.asked_in_full {
                (self.challenges, self.next) = (0, now);
            }
        }
        Some(Answer::Receives)
    }

    /// The path carries full datagrams, both ways. It is forgotten if nothing that moves us there comes soon.
    pub(crate) fn on_carries(&mut self, now: Time) {
        (self.receives, self.carries) = (true, true);
        (self.challenges, self.next) = (CHALLENGES_MAX, now + ANSWER_LIFETIME);
    }

    /// Nothing is missing to move there.
    pub(crate) fn is_ready(&self) -> bool {
        self.carries && self.is_used
    }

    /// The round trip, if the answer came now. All challenges say the same, so it is counted from the first: a timer too late costs
    /// less than a move that is taken back.
    pub(crate) fn round_trip(&self, now: Time) -> Duration {
        self.asked_at.map_or(ROUND_TRIP_MAX, |at| now - at).min(ROUND_TRIP_MAX)
    }

    /// Whether it has answered a challenge.
    pub(crate) fn receives(&self) -> bool {
        self.receives
    }

    /// The challenge that is due now, and the size of its datagram. It is counted as sent. `pto` is how long an answer may
    /// take.
    pub(crate) fn poll_challenge(&mut self, now: Time, pto: Duration) -> Option<([u8; 8], usize)> {
        // A small trigger allows only a small challenge; once there were enough of them, a full one does not wait.
        let in_full = self.allows(CHALLENGE_LEN);
        let due = self.next <= now || (in_full && !self.asked_in_full);
        if self.challenges >= CHALLENGES_MAX || !due {
            return None;
        }
        let (challenge, len) =
            if in_full { (self.full, CHALLENGE_LEN) } else { (self.small, CHALLENGE_LEN_MIN) };
        if !self.allows(len) {
            return None;
        }
        self.asked_in_full |= in_full;
        self.allowed = self.allowed.saturating_sub(len as u64);
        self.challenges += 1;
        self.asked_at.get_or_insert(now);
        let prompt = self.challenges < CHALLENGES_PROMPT;
        let wait = if prompt { pto.min(CHALLENGE_INTERVAL_MAX) } else { CHALLENGE_INTERVAL_MAX };
        self.next = now + wait;
        Some((challenge, len))
    }

    /// True if it did not answer any challenge in time, or none that filled a datagram.
    pub(crate) fn is_given_up(&self, now: Time) -> bool {
        self.challenges >= CHALLENGES_MAX && self.next <= now
    }

    /// When there is something to do about it; `None` while only hearing more from it allows another challenge.
    pub(crate) fn timeout(&self) -> Option<Time> {
        let waits = self.challenges < CHALLENGES_MAX && !self.allows(CHALLENGE_LEN_MIN);
        (!waits).then_some(self.next)
    }

    fn allows(&self, bytes: usize) -> bool {
        self.receives || bytes as u64 <= self.allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    /// Nothing here looks into the address.
    const REMOTE: PathAddr = PathAddr::Via(NonZeroU32::MIN);
    const FULL: [u8; 8] = [1; 8];
    const SMALL: [u8; 8] = [2; 8];
    const CHALLENGES: [[u8; 8]; 2] = [FULL, SMALL];
    const PTO: Duration = Duration::from_millis(10);

    fn at(pto: u32) -> Time {
        Time::ZERO + PTO * pto
    }

    #[test]
    fn an_unvalidated_address_gets_at_most_three_times_what_it_sent() {
        let mut candidate = Candidate::new(Time::ZERO, REMOTE, CHALLENGES);
        candidate.on_received(400, 0);
        assert_eq!(candidate.poll_challenge(at(0), PTO), Some((FULL, 1200)));
        assert_eq!(candidate.poll_challenge(at(1), PTO), None);
        candidate.on_received(399, 0);
        let sent = (1..999).filter_map(|i| candidate.poll_challenge(at(i), PTO));
        let bytes: usize = sent.map(|(_, len)| len).sum();
        assert!(0 < bytes && bytes <= 3 * 399, "{bytes}");
    }

    #[test]
    fn what_it_is_owed_in_answer_counts_against_what_it_may_get() {
        let mut candidate = Candidate::new(Time::ZERO, REMOTE, CHALLENGES);
        candidate.on_received(40, 57);
        assert_eq!(candidate.poll_challenge(at(0), PTO), None);
        candidate.on_received(1, 2);
        assert_eq!(candidate.poll_challenge(at(0), PTO), Some((SMALL, 64)));
        assert_eq!(candidate.poll_challenge(at(1), PTO), None);
    }

    #[test]
    fn a_response_is_never_longer_than_what_asked_for_it() {
        let lens = [37, 1200, 9000].map(|asked| Response::new(REMOTE, [0; 8], asked).len);
        assert_eq!(lens, [37, 1200, 1200]);
    }

    #[test]
    fn challenges_go_on_at_a_steady_pace_until_the_candidate_is_given_up() {
        let mut candidate = Candidate::new(Time::ZERO, REMOTE, CHALLENGES);
        candidate.on_received(10_000, 0);
        let mut now = Time::ZERO;
        for _ in 0..CHALLENGES_MAX {
            assert!(!candidate.is_given_up(now));
            assert_eq!(candidate.poll_challenge(now, Duration::from_secs(3)), Some((FULL, 1200)));
            now += CHALLENGE_INTERVAL_MAX;
            assert_eq!(candidate.timeout(), Some(now));
        }
        assert_eq!(candidate.poll_challenge(now, PTO), None);
        assert!(candidate.is_given_up(now));
    }

    #[test]
    fn an_answer_is_waited_for_for_three_seconds_however_short_the_path_in_use_is() {
        let mut candidate = Candidate::new(Time::ZERO, REMOTE, CHALLENGES);
        candidate.on_received(10_000, 0);
        let given_up = (0..).find(|i| {
            candidate.poll_challenge(at(*i), PTO);
            candidate.is_given_up(at(*i))
        });
        assert!(given_up.is_some_and(|i| at(i) - Time::ZERO >= Duration::from_secs(3)));
    }

    #[test]
    fn a_candidate_that_may_get_no_more_asks_for_no_timer() {
        let mut candidate = Candidate::new(Time::ZERO, REMOTE, CHALLENGES);
        candidate.on_received(30, 0);
        assert_eq!(candidate.timeout(), Some(Time::ZERO));
        assert_eq!(candidate.poll_challenge(at(0), PTO), Some((SMALL, CHALLENGE_LEN_MIN)));
        assert_eq!(candidate.timeout(), None);
        candidate.on_received(30, 0);
        assert_eq!(candidate.timeout(), Some(at(1)));
    }

    #[test]
    fn the_path_left_behind_gets_its_challenges_without_having_sent_anything() {
        let mut left = Candidate::left(Time::ZERO, REMOTE, CHALLENGES);
        let sent: Vec<_> = (0..999).filter_map(|i| left.poll_challenge(at(i), PTO)).collect();
        assert_eq!(sent, [(SMALL, CHALLENGE_LEN_MIN); CHALLENGES_MAX as usize]);
        assert!(left.is_given_up(at(999)));
    }

    #[test]
    fn an_address_of_our_own_choice_gets_full_challenges_and_a_bounded_number_of_them() {
        let mut chosen = Candidate::chosen(Time::ZERO, REMOTE, CHALLENGES);
        let sent: Vec<_> = (0..999).filter_map(|i| chosen.poll_challenge(at(i), PTO)).collect();
        assert_eq!(sent, [(FULL, CHALLENGE_LEN); CHALLENGES_MAX as usize]);
        assert!(chosen.is_given_up(at(999)));
        assert_eq!(chosen.round_trip(at(20)), PTO * 20, "from the first on");
    }

    #[test]
    fn what_was_only_probed_is_ready_when_it_is_used_and_forgotten_if_it_never_is() {
        let mut candidate = Candidate::new(Time::ZERO, REMOTE, CHALLENGES);
        candidate.on_received(1200, 0);
        candidate.poll_challenge(at(0), PTO);
        assert_eq!(candidate.on_response(at(1), FULL), Some(Answer::Carries));
        candidate.on_carries(at(1));
        assert!(!candidate.is_ready() && candidate.receives());
        assert_eq!(candidate.poll_challenge(at(2), PTO), None);
        assert!(!candidate.is_given_up(at(1)));
        assert!(candidate.is_given_up(at(1) + ANSWER_LIFETIME));
        assert_eq!(candidate.timeout(), Some(at(1) + ANSWER_LIFETIME));
        candidate.is_used = true;
        assert!(candidate.is_ready());
    }

    #[test]
    fn an_answer_to_a_small_challenge_is_followed_by_a_full_one_at_once_whose_answer_counts() {
        let mut candidate = Candidate::new(Time::ZERO, REMOTE, CHALLENGES);
        candidate.on_received(30, 0);
        assert_eq!(candidate.poll_challenge(at(0), PTO), Some((SMALL, 64)));
        assert_eq!(candidate.on_response(at(0), [3; 8]), None);
        assert_eq!(candidate.on_response(at(0), SMALL), Some(Answer::Receives));
        for _ in 0..CHALLENGES_MAX {
            let due = candidate.timeout().expect("it has shown that it may be asked");
            assert_eq!(candidate.poll_challenge(due, PTO), Some((FULL, 1200)));
            assert_eq!(candidate.on_response(due, SMALL), Some(Answer::Receives), "a repeat");
        }
        assert!(candidate.is_given_up(candidate.timeout().expect("the end")));
        assert_eq!(candidate.on_response(at(999), FULL), Some(Answer::Carries), "late");
    }

    #[test]
    fn of_an_address_that_was_in_use_before_any_answer_is_enough() {
        let mut candidate = Candidate::back(Time::ZERO, REMOTE, CHALLENGES);
        candidate.on_received(30, 0);
        assert_eq!(candidate.poll_challenge(at(0), PTO), Some((SMALL, 64)));
        assert_eq!(candidate.on_response(at(0), SMALL), Some(Answer::Carries));
    }

    #[test]
    fn a_full_challenge_goes_out_as_soon_as_enough_has_come_from_there() {
        let mut candidate = Candidate::new(Time::ZERO, REMOTE, CHALLENGES);
        candidate.on_received(30, 0);
        assert_eq!(candidate.poll_challenge(at(0), PTO), Some((SMALL, 64)));
        candidate.on_received(400, 0);
        assert_eq!(candidate.poll_challenge(at(0), PTO), Some((FULL, 1200)));
        candidate.on_received(400, 0);
        assert_eq!(candidate.poll_challenge(at(0), PTO), None, "the next one waits");
    }
}
