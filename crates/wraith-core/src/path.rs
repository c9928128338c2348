//! The path of a connection and path validation (SPEC §8).
//!
//! - [`Path`] is the validated address with its MTU. Congestion control and RTT of the path live in
//!   `Recovery`, which restarts when the path changes.
//! - [`Candidate`] is an address under validation: the source of an authentic packet, the address
//!   that the connection used before, or the target of a move that this side requested.
//! - [`Response`] is a pending PATH_RESPONSE.
//!
//! Invariant (amplification limit): challenges and responses to an unvalidated address together
//! have at most three times the bytes received from that address. An address that this side chose
//! itself is exempt, but gets at most [`CHALLENGES_MAX`] challenges. A response is never longer
//! than the datagram with the challenge.

use std::time::Duration;

use crate::mtud::{INITIAL_JITTER, MtuDiscovery};
use crate::{PathAddr, Time};

/// Amplification limit: bytes sent to an unvalidated address per byte received from it (RFC 9000
/// §8).
const AMPLIFICATION_MAX: u64 = 3;
/// Size of a full challenge, and the largest response. Its answer proves that the path carries this
/// size in both directions. A path is used only after that (RFC 9000 §8.2.1).
const CHALLENGE_LEN: usize = 1200;
/// Smallest challenge, within the amplification limit of one small packet. Its answer proves the
/// address.
const CHALLENGE_LEN_MIN: usize = 64;
/// Longest interval between challenges. There is no back-off. The peer sends from this address, and
/// the bytes received from it bound the bytes sent to it. It receives nothing else until a
/// challenge and its response get through.
const CHALLENGE_INTERVAL_MAX: Duration = Duration::from_millis(500);
/// Number of challenges sent one probe timeout of the current path apart. The remaining ones use
/// the longest interval. All together span three seconds, as the new round trip is unknown (RFC
/// 9000 §8.2.4).
const CHALLENGES_PROMPT: u32 = 5;
/// Maximum number of challenges sent to one candidate.
const CHALLENGES_MAX: u32 = CHALLENGES_PROMPT + 6;
/// Largest round trip derived from challenges. The first challenge may have been lost.
const ROUND_TRIP_MAX: Duration = Duration::from_secs(1);
/// Lifetime of a validated candidate that is not used. A peer moves right after it validates a
/// path; much later, the path may be gone.
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

    /// Returns the length of full challenges to another address. A new path needs to carry no more
    /// than the present one.
    pub(crate) fn challenge_len(&self) -> usize {
        let is_narrow = self.mtu() < CHALLENGE_LEN - usize::from(INITIAL_JITTER);
        if is_narrow { self.mtu() } else { CHALLENGE_LEN }
    }
}

/// A PATH_RESPONSE to be sent.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) to: PathAddr,
    pub(crate) data: [u8; 8],
    /// Length of its datagram, in bytes.
    pub(crate) len: usize,
}

impl Response {
    /// Returns the response to a challenge that came from `to` in a datagram of `asked` bytes.
    pub(crate) fn new(to: PathAddr, data: [u8; 8], asked: usize) -> Self {
        Self { to, data, len: asked.min(CHALLENGE_LEN) }
    }
}

/// The meaning of a response to a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The peer receives at this address. A full challenge comes next.
    Receives,
    /// The path carries full challenges in both directions.
    Carries,
}

#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) remote: PathAddr,
    /// Length of a full challenge.
    full_len: usize,
    /// Data of a challenge of `full_len` bytes, and of one of [`CHALLENGE_LEN_MIN`].
    full: [u8; 8],
    small: [u8; 8],
    /// The address was in use before, so its path carries full challenges.
    known: bool,
    /// The address has answered, so the amplification limit no longer applies.
    receives: bool,
    /// The path carries full datagrams in both directions.
    carries: bool,
    /// The peer validated the path before it used it: the move is planned, and the old path still
    /// works.
    pub(crate) is_planned: bool,
    /// A non-probing packet came from this address.
    pub(crate) is_used: bool,
    /// Time of the first challenge.
    asked_at: Option<Time>,
    /// Remaining bytes that the amplification limit allows.
    allowed: u64,
    /// Challenges sent since creation, or since the address answered.
    challenges: u32,
    asked_in_full: bool,
    /// Time of the next challenge or, after the last one, of giving up.
    next: Time,
}

impl Candidate {
    /// Creates a candidate for an address that an authentic packet came from; [`Self::on_received`]
    /// counts its bytes. The two challenges must differ.
    pub(crate) fn new(now: Time, remote: PathAddr, [full, small]: [[u8; 8]; 2]) -> Self {
        Self {
            remote,
            full_len: CHALLENGE_LEN,
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

    /// Like [`Self::new`], for an address that was in use before.
    pub(crate) fn back(now: Time, remote: PathAddr, challenges: [[u8; 8]; 2]) -> Self {
        Self { known: true, ..Self::new(now, remote, challenges) }
    }

    /// Creates a candidate for the validated address that the connection just left. It gets only
    /// the smallest challenges.
    pub(crate) fn left(now: Time, remote: PathAddr, challenges: [[u8; 8]; 2]) -> Self {
        let allowed = u64::from(CHALLENGES_MAX) * CHALLENGE_LEN_MIN as u64;
        Self { allowed, ..Self::new(now, remote, challenges) }
    }

    /// Creates a candidate for an address that this side chose. It gets only full-size challenges.
    pub(crate) fn chosen(now: Time, remote: PathAddr, challenges: [[u8; 8]; 2]) -> Self {
        let allowed = u64::from(CHALLENGES_MAX) * CHALLENGE_LEN as u64;
        Self { allowed, is_planned: true, is_used: true, ..Self::new(now, remote, challenges) }
    }

    /// Sets the length of full challenges, at most [`CHALLENGE_LEN`].
    pub(crate) fn with_full_len(self, bytes: usize) -> Self {
        Self { full_len: bytes.min(CHALLENGE_LEN), ..self }
    }

    /// Returns the length of full challenges. A validated path carries datagrams of that length.
    pub(crate) fn full_len(&self) -> usize {
        self.full_len
    }

    /// Counts a datagram of `bytes` bytes from this address. `owed` bytes of it are reserved for a
    /// response.
    pub(crate) fn on_received(&mut self, bytes: usize, owed: usize) {
        self.allowed += (AMPLIFICATION_MAX * bytes as u64).saturating_sub(owed as u64);
    }

    /// Handles a PATH_RESPONSE from any address. Returns `None` if it matches no challenge of this
    /// candidate.
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

    /// Marks the path as carrying full datagrams in both directions. The candidate expires unless a
    /// non-probing packet follows soon.
    pub(crate) fn on_carries(&mut self, now: Time) {
        (self.receives, self.carries) = (true, true);
        (self.challenges, self.next) = (CHALLENGES_MAX, now + ANSWER_LIFETIME);
    }

    /// Returns true if the connection can move to this address.
    pub(crate) fn is_ready(&self) -> bool {
        self.carries && self.is_used
    }

    /// Returns the round trip, if the response came now. All challenges carry the same data, so it
    /// counts from the first. A timer that is too long costs less than a move that is undone.
    pub(crate) fn round_trip(&self, now: Time) -> Duration {
        self.asked_at.map_or(ROUND_TRIP_MAX, |at| now - at).min(ROUND_TRIP_MAX)
    }

    /// Returns true if the address has answered a challenge.
    pub(crate) fn receives(&self) -> bool {
        self.receives
    }

    /// Returns the challenge due now and the size of its datagram, and counts it as sent. `pto` is
    /// the probe timeout.
    pub(crate) fn poll_challenge(&mut self, now: Time, pto: Duration) -> Option<([u8; 8], usize)> {
        // A small datagram allows only a small challenge. Once enough bytes came, a full challenge
        // leaves at once.
        let in_full = self.allows(self.full_len);
        let due = self.next <= now || (in_full && !self.asked_in_full);
        if self.challenges >= CHALLENGES_MAX || !due {
            return None;
        }
        let (challenge, len) =
            if in_full { (self.full, self.full_len) } else { (self.small, CHALLENGE_LEN_MIN) };
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

    /// Returns true if no challenge, or no full challenge, was answered in time.
    pub(crate) fn is_given_up(&self, now: Time) -> bool {
        self.challenges >= CHALLENGES_MAX && self.next <= now
    }

    /// Returns the next timeout. `None` while the amplification limit blocks further challenges.
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

    /// An address. The tests do not depend on its value.
    const REMOTE: PathAddr = PathAddr::Via(NonZeroU32::MIN);
    const FULL: [u8; 8] = [1; 8];
    const SMALL: [u8; 8] = [2; 8];
    const CHALLENGES: [[u8; 8]; 2] = [FULL, SMALL];
    const PTO: Duration = Duration::from_millis(10);

    fn at(pto: u32) -> Time {
        Time::ZERO + PTO * pto
    }

    /// Receives a small datagram, which allows a small challenge only.
    fn asked_in_small(mut candidate: Candidate) -> Candidate {
        candidate.on_received(30, 0);
        assert_eq!(candidate.poll_challenge(at(0), PTO), Some((SMALL, CHALLENGE_LEN_MIN)));
        candidate
    }

    /// Sends every challenge that is due. Returns them.
    fn ask_until_given_up(candidate: &mut Candidate) -> Vec<([u8; 8], usize)> {
        let sent = (0..999).filter_map(|i| candidate.poll_challenge(at(i), PTO)).collect();
        assert!(candidate.is_given_up(at(999)));
        sent
    }

    #[test]
    fn an_unvalidated_address_gets_at_most_three_times_its_bytes() {
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
    fn pending_responses_count_against_the_amplification_limit() {
        let mut candidate = Candidate::new(Time::ZERO, REMOTE, CHALLENGES);
        candidate.on_received(40, 57);
        assert_eq!(candidate.poll_challenge(at(0), PTO), None);
        candidate.on_received(1, 2);
        assert_eq!(candidate.poll_challenge(at(0), PTO), Some((SMALL, 64)));
        assert_eq!(candidate.poll_challenge(at(1), PTO), None);
    }

    #[test]
    fn a_response_is_never_longer_than_its_challenge() {
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
        assert_eq!(ask_until_given_up(&mut left), [(SMALL, CHALLENGE_LEN_MIN); 11]);
    }

    #[test]
    fn an_address_of_our_own_choice_gets_full_challenges_and_a_bounded_number_of_them() {
        let mut chosen = Candidate::chosen(Time::ZERO, REMOTE, CHALLENGES);
        assert_eq!(ask_until_given_up(&mut chosen), [(FULL, CHALLENGE_LEN); 11]);
        assert_eq!(chosen.round_trip(at(20)), PTO * 20, "from the first on");
    }

    #[test]
    fn a_validated_candidate_is_used_by_a_non_probing_packet_or_expires() {
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
        let mut candidate = asked_in_small(Candidate::new(Time::ZERO, REMOTE, CHALLENGES));
        assert_eq!(candidate.on_response(at(0), [3; 8]), None);
        assert_eq!(candidate.on_response(at(0), SMALL), Some(Answer::Receives));
        for _ in 0..CHALLENGES_MAX {
            let due = candidate.timeout().expect("the path is validated");
            assert_eq!(candidate.poll_challenge(due, PTO), Some((FULL, 1200)));
            assert_eq!(candidate.on_response(due, SMALL), Some(Answer::Receives), "a repeat");
        }
        assert!(candidate.is_given_up(candidate.timeout().expect("the end")));
        assert_eq!(candidate.on_response(at(999), FULL), Some(Answer::Carries), "late");
    }

    #[test]
    fn a_known_address_is_validated_by_any_response() {
        let mut candidate = asked_in_small(Candidate::back(Time::ZERO, REMOTE, CHALLENGES));
        assert_eq!(candidate.on_response(at(0), SMALL), Some(Answer::Carries));
    }

    #[test]
    fn a_full_challenge_goes_out_as_soon_as_enough_has_come_from_there() {
        let mut candidate = asked_in_small(Candidate::new(Time::ZERO, REMOTE, CHALLENGES));
        candidate.on_received(400, 0);
        assert_eq!(candidate.poll_challenge(at(0), PTO), Some((FULL, 1200)));
        candidate.on_received(400, 0);
        assert_eq!(candidate.poll_challenge(at(0), PTO), None, "the next one waits");
    }
}
