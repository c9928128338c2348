//! The bottleneck and its queue, which congestion control has to find and not to overrun.

use std::time::Duration;

use wraith_core::Time;

use super::{Datagram, Departures, Hop};
use crate::Rng;

/// IPv4 and UDP headers: what a payload occupies on the wire beyond itself.
const HEADER_BYTES: u64 = 28;
/// The queue holds this much time of the rate unless told otherwise.
const QUEUE: Duration = Duration::from_millis(100);
/// But at least this much, so that a burst of one send buffer passes on a slow link.
const QUEUE_BYTES_MIN: u64 = 64 * 1024;
const PICOS_PER_NANO: u128 = 1000;
const PICOS_PER_SECOND: u128 = 1_000_000_000_000;

/// The bottleneck: a line of a fixed rate behind a drop-tail queue of a fixed number of bytes.
///
/// The queue is not stored: it is the time until the line is free, kept in picoseconds so that no rate between
/// 1 kbit/s and 1 Tbit/s is rounded noticeably.
#[derive(Clone, Debug)]
pub struct Rate {
    bits_per_second: u64,
    queue_bytes: u64,
    header_bytes: u64,
    free_at_picos: u128,
}

impl Rate {
    /// A line of `bits_per_second`, with a queue of 100 ms.
    pub fn bits(bits_per_second: u64) -> Self {
        let queue = u128::from(bits_per_second) * QUEUE.as_millis() / 8000;
        let queue = u64::try_from(queue).unwrap_or(u64::MAX);
        Self {
            bits_per_second: bits_per_second.max(1),
            queue_bytes: queue.max(QUEUE_BYTES_MIN),
            header_bytes: HEADER_BYTES,
            free_at_picos: 0,
        }
    }
    /// A line of `mbit` Mbit/s, with a queue of 100 ms.
    pub fn mbit(mbit: u64) -> Self {
        Self::bits(mbit * 1_000_000)
    }
    /// A line of `kbit` kbit/s, with a queue of 100 ms but at least 64 KiB.
    pub fn kbit(kbit: u64) -> Self {
        Self::bits(kbit * 1000)
    }
    /// Holds up to `bytes` waiting, the datagram on the line included.
    #[must_use]
    pub fn queue(mut self, bytes: u64) -> Self {
        self.queue_bytes = bytes;
        self
    }
    /// Counts `bytes` beyond the payload for each datagram: 0 when whole IP packets pass.
    #[must_use]
    pub fn header(mut self, bytes: u64) -> Self {
        self.header_bytes = bytes;
        self
    }
}

impl Hop for Rate {
    fn pass(&mut self, now: Time, datagram: Datagram, _: &mut Rng, out: &mut Departures) {
        let now_picos = u128::from(now.as_nanos()) * PICOS_PER_NANO;
        let bits = u128::from(datagram.bytes.len() as u64 + self.header_bytes) * 8;
        let rate = u128::from(self.bits_per_second);
        let waiting_bits = self.free_at_picos.saturating_sub(now_picos) * rate / PICOS_PER_SECOND;
        if waiting_bits + bits > u128::from(self.queue_bytes) * 8 {
            return;
        }
        self.free_at_picos = self.free_at_picos.max(now_picos) + bits * PICOS_PER_SECOND / rate;
        let leaves = self.free_at_picos.div_ceil(PICOS_PER_NANO);
        let leaves = Time::from_nanos(u64::try_from(leaves).unwrap_or(u64::MAX));
        out.push((leaves, datagram));
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{micros, number, run};
    use super::*;
    use crate::hops;

    #[test]
    fn a_datagram_takes_the_time_of_its_bits_headers_included() {
        // 972 + 28 bytes at 8 Mbit/s: one millisecond each.
        let out = run(hops![Rate::mbit(8)], 3, 972, Duration::ZERO);
        let times: Vec<_> = out.iter().map(|(at, _)| *at).collect();
        assert_eq!(times, [micros(1000), micros(2000), micros(3000)]);
    }

    #[test]
    fn what_does_not_fit_the_queue_is_dropped_from_its_tail() {
        let out = run(hops![Rate::mbit(8).queue(3500)], 10, 972, Duration::ZERO);
        let numbers: Vec<_> = out.iter().map(|(_, d)| number(d)).collect();
        assert_eq!(numbers, [0, 1, 2]);
    }

    #[test]
    fn the_queue_empties_while_time_passes() {
        let line = || hops![Rate::mbit(8).queue(1000)];
        assert_eq!(run(line(), 10, 972, Duration::from_micros(1000)).len(), 10);
        assert_eq!(run(line(), 10, 972, Duration::from_micros(500)).len(), 5);
    }

    #[test]
    fn the_rate_is_exact_at_ten_gigabits() {
        let out = run(hops![Rate::mbit(10_000).queue(u64::MAX / 8)], 10_000, 1452, Duration::ZERO);
        let expected = 10_000 * 1480 * 8 / 10;
        assert!(out.last().unwrap().0.as_nanos().abs_diff(expected) <= 1);
    }
}
