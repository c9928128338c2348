//! UDP path validation to the relay (SPEC §13.6): a state machine without a socket or clock.
//!
//! | state | next request | answered | not answered |
//! |---|---|---|---|
//! | asking | 300 ms, 600 ms, 1.2 s after the previous request | bound | after the third: down |
//! | bound | 15 s ± 20 % after the answer, or after one second of silence while sending | bound | as asking |
//! | down | after a minute | bound | down |
//!
//! A route that appears later, through a proxy, starts in `asking`. When it closes, no further
//! requests are sent.
//!
//! Invariant: while bound, the relay's last confirmation of the client's address is at most 20 s
//! plus three requests old.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::binding::{Binding, COOKIE_BYTES};
use crate::random::Random;

/// Timeout of the first request; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(300);
/// Unanswered requests after which UDP is considered blocked.
const QUESTIONS_MAX: u32 = 3;
/// Interval between confirmations of an address. It is below the 30 s of NAT bindings (RFC 4787
/// requires two minutes; many NATs use less).
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Wait before the next attempt after UDP was blocked.
const RETRY: Duration = Duration::from_secs(60);

/// Path state and request timer; see the module documentation.
#[derive(Debug)]
pub struct UdpPath {
    counter: u64,
    /// Outstanding request: its counter, its send time, and the number of attempts including it.
    asked: Option<(u64, Instant, u32)>,
    bound: bool,
    next: Option<Instant>,
    observed: Option<SocketAddr>,
}

/// Action that results from an event.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// No action.
    None,
    /// Send this message.
    Send(Binding),
    /// Start or stop sending datagrams over UDP.
    Use(bool),
}

impl UdpPath {
    /// Creates the state before the first request. `now` is `None` for a relay without UDP.
    pub fn new(now: Option<Instant>) -> Self {
        Self { counter: 0, asked: None, bound: false, next: now, observed: None }
    }

    /// Restarts after a reconnection of the same session or a new UDP route. Counters keep rising.
    pub fn reconnected(&mut self, now: Option<Instant>) {
        *self = Self { counter: self.counter, ..Self::new(now) };
    }

    /// Returns the deadline for [`on_time`](Self::on_time).
    pub fn timeout(&self) -> Option<Instant> {
        self.next
    }

    /// Returns this client's address as the relay observes it.
    pub fn observed(&self) -> Option<SocketAddr> {
        self.observed.filter(|_| self.bound)
    }

    /// Reports whether datagrams go over UDP.
    pub fn is_bound(&self) -> bool {
        self.bound
    }

    /// Handles an expired timer.
    pub fn on_time(&mut self, now: Instant) -> Step {
        if self.next.is_none_or(|next| now < next) {
            return Step::None;
        }
        let asked = self.asked.map_or(0, |(_, _, asked)| asked);
        if asked >= QUESTIONS_MAX {
            self.asked = None;
            self.next = Some(now + RETRY);
            return if std::mem::take(&mut self.bound) { Step::Use(false) } else { Step::None };
        }
        self.ask(now, asked, 0, [0; COOKIE_BYTES])
    }

    /// Handles the loss of the UDP route.
    pub fn on_closed(&mut self) -> Step {
        let was_bound = self.bound;
        self.reconnected(None);
        if was_bound { Step::Use(false) } else { Step::None }
    }

    /// Handles silence while sending over UDP.
    pub fn on_silence(&mut self, now: Instant) -> Step {
        if !self.bound || self.asked.is_some() {
            return Step::None;
        }
        self.ask(now, 0, 0, [0; COOKIE_BYTES])
    }

    fn ask(&mut self, now: Instant, asked: u32, answers: u64, cookie: [u8; COOKIE_BYTES]) -> Step {
        self.counter += 1;
        self.asked = Some((self.counter, now, asked + 1));
        self.next = Some(now + FIRST_WAIT * 2_u32.pow(asked));
        Step::Send(Binding::Bind { counter: self.counter, answers, cookie })
    }

    /// Handles a message from the relay. Returns the round-trip time if it answers a request.
    pub fn on_message(
        &mut self,
        now: Instant,
        message: Binding,
        random: &mut Random,
    ) -> (Step, Option<Duration>) {
        match message {
            // A client's message never arrives at a client.
            Binding::Bind { .. } => (Step::None, None),
            Binding::Challenge { counter, cookie } => {
                // Any earlier counter of this client is accepted: the relay selects the challenged
                // message.
                if counter == 0 || counter > self.counter {
                    return (Step::None, None);
                }
                (self.ask(now, 0, counter, cookie), None)
            }
            Binding::Bound { counter, observed } => {
                let Some((_, at, _)) = self.asked.filter(|(asked, ..)| *asked == counter) else {
                    return (Step::None, None);
                };
                self.asked = None;
                self.observed = Some(observed);
                let fifth = KEEP_ALIVE.as_millis() as u64 / 5;
                let spread = Duration::from_millis(random.below(2 * fifth + 1));
                self.next = Some(now + KEEP_ALIVE - Duration::from_millis(fifth) + spread);
                let is_new = !std::mem::replace(&mut self.bound, true);
                let step = if is_new { Step::Use(true) } else { Step::None };
                (step, Some(now.saturating_duration_since(at)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> SocketAddr {
        "192.0.2.1:9".parse().unwrap()
    }

    /// Returns a path that was bound at `start`.
    fn bound(start: Instant, random: &mut Random) -> UdpPath {
        let mut path = UdpPath::new(Some(start));
        let Step::Send(Binding::Bind { counter: 1, answers: 0, .. }) = path.on_time(start) else {
            panic!("it asks at once")
        };
        let challenge = Binding::Challenge { counter: 1, cookie: [7; 16] };
        let (step, rtt) = path.on_message(start, challenge, random);
        assert_eq!(step, Step::Send(Binding::Bind { counter: 2, answers: 1, cookie: [7; 16] }));
        assert_eq!(rtt, None);
        let later = start + Duration::from_millis(20);
        let bound = Binding::Bound { counter: 2, observed: seen() };
        let (step, rtt) = path.on_message(later, bound, random);
        assert_eq!((step, rtt), (Step::Use(true), Some(Duration::from_millis(20))));
        path
    }

    #[test]
    fn it_is_bound_after_a_challenge_and_asks_again_before_nats_forget() {
        let (start, mut random) = (Instant::now(), Random::new().unwrap());
        for _ in 0..100 {
            let mut path = bound(start, &mut random);
            assert_eq!(path.observed(), Some(seen()));
            let next = path.timeout().unwrap();
            assert!((12..=19).contains(&(next - start).as_secs()));
            assert!(matches!(path.on_time(next), Step::Send(Binding::Bind { counter: 3, .. })));
        }
    }

    #[test]
    fn silence_after_three_questions_takes_it_down_and_it_comes_back() {
        let (mut now, mut random) = (Instant::now(), Random::new().unwrap());
        let mut path = bound(now, &mut random);
        assert!(matches!(path.on_silence(now), Step::Send(_)));
        assert_eq!(path.on_silence(now), Step::None, "one question at a time");
        let begun = now;
        let down = loop {
            now = path.timeout().unwrap();
            match path.on_time(now) {
                Step::Send(_) => {}
                step => break step,
            }
        };
        assert_eq!(down, Step::Use(false));
        assert!(now - begun < Duration::from_millis(2500));
        assert_eq!(path.observed(), None);
        now = path.timeout().unwrap();
        let Step::Send(Binding::Bind { counter, .. }) = path.on_time(now) else { panic!() };
        let (step, _) =
            path.on_message(now, Binding::Bound { counter, observed: seen() }, &mut random);
        assert_eq!(step, Step::Use(true));
    }

    #[test]
    fn answers_to_nothing_and_old_ones_change_nothing() {
        let (now, mut random) = (Instant::now(), Random::new().unwrap());
        let mut path = bound(now, &mut random);
        for message in [
            Binding::Bound { counter: 1, observed: seen() },
            Binding::Bound { counter: 99, observed: seen() },
            Binding::Challenge { counter: 99, cookie: [0; 16] },
            Binding::Bind { counter: 99, answers: 0, cookie: [0; 16] },
        ] {
            assert_eq!(path.on_message(now, message, &mut random), (Step::None, None));
        }
    }

    #[test]
    fn a_way_that_closes_takes_it_down_at_once_and_another_one_is_asked_anew() {
        let (start, mut random) = (Instant::now(), Random::new().unwrap());
        let mut path = bound(start, &mut random);
        assert_eq!(path.on_closed(), Step::Use(false));
        assert_eq!((path.timeout(), path.is_bound()), (None, false));
        assert_eq!(path.on_silence(start), Step::None);
        assert_eq!(path.on_closed(), Step::None);
        path.reconnected(Some(start));
        assert!(matches!(path.on_time(start), Step::Send(Binding::Bind { counter: 3, .. })));
    }

    #[test]
    fn a_relay_without_udp_is_never_asked() {
        let mut path = UdpPath::new(None);
        assert_eq!(path.timeout(), None);
        assert_eq!(path.on_time(Instant::now()), Step::None);
    }
}
