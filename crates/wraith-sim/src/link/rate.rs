//! The bottleneck and its queue, which congestion control must detect and not overload.

use std::time::Duration;

use wraith_core::{Ecn, Time};

use super::{Datagram, Departures, Hop, QueueMeter};
use crate::Rng;

/// Bytes of the IPv4 and UDP headers, which a payload occupies on the wire in addition.
pub(super) const HEADER_BYTES: u64 = 28;
/// Default queue length, as time at the line's rate.
const QUEUE: Duration = Duration::from_millis(100);
/// Minimum default queue, so that a burst of one send buffer passes on a slow link.
const QUEUE_BYTES_MIN: u64 = 64 * 1024;
const PICOS_PER_NANO: u128 = 1000;
const PICOS_PER_SECOND: u128 = 1_000_000_000_000;

/// The bottleneck: a line behind a drop-tail queue of a fixed number of bytes. Its rate is fixed,
/// or changes at known times.
///
/// The queue is not stored: it is the time until the line is free, in picoseconds, so that rounding
/// is negligible for all rates from 1 kbit/s to 1 Tbit/s. So a change of the rate also affects
/// waiting datagrams.
#[derive(Clone, Debug)]
pub struct Rate {
    steps: Vec<Step>,
    /// The step at the last arrival.
    current: usize,
    queue_bytes: u64,
    header_bytes: u64,
    free_at_picos: u128,
    /// Waiting time above which a datagram is marked.
    marks_from_picos: u128,
    meter: Option<QueueMeter>,
}

/// A rate, and the time at which it ends.
#[derive(Clone, Copy, Debug)]
struct Step {
    bits_per_second: u128,
    until_picos: u128,
}

impl Rate {
    /// Creates a line of `bits_per_second`, with a queue of 100 ms.
    pub fn bits(bits_per_second: u64) -> Self {
        let queue = u128::from(bits_per_second) * QUEUE.as_millis() / 8000;
        let queue = u64::try_from(queue).unwrap_or(u64::MAX);
        Self {
            steps: vec![Step::for_ever(bits_per_second)],
            current: 0,
            queue_bytes: queue.max(QUEUE_BYTES_MIN),
            header_bytes: HEADER_BYTES,
            free_at_picos: 0,
            marks_from_picos: u128::MAX,
            meter: None,
        }
    }
    /// Creates a line of `mbit` Mbit/s, with a queue of 100 ms.
    pub fn mbit(mbit: u64) -> Self {
        Self::bits(mbit * 1_000_000)
    }
    /// Creates a line of `kbit` kbit/s, with a queue of 100 ms but at least 64 KiB.
    pub fn kbit(kbit: u64) -> Self {
        Self::bits(kbit * 1000)
    }
    /// Changes the rate to `bits_per_second` at `after` the start, which must be later than any
    /// earlier change. The queue keeps its size in bytes.
    #[must_use]
    pub fn then(mut self, after: Duration, bits_per_second: u64) -> Self {
        let last = self.steps.last_mut().expect("a line has a rate");
        last.until_picos = after.as_nanos() * PICOS_PER_NANO;
        self.steps.push(Step::for_ever(bits_per_second));
        self
    }
    /// Sets the queue size in bytes, including the datagram on the line.
    #[must_use]
    pub fn queue(mut self, bytes: u64) -> Self {
        self.queue_bytes = bytes;
        self
    }
    /// Marks ECT datagrams that wait longer than `threshold` as CE, as active queue management
    /// does. Datagrams that do not fit are still dropped.
    #[must_use]
    pub fn marking(mut self, threshold: Duration) -> Self {
        self.marks_from_picos = threshold.as_nanos() * PICOS_PER_NANO;
        self
    }
    /// Counts `bytes` of headers for each datagram: 0 for whole IP packets.
    #[must_use]
    pub fn header(mut self, bytes: u64) -> Self {
        self.header_bytes = bytes;
        self
    }
    /// Records the waiting time of each datagram, and drops, in `meter`.
    #[must_use]
    pub fn measured(mut self, meter: &QueueMeter) -> Self {
        self.meter = Some(meter.clone());
        self
    }

    /// Returns the bits that the line sends between two times.
    fn bits_between(&self, from_picos: u128, to_picos: u128) -> u128 {
        let mut from = from_picos;
        let mut bits = 0;
        for step in &self.steps[self.current..] {
            let until = step.until_picos.min(to_picos);
            bits += until.saturating_sub(from) * step.bits_per_second / PICOS_PER_SECOND;
            from = from.max(until);
            if from >= to_picos {
                break;
            }
        }
        bits
    }

    /// Returns the time at which the line has sent `bits`, starting at `from_picos`.
    fn sent_at(&self, from_picos: u128, mut bits: u128) -> u128 {
        let mut from = from_picos;
        for step in &self.steps[self.current..] {
            let ends = from + bits * PICOS_PER_SECOND / step.bits_per_second;
            if ends <= step.until_picos {
                return ends;
            }
            let sent = step.until_picos.saturating_sub(from) * step.bits_per_second;
            bits -= (sent / PICOS_PER_SECOND).min(bits);
            from = from.max(step.until_picos);
        }
        from
    }
}

impl Step {
    fn for_ever(bits_per_second: u64) -> Self {
        let bits_per_second = u128::from(bits_per_second.max(1));
        Self { bits_per_second, until_picos: u128::MAX }
    }
}

impl Hop for Rate {
    fn bits_per_second(&self) -> Option<u64> {
        self.steps.first().and_then(|step| u64::try_from(step.bits_per_second).ok())
    }

    fn pass(&mut self, now: Time, mut datagram: Datagram, _: &mut Rng, out: &mut Departures) {
        let now_picos = u128::from(now.as_nanos()) * PICOS_PER_NANO;
        while self.steps[self.current].until_picos <= now_picos {
            self.current += 1;
        }
        let bits = u128::from(datagram.bytes.len() as u64 + self.header_bytes) * 8;
        let waiting_bits = self.bits_between(now_picos, self.free_at_picos);
        if waiting_bits + bits > u128::from(self.queue_bytes) * 8 {
            if let Some(meter) = &self.meter {
                meter.dropped();
            }
            return;
        }
        let begins = self.free_at_picos.max(now_picos);
        if let Some(meter) = &self.meter {
            meter.waited(nanos(begins - now_picos));
        }
        if begins - now_picos > self.marks_from_picos && datagram.ecn.is_some() {
            datagram.ecn = Some(Ecn::Ce);
        }
        self.free_at_picos = self.sent_at(begins, bits);
        let leaves = Time::from_nanos(nanos(self.free_at_picos));
        out.push((leaves, datagram));
    }
}

fn nanos(picos: u128) -> u64 {
    u64::try_from(picos.div_ceil(PICOS_PER_NANO)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::Path;
    use super::super::tests::{datagram, micros, number, run};
    use super::*;
    use crate::hops;

    fn times(out: &[(Time, Datagram)]) -> Vec<Time> {
        out.iter().map(|(at, _)| *at).collect()
    }

    #[test]
    fn a_datagram_takes_the_time_of_its_bits_headers_included() {
        // 972 + 28 bytes at 8 Mbit/s: one millisecond each.
        let out = run(hops![Rate::mbit(8)], 3, 972, Duration::ZERO);
        assert_eq!(times(&out), [micros(1000), micros(2000), micros(3000)]);
    }

    #[test]
    fn a_full_queue_drops_from_its_tail() {
        let out = run(hops![Rate::mbit(8).queue(3500)], 10, 972, Duration::ZERO);
        let numbers: Vec<_> = out.iter().map(|(_, d)| number(d)).collect();
        assert_eq!(numbers, [0, 1, 2]);
    }

    #[test]
    fn datagrams_queued_beyond_the_threshold_get_an_ecn_mark() {
        let mut path = Path::new(7, hops![Rate::mbit(8).marking(Duration::from_micros(1500))]);
        for (i, ecn) in [Some(Ecn::Ect0), Some(Ecn::Ect0), Some(Ecn::Ect0), None].iter().enumerate()
        {
            path.push(Time::ZERO, Datagram { ecn: *ecn, ..datagram(i as u32, 972) });
        }
        let out: Vec<_> = std::iter::from_fn(|| path.pop(micros(4000))).map(|d| d.ecn).collect();
        assert_eq!(out, [Some(Ecn::Ect0), Some(Ecn::Ect0), Some(Ecn::Ce), None]);
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

    #[test]
    fn a_rate_change_applies_to_queued_and_partly_sent_datagrams() {
        // One millisecond each; from 2.5 ms on, a tenth of the rate; from 10 ms on, the full rate
        // again.
        let millis = Duration::from_millis;
        let line = Rate::mbit(8)
            .then(Duration::from_micros(2500), 800_000)
            .then(millis(10), 8_000_000)
            .queue(100_000);
        let out = run(hops![line.clone()], 5, 972, Duration::ZERO);
        // The third: half at the full rate, half at a tenth; the fourth: a quarter at a tenth by 10
        // ms.
        let expected = [micros(1000), micros(2000), micros(7500), micros(10_750), micros(11_750)];
        assert_eq!(times(&out), expected);
        // Of thirteen, one offered every millisecond, three and a quarter are sent by 10 ms.
        let later = run(hops![line], 13, 972, millis(1));
        assert_eq!(later.last().unwrap().0, micros(19_750));
    }

    #[test]
    fn a_slower_line_holds_no_more_bytes_than_before() {
        let line = Rate::mbit(8).then(Duration::from_millis(1), 800_000).queue(3000);
        // At 1 ms each: one has left, and two of the later ones find room until 11 ms have passed.
        let out = run(hops![line], 11, 972, Duration::from_millis(1));
        assert_eq!(out.len(), 4, "{:?}", times(&out));
    }

    #[test]
    fn the_meter_sees_the_wait_before_the_line_and_the_drops() {
        let meter = QueueMeter::default();
        let line = Rate::mbit(8).queue(3500).measured(&meter);
        run(hops![line], 10, 972, Duration::ZERO);
        assert_eq!(meter.counts(), (3, 7));
        let longest = meter.percentile(100.0);
        assert!(longest >= Duration::from_millis(2) && longest < Duration::from_micros(2100));
    }
}
