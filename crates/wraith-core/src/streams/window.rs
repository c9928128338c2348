//! A receive window (SPEC §6): the limit up to which the peer may send, on a stream or on the
//! connection.
//!
//! Offsets are absolute. `limit` is the announced limit, or the one about to be announced; it never
//! shrinks. Invariant: `limit <= consumed + size`, and `consumed <= limit` as long as the caller
//! rejects bytes beyond the limit.

use std::time::Duration;

use crate::Time;

/// The window grows until it holds the consumption of this many round trips. One is the path. A
/// lost packet delays everything behind it by one and a half more, and by three if its
/// retransmission is lost too.
const ROUND_TRIPS: f64 = 4.0;
/// The same on a network path, where a starting sender triples its rate each round trip and queues
/// lengthen round trips.
const ROUND_TRIPS_LONG: f64 = 8.0;
/// The same once the peer used up the window behind a lost packet: where round trips are short,
/// loss detection takes several of them.
const ROUND_TRIPS_GAPS: f64 = 8.0;
/// Divisor: the window is treated as used up when less than this fraction of it is left.
const USED_UP_PART: u64 = 8;
/// Maximum growth factor per measurement.
const GROWTH_MAX: u64 = 4;
/// Minimum round trip assumed. Below it, thread scheduling decides how much is in flight, not the
/// path. A larger value is slower on a fast machine, because a window larger than the caches costs
/// more time per byte.
const RTT_MIN: Duration = Duration::from_micros(500);
/// Minimum duration of a measurement, so that a burst after a stall does not count as a rate.
const MEASURE_MIN: Duration = Duration::from_millis(2);
/// Rate in bytes per second that the initial window allows on a long path: 10 Gbit/s, so the
/// maximum applies. A window that only followed consumption would stall a starting sender at each
/// loss, and a sender with a jump start at once.
const RATE_ASSUMED: f64 = 1_250_000_000.0;
/// Round trip from which a path is treated as long.
const RTT_LONG: Duration = Duration::from_millis(10);
/// Divisor: a new limit is announced when this fraction of the window was consumed.
const ANNOUNCE_PART: u64 = 4;

#[derive(Debug)]
pub(super) struct Window {
    size: u64,
    size_max: u64,
    limit: u64,
    consumed: u64,
    /// Start of the current measurement: time and consumed offset.
    measured_from: Option<(Time, u64)>,
    /// The window was used up behind a gap.
    gaps: bool,
}

impl Window {
    pub(super) fn new(size: u64, size_max: u64) -> Self {
        Self {
            size,
            size_max: size_max.max(size),
            limit: size,
            consumed: 0,
            measured_from: None,
            gaps: false,
        }
    }

    /// Returns the absolute offset up to which the peer may send.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// Handles a gap below `received`, the highest offset from the peer. Doubles the window the
    /// first time that the peer has used it up behind a gap. Returns true if a new limit should be
    /// announced.
    pub(super) fn behind_gap(&mut self, received: u64) -> bool {
        if self.gaps || received + self.size / USED_UP_PART < self.limit {
            return false;
        }
        self.gaps = true;
        self.size = self.size.saturating_mul(2).min(self.size_max);
        self.discard(0)
    }

    /// Counts `bytes` that the application read. Returns true if a new limit should be announced.
    pub(super) fn consume(&mut self, now: Time, rtt: Duration, bytes: u64) -> bool {
        let long = rtt >= RTT_LONG;
        let round_trips = match (long, self.gaps) {
            (true, _) => ROUND_TRIPS_LONG,
            (_, true) => ROUND_TRIPS_GAPS,
            _ => ROUND_TRIPS,
        };
        if long {
            let assumed = round_trips * RATE_ASSUMED * rtt.as_secs_f64();
            self.size = self.size.max((assumed as u64).min(self.size_max));
        }
        let (since, from) = *self.measured_from.get_or_insert((now, self.consumed));
        let elapsed = now - since;
        let rtt = rtt.max(RTT_MIN);
        if elapsed >= rtt.max(MEASURE_MIN) {
            let consumed = (self.consumed + bytes - from) as f64;
            let wanted = round_trips * consumed * rtt.as_secs_f64() / elapsed.as_secs_f64();
            if wanted > self.size as f64 {
                self.size =
                    (wanted as u64).min(self.size.saturating_mul(GROWTH_MAX)).min(self.size_max);
            }
            self.measured_from = Some((now, self.consumed + bytes));
        }
        self.discard(bytes)
    }

    /// Handles a peer that is blocked at `maximum`. Returns true if the limit is higher: any step
    /// helps a blocked peer.
    pub(super) fn on_blocked(&mut self, maximum: u64) -> bool {
        self.limit = self.limit.max(self.consumed + self.size);
        self.limit > maximum
    }

    /// Counts `bytes` that were discarded. Returns true if a new limit should be announced.
    pub(super) fn discard(&mut self, bytes: u64) -> bool {
        self.consumed += bytes;
        let target = self.consumed + self.size;
        let announce = target - self.limit >= (self.size / ANNOUNCE_PART).max(1);
        if announce {
            self.limit = target;
        }
        announce
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(5);

    /// Returns a time in tenths of a millisecond.
    fn at(tenths: u64) -> Time {
        Time::ZERO + Duration::from_micros(tenths * 100)
    }

    /// Consumes `bytes` every `tenths` of a millisecond, forty times.
    fn consume_evenly(window: &mut Window, tenths: u64, bytes: u64) {
        (0..40).for_each(|i| _ = window.consume(at(i * tenths), RTT, bytes));
    }

    #[test]
    fn the_limit_moves_when_a_quarter_was_consumed() {
        let mut window = Window::new(1000, 1000);
        assert!(!window.consume(at(0), RTT, 249));
        assert_eq!(window.limit(), 1000);
        assert!(window.consume(at(0), RTT, 1));
        assert_eq!(window.limit(), 1250);
    }

    #[test]
    fn a_window_of_less_than_four_round_trips_doubles_up_to_its_ceiling() {
        let mut window = Window::new(1000, 3000);
        consume_evenly(&mut window, 25, 750);
        assert_eq!(window.limit(), 40 * 750 + 3000);
    }

    #[test]
    fn a_reader_that_becomes_faster_finds_the_window_grown_ahead_of_it() {
        let mut window = Window::new(1000, 1 << 20);
        let mut consumed = 0;
        // A sender that doubles each round trip, from a tenth of the window.
        for i in 0..10 {
            let bytes = 100 << i;
            assert!(window.limit() >= consumed + bytes, "stopped in round {i}");
            window.consume(at(i * 50), RTT, bytes);
            consumed += bytes;
        }
    }

    #[test]
    fn a_long_path_starts_with_a_window_for_a_fast_one_within_its_ceiling() {
        let rtt = Duration::from_millis(50);
        for (ceiling, size) in [(1 << 30, 500_000_000), (100_000, 100_000)] {
            let mut window = Window::new(1000, ceiling);
            window.consume(at(0), rtt, 500);
            assert_eq!(window.limit(), 500 + size);
        }
    }

    #[test]
    fn a_sender_that_triples_each_round_trip_is_not_stopped() {
        let rtt = Duration::from_millis(20);
        let mut window = Window::new(1 << 20, 1 << 30);
        let mut consumed = 0u64;
        for i in 0..9 {
            let bytes = 40_000 * 3u64.pow(i);
            // Room for the bytes in flight. The sender sees the limit half a round trip later and
            // then sends three times as much.
            assert!(window.limit() >= consumed + 2 * bytes, "stopped in round {i}");
            window.consume(at(u64::from(i) * 200), rtt, bytes);
            consumed += bytes;
        }
    }

    #[test]
    fn a_window_that_is_used_up_behind_a_gap_doubles_once() {
        let mut window = Window::new(1000, 1 << 20);
        assert!(!window.behind_gap(870), "an eighth is left");
        assert_eq!(window.limit(), 1000);
        assert!(window.behind_gap(900));
        assert_eq!(window.limit(), 2000);
        assert!(!window.behind_gap(2000));
        assert_eq!(window.limit(), 2000);
        // From now on, the window holds eight round trips.
        let consumed = 40 * 500;
        consume_evenly(&mut window, 50, 500);
        assert!(window.limit() >= consumed + 3900, "{}", window.limit());
        let mut ceiling = Window::new(1000, 1500);
        assert!(ceiling.behind_gap(1000));
        assert_eq!(ceiling.limit(), 1500);
    }

    #[test]
    fn a_blocked_peer_gets_any_higher_limit() {
        let mut window = Window::new(1000, 1000);
        assert!(!window.on_blocked(1000), "nothing was consumed");
        assert!(!window.consume(at(0), RTT, 1));
        assert!(window.on_blocked(1000));
        assert_eq!(window.limit(), 1001);
        assert!(window.on_blocked(1000), "the higher limit was not announced");
        assert!(!window.on_blocked(1001));
    }

    #[test]
    fn a_slow_reader_does_not_grow_the_window() {
        let mut window = Window::new(1000, 100_000);
        consume_evenly(&mut window, 200, 500);
        assert_eq!(window.limit(), 40 * 500 + 1000);
    }
}
