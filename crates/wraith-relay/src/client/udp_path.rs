//! UDP path validation to the relay (SPEC §13.6): a state machine without a socket or clock.
//!
//! | state | next request | answered | not answered |
//! |---|---|---|---|
//! | requesting | 300 ms, 600 ms, 1.2 s after the previous request | bound | after the third: down |
//! | bound | 15 s ± 20 % after the answer, or after one second of silence while sending | bound | as requesting |
//! | down | after 4 s, 8 s, 16 s, 32 s, then every minute | bound | down |
//!
//! The waits in `down` begin anew once a binding was confirmed a second time.
//!
//! A route that appears later, through a proxy, starts in `requesting`. When it closes, no further
//! requests are sent.
//!
//! Invariant: while bound, the relay's last confirmation of the client's address is at most 20 s
//! plus three requests old.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use wraith_discovery::Backoff;

use crate::binding::{BIND_WINDOW, Binding, COOKIE_BYTES};
use crate::random::Random;

/// Timeout of the first request; it doubles with each further one.
const FIRST_TIMEOUT: Duration = Duration::from_millis(300);
/// Unanswered requests after which UDP is considered blocked.
const REQUESTS_MAX: u32 = 3;
/// Interval between confirmations of an address. It is below the 30 s of NAT bindings (RFC 4787
/// requires two minutes; many NATs use less).
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Waits before the next attempt after UDP was blocked. A machine or a path that is busy for a
/// moment does not stay on TLS for a minute. One answer does not prove a path that lets requests
/// through and drops the rest.
const RETRY: Backoff = Backoff::new(Duration::from_secs(4), Duration::from_secs(60));

/// Path state and request timer; see the module documentation.
#[derive(Debug)]
pub struct UdpPath {
    counter: u64,
    /// Highest counter that the relay is known to have seen.
    seen: u64,
    /// Outstanding request: its counter, its send time, and the number of attempts including it.
    outstanding: Option<(u64, Instant, u32)>,
    bound: bool,
    next: Option<Instant>,
    retry: Backoff,
    observed: Option<SocketAddr>,
}

/// Action that results from an event.
#[derive(Debug, PartialEq, Eq)]
pub enum UdpAction {
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
        Self {
            counter: 0,
            seen: 0,
            outstanding: None,
            bound: false,
            next: now,
            retry: RETRY,
            observed: None,
        }
    }

    /// Restarts after a reconnection of the same session or a new UDP route. Counters keep rising.
    pub fn reconnected(&mut self, now: Option<Instant>) {
        *self = Self { counter: self.counter, seen: self.seen, ..Self::new(now) };
    }

    /// Returns the deadline for [`on_timeout`](Self::on_timeout).
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

    /// Returns the counter of the latest request if the relay may not recognise it, because many
    /// earlier ones were not answered. The caller reports it over TLS.
    pub fn counter_to_report(&mut self) -> Option<u64> {
        let is_due = self.counter - self.seen > BIND_WINDOW / 2;
        is_due.then(|| {
            self.seen = self.counter - 1;
            self.counter
        })
    }

    /// Handles an expired timer.
    pub fn on_timeout(&mut self, now: Instant) -> UdpAction {
        if self.next.is_none_or(|next| now < next) {
            return UdpAction::None;
        }
        let attempts = self.outstanding.map_or(0, |(_, _, attempts)| attempts);
        if attempts >= REQUESTS_MAX {
            self.outstanding = None;
            self.next = Some(now + self.retry.failed(now));
            return if std::mem::take(&mut self.bound) {
                UdpAction::Use(false)
            } else {
                UdpAction::None
            };
        }
        self.request(now, attempts, 0, [0; COOKIE_BYTES])
    }

    /// Handles the loss of the UDP route.
    pub fn on_closed(&mut self) -> UdpAction {
        let was_bound = self.bound;
        self.reconnected(None);
        if was_bound { UdpAction::Use(false) } else { UdpAction::None }
    }

    /// Handles silence while sending over UDP.
    pub fn on_silence(&mut self, now: Instant) -> UdpAction {
        if !self.bound || self.outstanding.is_some() {
            return UdpAction::None;
        }
        self.request(now, 0, 0, [0; COOKIE_BYTES])
    }

    fn request(
        &mut self,
        now: Instant,
        attempts: u32,
        answers: u64,
        cookie: [u8; COOKIE_BYTES],
    ) -> UdpAction {
        self.counter += 1;
        self.outstanding = Some((self.counter, now, attempts + 1));
        self.next = Some(now + FIRST_TIMEOUT * 2_u32.pow(attempts));
        UdpAction::Send(Binding::Bind { counter: self.counter, answers, cookie })
    }

    /// Handles a message from the relay. Returns the round-trip time if it answers a request.
    pub fn on_message(
        &mut self,
        now: Instant,
        message: Binding,
        random: &mut Random,
    ) -> (UdpAction, Option<Duration>) {
        match message {
            // A client's message never arrives at a client.
            Binding::Bind { .. } => (UdpAction::None, None),
            Binding::Challenge { counter, cookie } => {
                // Any earlier counter of this client is accepted: the relay selects the challenged
                // message.
                if counter == 0 || counter > self.counter {
                    return (UdpAction::None, None);
                }
                self.seen = self.seen.max(counter);
                (self.request(now, 0, counter, cookie), None)
            }
            Binding::Bound { counter, observed } => {
                let Some((_, at, _)) = self.outstanding.filter(|(sent, ..)| *sent == counter)
                else {
                    return (UdpAction::None, None);
                };
                self.outstanding = None;
                self.seen = self.seen.max(counter);
                self.retry.succeeded(now);
                self.observed = Some(observed);
                let fifth = KEEP_ALIVE.as_millis() as u64 / 5;
                let spread = Duration::from_millis(random.below(2 * fifth + 1));
                self.next = Some(now + KEEP_ALIVE - Duration::from_millis(fifth) + spread);
                let is_new = !std::mem::replace(&mut self.bound, true);
                let action = if is_new { UdpAction::Use(true) } else { UdpAction::None };
                (action, Some(now.saturating_duration_since(at)))
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
        let UdpAction::Send(Binding::Bind { counter: 1, answers: 0, .. }) = path.on_timeout(start)
        else {
            panic!("it asks at once")
        };
        let challenge = Binding::Challenge { counter: 1, cookie: [7; 16] };
        let (action, rtt) = path.on_message(start, challenge, random);
        assert_eq!(
            action,
            UdpAction::Send(Binding::Bind { counter: 2, answers: 1, cookie: [7; 16] })
        );
        assert_eq!(rtt, None);
        let later = start + Duration::from_millis(20);
        let bound = Binding::Bound { counter: 2, observed: seen() };
        let (action, rtt) = path.on_message(later, bound, random);
        assert_eq!((action, rtt), (UdpAction::Use(true), Some(Duration::from_millis(20))));
        path
    }

    #[test]
    fn a_path_is_bound_after_a_challenge_and_renewed_before_nat_bindings_expire() {
        let (start, mut random) = (Instant::now(), Random::new().unwrap());
        for _ in 0..100 {
            let mut path = bound(start, &mut random);
            assert_eq!(path.observed(), Some(seen()));
            let next = path.timeout().unwrap();
            assert!((12..=19).contains(&(next - start).as_secs()));
            assert!(matches!(
                path.on_timeout(next),
                UdpAction::Send(Binding::Bind { counter: 3, .. })
            ));
        }
    }

    #[test]
    fn the_counter_is_reported_before_the_relay_knows_it_no_more() {
        let (mut now, mut random) = (Instant::now(), Random::new().unwrap());
        let mut path = bound(now, &mut random);
        let (mut known, mut reports) = (2, 0);
        for _ in 0..100 {
            now = path.timeout().unwrap();
            let UdpAction::Send(Binding::Bind { counter, .. }) = path.on_timeout(now) else {
                continue;
            };
            if let Some(reported) = path.counter_to_report() {
                assert_eq!(reported, counter);
                (known, reports) = (reported - 1, reports + 1);
            }
            assert!(counter - known <= BIND_WINDOW);
        }
        assert!(reports > 2);
    }

    #[test]
    fn three_unanswered_requests_take_the_path_down_and_it_recovers() {
        let (mut now, mut random) = (Instant::now(), Random::new().unwrap());
        let mut path = bound(now, &mut random);
        assert!(matches!(path.on_silence(now), UdpAction::Send(_)));
        assert_eq!(path.on_silence(now), UdpAction::None, "one question at a time");
        let begun = now;
        let down = loop {
            now = path.timeout().unwrap();
            match path.on_timeout(now) {
                UdpAction::Send(_) => {}
                action => break action,
            }
        };
        assert_eq!(down, UdpAction::Use(false));
        assert!(now - begun < Duration::from_millis(2500));
        assert_eq!(path.observed(), None);
        now = path.timeout().unwrap();
        let UdpAction::Send(Binding::Bind { counter, .. }) = path.on_timeout(now) else { panic!() };
        let (action, _) =
            path.on_message(now, Binding::Bound { counter, observed: seen() }, &mut random);
        assert_eq!(action, UdpAction::Use(true));
    }

    /// Lets the timer expire until an attempt fails. Returns the wait for the next one.
    fn fail(path: &mut UdpPath) -> Duration {
        loop {
            let now = path.timeout().unwrap();
            if !matches!(path.on_timeout(now), UdpAction::Send(_)) {
                return path.timeout().unwrap() - now;
            }
        }
    }

    /// Lets the timer expire, and answers the request.
    fn confirm(path: &mut UdpPath, random: &mut Random) {
        let now = path.timeout().unwrap();
        let UdpAction::Send(Binding::Bind { counter, .. }) = path.on_timeout(now) else { panic!() };
        path.on_message(now, Binding::Bound { counter, observed: seen() }, random);
        assert!(path.is_bound());
    }

    #[test]
    fn a_path_that_is_down_is_tried_again_soon_and_then_less_and_less_often() {
        let mut random = Random::new().unwrap();
        let mut path = UdpPath::new(Some(Instant::now()));
        let waits = [(); 6].map(|()| fail(&mut path).as_secs());
        assert_eq!(waits, [4, 8, 16, 32, 60, 60]);
        // One answer does not prove the path; the second in a row does.
        confirm(&mut path, &mut random);
        assert_eq!(fail(&mut path).as_secs(), 60);
        confirm(&mut path, &mut random);
        confirm(&mut path, &mut random);
        assert_eq!(fail(&mut path).as_secs(), 4);
    }

    #[test]
    fn unrequested_and_outdated_answers_are_ignored() {
        let (now, mut random) = (Instant::now(), Random::new().unwrap());
        let mut path = bound(now, &mut random);
        for message in [
            Binding::Bound { counter: 1, observed: seen() },
            Binding::Bound { counter: 99, observed: seen() },
            Binding::Challenge { counter: 99, cookie: [0; 16] },
            Binding::Bind { counter: 99, answers: 0, cookie: [0; 16] },
        ] {
            assert_eq!(path.on_message(now, message, &mut random), (UdpAction::None, None));
        }
    }

    #[test]
    fn a_closed_route_takes_the_path_down_at_once_and_a_new_one_is_validated() {
        let (start, mut random) = (Instant::now(), Random::new().unwrap());
        let mut path = bound(start, &mut random);
        assert_eq!(path.on_closed(), UdpAction::Use(false));
        assert_eq!((path.timeout(), path.is_bound()), (None, false));
        assert_eq!(path.on_silence(start), UdpAction::None);
        assert_eq!(path.on_closed(), UdpAction::None);
        path.reconnected(Some(start));
        assert!(matches!(
            path.on_timeout(start),
            UdpAction::Send(Binding::Bind { counter: 3, .. })
        ));
    }

    #[test]
    fn a_relay_without_udp_is_never_asked() {
        let mut path = UdpPath::new(None);
        assert_eq!(path.timeout(), None);
        assert_eq!(path.on_timeout(Instant::now()), UdpAction::None);
    }
}
