//! Pacing (RFC 9002 §7.7): a token bucket that fills at the pacing rate and is spent by every in-flight packet.
//!
//! The bucket holds the tokens of [`CATCH_UP`], so that a thread that wakes late loses no rate. It
//! holds at least [`BURST_PACKETS`], so that a small message after an idle time leaves at once.
//! Tokens may be negative, because probes bypass the pacer. Invariant: the debt never exceeds the
//! bucket's capacity or the tokens of [`DEBT_MAX`].

use std::time::Duration;

use crate::Time;

/// Full packets that may leave back to back after an idle time: RFC 9002's initial window.
const BURST_PACKETS: u64 = 10;
/// Lateness of a driver that costs no rate: two scheduling delays of a busy I/O loop.
const CATCH_UP: Duration = Duration::from_millis(2);
/// Minimum wait that is worth a timer.
const WAIT_MIN: Duration = Duration::from_micros(1);
/// Maximum wait: a wrong rate must not stall the connection for good.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Maximum time for which packets that bypassed the pacer hold data back.
const DEBT_MAX: Duration = Duration::from_secs(1);

/// The token bucket of one path.
#[derive(Clone, Debug)]
pub(super) struct Pacer {
    bytes_per_nano: f64,
    tokens: f64,
    capacity: f64,
    debt_max: f64,
    filled_at: Time,
}

impl Pacer {
    /// Creates a bucket with one burst. `set_rate` must follow.
    pub(super) fn new(now: Time, mtu: u16) -> Self {
        let burst = (BURST_PACKETS * u64::from(mtu)) as f64;
        Self { bytes_per_nano: 0.0, tokens: burst, capacity: burst, debt_max: 0.0, filled_at: now }
    }

    /// Sets the rate in bytes per second, as of the last [`fill`](Self::fill), and the send
    /// quantum.
    pub(super) fn set_rate(&mut self, rate: u64, quantum: u64, mtu: u16) {
        self.bytes_per_nano = rate as f64 / 1e9;
        let least = (BURST_PACKETS * u64::from(mtu)).max(2 * quantum) as f64;
        self.capacity = least.max(self.bytes_per_nano * CATCH_UP.as_nanos() as f64);
        self.debt_max = self.capacity.min(rate as f64 * DEBT_MAX.as_secs() as f64);
        self.tokens = self.tokens.min(self.capacity);
    }

    /// Returns the bytes that may leave now if they are at least `wanted`, otherwise the time at
    /// which they will be.
    pub(super) fn available(&mut self, now: Time, wanted: u64) -> Result<u64, Time> {
        self.fill(now);
        let missing = wanted as f64 - self.tokens;
        if missing <= 0.0 {
            return Ok(self.tokens as u64);
        }
        let nanos = (missing / self.bytes_per_nano).ceil();
        let wait = if nanos < WAIT_MAX.as_nanos() as f64 {
            Duration::from_nanos(nanos as u64).max(WAIT_MIN)
        } else {
            WAIT_MAX
        };
        Err(now + wait)
    }

    /// Returns true if the bucket is full.
    pub(super) fn is_full(&mut self, now: Time) -> bool {
        self.fill(now);
        self.tokens >= self.capacity
    }

    /// Takes the tokens of a packet of `size` bytes.
    pub(super) fn spend(&mut self, size: u32) {
        self.tokens = (self.tokens - f64::from(size)).max(-self.debt_max);
    }

    /// Adds the tokens earned until `now`.
    pub(super) fn fill(&mut self, now: Time) {
        let nanos = now.since(self.filled_at).as_nanos() as f64;
        self.filled_at = self.filled_at.max(now);
        self.tokens = (self.tokens + nanos * self.bytes_per_nano).min(self.capacity);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(rate: u64, quantum: u64) -> Pacer {
        let mut pacer = Pacer::new(Time::ZERO, 1200);
        pacer.set_rate(rate, quantum, 1200);
        pacer
    }

    /// Sends greedily for `duration`. Returns the bytes sent and the sending times.
    fn run(
        pacer: &mut Pacer,
        quantum: u64,
        duration: Duration,
        late: Duration,
    ) -> (u64, Vec<Time>) {
        let (mut now, mut sent, mut times) = (Time::ZERO, 0, Vec::new());
        while now < Time::ZERO + duration {
            match pacer.available(now, quantum) {
                Ok(mut bytes) => {
                    times.push(now);
                    while bytes >= 1200 {
                        pacer.spend(1200);
                        bytes -= 1200;
                        sent += 1200;
                    }
                }
                Err(at) => {
                    assert!(at > now);
                    now = at + late;
                }
            }
        }
        (sent, times)
    }

    #[test]
    fn the_rate_is_kept_from_a_megabit_to_a_hundred_gigabit() {
        for rate in [125_000, 12_500_000, 1_250_000_000, 12_500_000_000] {
            let quantum = crate::congestion::send_quantum(rate, 1200);
            let seconds = if rate < 1_000_000_000 { 10 } else { 1 };
            let (sent, _) = run(
                &mut pacer(rate, quantum),
                quantum,
                Duration::from_secs(seconds),
                Duration::ZERO,
            );
            let expected = rate * seconds;
            let slack = expected / 100 + 12_000 + quantum;
            assert!(sent.abs_diff(expected) <= slack, "{sent} of {expected}");
        }
    }

    #[test]
    fn quanta_leave_at_even_distances() {
        let (_, times) =
            run(&mut pacer(12_000_000, 12_000), 12_000, Duration::from_secs(1), Duration::ZERO);
        for pair in times[2..].windows(2) {
            let gap = pair[1] - pair[0];
            assert!(gap.abs_diff(Duration::from_millis(1)) < Duration::from_micros(110), "{gap:?}");
        }
    }

    #[test]
    fn a_driver_that_wakes_a_millisecond_late_loses_no_rate() {
        let rate = 125_000_000;
        let (sent, _) =
            run(&mut pacer(rate, 65_536), 65_536, Duration::from_secs(1), Duration::from_millis(1));
        assert!(sent > rate * 98 / 100, "{sent}");
    }

    #[test]
    fn idleness_saves_up_one_burst_only() {
        let mut pacer = pacer(125_000, 2400);
        assert_eq!(pacer.available(Time::ZERO + Duration::from_secs(3600), 1200), Ok(12_000));
    }

    #[test]
    fn debt_is_bounded() {
        let mut pacer = pacer(125_000, 2400);
        for _ in 0..1000 {
            pacer.spend(1200);
        }
        let at = pacer.available(Time::ZERO, 1200).expect_err("in debt");
        assert!(at <= Time::ZERO + Duration::from_millis(110));
    }

    #[test]
    fn a_debt_is_paid_in_a_second_however_low_the_rate() {
        let mut pacer = pacer(4000, 1200);
        for _ in 0..1000 {
            pacer.spend(9000);
        }
        let at = pacer.available(Time::ZERO + DEBT_MAX, 1200).expect_err("the debt is paid");
        assert!(at <= Time::ZERO + DEBT_MAX + Duration::from_millis(301));
    }

    #[test]
    fn a_rate_of_almost_nothing_still_asks_again_within_a_second() {
        let mut pacer = pacer(1, 2400);
        pacer.spend(12_000);
        assert_eq!(pacer.available(Time::ZERO, 1200), Err(Time::ZERO + WAIT_MAX));
    }
}
