//! A receive window (SPEC §6): how far the peer may send, on a stream or on the connection.
//!
//! Offsets are absolute. `limit` is what the peer was, or is about to be, told and never shrinks;
//! `consumed <= limit` as long as the caller rejects what lies beyond the limit, and at any time at most `size` bytes
//! beyond `consumed` are allowed.

use std::time::Duration;

use crate::Time;

/// Round trips within which a consumed window doubles.
const GROW_WITHIN_RTTS: u32 = 2;
/// Shortest round trip assumed: below it, threads waiting for a core, not the path, decide how much is in flight. Not
/// longer either: what waits in a window larger than the caches costs more time per byte on a fast machine.
const RTT_MIN: Duration = Duration::from_millis(1);
/// A new limit is announced when this part of the window was consumed.
const ANNOUNCE_PART: u64 = 4;

#[derive(Debug)]
pub(super) struct Window {
    size: u64,
    size_max: u64,
    limit: u64,
    consumed: u64,
    /// When and where the current window's worth of consumption began.
    round: Option<(Time, u64)>,
}

impl Window {
    pub(super) fn new(size: u64, size_max: u64) -> Self {
        Self { size, size_max: size_max.max(size), limit: size, consumed: 0, round: None }
    }

    /// Absolute offset up to which the peer may send.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// The application took `bytes`. Returns true if the limit moved and should be announced.
    pub(super) fn consume(&mut self, now: Time, rtt: Duration, bytes: u64) -> bool {
        let (since, from) = *self.round.get_or_insert((now, self.consumed));
        if self.consumed + bytes - from >= self.size {
            if now - since < rtt.max(RTT_MIN) * GROW_WITHIN_RTTS {
                self.size = self.size.saturating_mul(2).min(self.size_max);
            }
            self.round = Some((now, self.consumed + bytes));
        }
        self.discard(bytes)
    }

    /// `bytes` were thrown away. Returns true if the limit moved and should be announced.
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

    const RTT: Duration = Duration::from_millis(50);

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
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
    fn a_window_consumed_within_two_round_trips_doubles_up_to_its_ceiling() {
        let mut window = Window::new(1000, 3000);
        for i in 0..40 {
            window.consume(at(i), RTT, 500);
        }
        assert_eq!(window.limit(), 40 * 500 + 3000);
    }

    #[test]
    fn a_slow_reader_does_not_grow_the_window() {
        let mut window = Window::new(1000, 100_000);
        for i in 0..40 {
            window.consume(at(i * 100), RTT, 500);
        }
        assert_eq!(window.limit(), 40 * 500 + 1000);
    }
}
