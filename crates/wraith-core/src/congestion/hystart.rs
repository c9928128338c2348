//! HyStart++ (RFC 9406): leaves slow start when the round trip grows, before the queue overflows.
//!
//! A round whose minimum RTT is clearly above that of the previous round starts *conservative slow
//! start*, which grows a quarter as fast. If the RTT falls back, the increase was jitter, and slow
//! start resumes. After five such rounds, slow start is over. The threshold is at least 4 ms (RFC
//! 9406 §4.3), so microsecond jitter on a LAN or loopback never exceeds it. The sender paces, so
//! the increase per ACK is unlimited (`L` = infinity in the RFC).

use std::time::Duration;

/// Bounds of the RTT increase that starts conservative slow start (RFC 9406 §4.3).
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// Divisor: between the bounds, the threshold is this fraction of the last round's RTT (RFC 9406
/// §4.3).
const MIN_RTT_DIVISOR: u32 = 8;
/// Minimum number of samples before a round is evaluated (RFC 9406 §4.3).
const N_RTT_SAMPLE: u32 = 8;
/// Divisor of the growth in conservative slow start (RFC 9406 §4.3).
const CSS_GROWTH_DIVISOR: u64 = 4;
/// Rounds of conservative slow start (RFC 9406 §4.3).
const CSS_ROUNDS: u8 = 5;

/// State of one slow start.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    last_round_min: Duration,
    round_min: Duration,
    samples: u32,
    conservative: Option<Conservative>,
}

#[derive(Clone, Copy, Debug)]
struct Conservative {
    baseline: Duration,
    rounds: u8,
}

impl HyStart {
    pub(super) fn new() -> Self {
        Self {
            last_round_min: Duration::MAX,
            round_min: Duration::MAX,
            samples: 0,
            conservative: None,
        }
    }

    /// Handles the start of a round trip. Returns true if slow start is over.
    pub(super) fn on_round_start(&mut self) -> bool {
        // A round without a sample keeps the minimum of the last round with samples.
        if self.samples > 0 {
            self.last_round_min = self.round_min;
        }
        self.round_min = Duration::MAX;
        self.samples = 0;
        let Some(css) = &mut self.conservative else { return false };
        css.rounds += 1;
        css.rounds >= CSS_ROUNDS
    }

    /// Takes an RTT sample of the current round.
    pub(super) fn on_rtt(&mut self, rtt: Duration) {
        self.round_min = self.round_min.min(rtt);
        self.samples += 1;
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.conservative {
            None if self.last_round_min != Duration::MAX => {
                let threshold =
                    (self.last_round_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.round_min >= self.last_round_min + threshold {
                    self.conservative = Some(Conservative { baseline: self.round_min, rounds: 0 });
                }
            }
            Some(css) if self.round_min < css.baseline => self.conservative = None,
            _ => {}
        }
    }

    /// Returns the window growth in bytes for `acked` acknowledged bytes.
    pub(super) fn growth(&self, acked: u64) -> u64 {
        if self.is_conservative() { acked / CSS_GROWTH_DIVISOR } else { acked }
    }

    /// Returns true in conservative slow start.
    pub(super) fn is_conservative(&self) -> bool {
        self.conservative.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(hystart: &mut HyStart, rtts: impl IntoIterator<Item = Duration>) -> bool {
        let over = hystart.on_round_start();
        rtts.into_iter().for_each(|rtt| hystart.on_rtt(rtt));
        over
    }

    fn constant(micros: u64) -> impl Iterator<Item = Duration> {
        std::iter::repeat_n(Duration::from_micros(micros), 8)
    }

    #[test]
    fn a_growing_round_trip_slows_growth_and_ends_slow_start_after_five_rounds() {
        let mut hystart = HyStart::new();
        round(&mut hystart, constant(50_000));
        round(&mut hystart, constant(51_000));
        assert!(!hystart.is_conservative());
        round(&mut hystart, constant(60_000));
        assert_eq!(hystart.growth(4000), 1000);
        for _ in 0..4 {
            assert!(!round(&mut hystart, constant(60_000)));
        }
        assert!(round(&mut hystart, constant(60_000)));
    }

    #[test]
    fn a_round_trip_that_falls_back_resumes_slow_start() {
        let mut hystart = HyStart::new();
        round(&mut hystart, constant(50_000));
        round(&mut hystart, constant(60_000));
        assert!(hystart.is_conservative());
        round(&mut hystart, constant(50_000));
        assert!(!hystart.is_conservative());
    }

    #[test]
    fn jitter_of_a_hundred_times_a_loopback_round_trip_is_not_congestion() {
        let mut hystart = HyStart::new();
        for micros in [30, 3000, 45, 900, 30, 2000] {
            assert!(!round(&mut hystart, constant(micros)));
            assert!(!hystart.is_conservative());
        }
    }

    #[test]
    fn fewer_than_eight_samples_decide_nothing() {
        let mut hystart = HyStart::new();
        round(&mut hystart, constant(10_000));
        round(&mut hystart, constant(100_000).take(7));
        assert!(!hystart.is_conservative());
    }
}
