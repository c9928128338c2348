//! A policer: a rate limit that drops instead of queueing.

use wraith_core::Time;

use super::rate::HEADER_BYTES;
use super::{Datagram, Departures, Hop, QueueMeter};
use crate::Rng;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// A token bucket without a queue, as providers use to enforce a contract: bytes above the rate and
/// the burst are dropped. A sender sees no delay before the loss, and at first can send much faster
/// than the rate.
#[derive(Clone, Debug)]
pub struct Policer {
    bits_per_second: u128,
    header_bytes: u64,
    /// Bits times 10^9, so that a nanosecond of any rate is an integer.
    bucket: u128,
    tokens: u128,
    last: Time,
    meter: Option<QueueMeter>,
}

impl Policer {
    /// Passes `bits_per_second` on average, and up to `burst_bytes` at once. The bucket starts
    /// full.
    pub fn bits(bits_per_second: u64, burst_bytes: u64) -> Self {
        let bucket = u128::from(burst_bytes) * 8 * NANOS_PER_SECOND;
        Self {
            bits_per_second: u128::from(bits_per_second),
            header_bytes: HEADER_BYTES,
            bucket,
            tokens: bucket,
            last: Time::ZERO,
            meter: None,
        }
    }
    /// As [`Policer::bits`], in Mbit/s.
    pub fn mbit(mbit: u64, burst_bytes: u64) -> Self {
        Self::bits(mbit * 1_000_000, burst_bytes)
    }
    /// Counts `bytes` of headers for each datagram: 0 for whole IP packets.
    #[must_use]
    pub fn header(mut self, bytes: u64) -> Self {
        self.header_bytes = bytes;
        self
    }
    /// Records passed datagrams, with zero wait, and dropped ones in `meter`.
    #[must_use]
    pub fn measured(mut self, meter: &QueueMeter) -> Self {
        self.meter = Some(meter.clone());
        self
    }
}

impl Hop for Policer {
    fn pass(&mut self, now: Time, datagram: Datagram, _: &mut Rng, out: &mut Departures) {
        let earned = now.since(self.last).as_nanos() * self.bits_per_second;
        self.tokens = (self.tokens + earned).min(self.bucket);
        self.last = now;
        let bits = u128::from(datagram.bytes.len() as u64 + self.header_bytes) * 8;
        let passes = self.tokens >= bits * NANOS_PER_SECOND;
        if let Some(meter) = &self.meter {
            if passes { meter.waited(0) } else { meter.dropped() }
        }
        if passes {
            self.tokens -= bits * NANOS_PER_SECOND;
            out.push((now, datagram));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{micros, number, run};
    use super::*;
    use crate::hops;

    #[test]
    fn a_policer_passes_a_burst_and_drops_the_excess() {
        let out = run(hops![Policer::mbit(8, 3500)], 10, 972, Duration::ZERO);
        let passed: Vec<_> = out.iter().map(|(at, d)| (*at, number(d))).collect();
        assert_eq!(passed, [(micros(0), 0), (micros(0), 1), (micros(0), 2)]);
    }

    #[test]
    fn in_the_long_run_exactly_the_rate_passes_and_nothing_waits() {
        // 1000 bytes each, headers included, at 16 Mbit/s into a contract of 8.
        let meter = QueueMeter::default();
        let policer = Policer::mbit(8, 2000).measured(&meter);
        let out = run(hops![policer], 2000, 972, Duration::from_micros(500));
        assert!((1000..=1002).contains(&out.len()), "{}", out.len());
        assert!(out.iter().all(|(at, d)| *at == micros(u64::from(number(d)) * 500)));
        assert_eq!(meter.counts(), (out.len() as u64, 2000 - out.len() as u64));
    }

    #[test]
    fn silence_fills_the_bucket_no_higher_than_its_rim() {
        let mut policer = Policer::mbit(8, 2000);
        let (mut rng, mut out) = (Rng::new(0, 0), Vec::new());
        for at in [0, 0, 0, 3_600_000_000, 3_600_000_000, 3_600_000_000] {
            policer.pass(micros(at), super::super::tests::datagram(0, 972), &mut rng, &mut out);
        }
        assert_eq!(out.len(), 4);
    }
}
