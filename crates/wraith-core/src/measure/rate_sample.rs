//! Delivery rate (draft-ietf-ccwg-bbr §4.1), measured per flight.
//!
//! Every in-flight packet carries a [`Snapshot`] of the counters from its sending. When the packet
//! is acknowledged, the bytes delivered since its sending are divided by the send time or the ACK
//! time, whichever is longer. The path has proven the resulting rate. Invariant: `delivered` and
//! `lost` only grow, have 64 bits, and survive idle times. When nothing is in flight, only the
//! *times* restart, so a pause between bursts does not lower the rate.

use std::time::Duration;

use super::LostPacket;
use crate::Time;

/// Counters from the time a packet was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Snapshot {
    delivered: u64,
    delivered_at: Time,
    first_sent_at: Time,
    in_flight: u64,
    lost: u64,
    app_limited: bool,
}

impl Snapshot {
    /// Returns the bytes in flight right after the packet was sent, including itself.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }
}

/// Delivery rate sample of one ACK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateSample {
    /// Delivery rate over `interval`; `None` if the interval is too short to be meaningful.
    pub bytes_per_second: Option<u64>,
    /// Bytes delivered since the newest acknowledged packet was sent.
    pub delivered: u64,
    /// Bytes declared lost in the same time.
    pub lost: u64,
    /// Time over which `delivered` was measured.
    pub interval: Duration,
    /// Bytes in flight right after that packet was sent, including itself.
    pub in_flight_at_send: u64,
    /// Total bytes delivered when that packet was sent.
    pub delivered_at_send: u64,
    /// The sender was application-limited around that time, so the path may be faster.
    pub app_limited: bool,
}

/// The counters of one path.
#[derive(Clone, Debug)]
pub(crate) struct RateSampler {
    delivered: u64,
    delivered_at: Time,
    /// Start of the flight that the next sample measures.
    first_sent_at: Time,
    lost: u64,
    /// Packets are application-limited until `delivered` exceeds this value.
    app_limited_until: Option<u64>,
    /// Value of `delivered` that ends the current round trip.
    round_ends_at: u64,
    /// Newest packet of the current ACK.
    newest: Option<(Time, Snapshot)>,
}

impl RateSampler {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            lost: 0,
            app_limited_until: None,
            round_ends_at: 0,
            newest: None,
        }
    }

    /// Handles an in-flight packet that leaves while `in_flight` bytes are in flight.
    pub(crate) fn on_sent(&mut self, now: Time, size: u32, in_flight: u64) -> Snapshot {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: in_flight + u64::from(size),
            lost: self.lost,
            app_limited: self.app_limited_until.is_some(),
        }
    }

    /// Handles an acknowledged packet. The packets of one ACK must come in sending order.
    pub(crate) fn on_acked(&mut self, now: Time, sent_at: Time, size: u32, snapshot: &Snapshot) {
        self.delivered += u64::from(size);
        self.delivered_at = now;
        self.newest = Some((sent_at, *snapshot));
    }

    /// Handles an in-flight packet that was declared lost.
    pub(crate) fn on_lost(&mut self, pn: u64, size: u32, snapshot: &Snapshot) -> LostPacket {
        self.lost += u64::from(size);
        let lost_since_send = self.lost - snapshot.lost;
        LostPacket {
            pn,
            size,
            in_flight_at_send: snapshot.in_flight,
            delivered_at_send: snapshot.delivered,
            lost_since_send,
            settled_since_send: self.delivered - snapshot.delivered + lost_since_send,
            app_limited: snapshot.app_limited,
        }
    }

    /// Returns true if packets sent now are marked as application-limited.
    pub(crate) fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Marks the sender as application-limited.
    pub(crate) fn set_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = Some(self.delivered + in_flight);
    }

    /// Ends an ACK. Returns the sample and whether a round trip begins, or `None` if the ACK
    /// settled nothing in flight.
    pub(crate) fn finish_ack(&mut self, min_rtt: Duration) -> Option<(RateSample, bool)> {
        let (sent_at, snapshot) = self.newest.take()?;
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let send_elapsed = sent_at.since(snapshot.first_sent_at);
        let ack_elapsed = self.delivered_at.since(snapshot.delivered_at);
        // The draft takes the sending time of any packet. An older packet, acknowledged late, would
        // stretch later intervals.
        self.first_sent_at = self.first_sent_at.max(sent_at);
        let interval = send_elapsed.max(ack_elapsed);
        let delivered = self.delivered - snapshot.delivered;
        let round_start = snapshot.delivered >= self.round_ends_at;
        if round_start {
            self.round_ends_at = self.delivered;
        }
        let sample = RateSample {
            // An interval shorter than a round trip indicates ACK compression (§4.1.2.3).
            bytes_per_second: (interval >= min_rtt).then(|| rate(delivered, interval)),
            delivered,
            lost: self.lost - snapshot.lost,
            interval,
            in_flight_at_send: snapshot.in_flight,
            delivered_at_send: snapshot.delivered,
            app_limited: snapshot.app_limited,
        };
        Some((sample, round_start))
    }

    /// Returns the bytes delivered so far.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }
}

fn rate(bytes: u64, interval: Duration) -> u64 {
    let nanos = interval.as_nanos().max(1);
    u64::try_from(u128::from(bytes) * 1_000_000_000 / nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);
    const PACKET: u32 = 1000;

    /// Sends `packets` spread over half a round trip in each round, then waits for `pause`. Returns
    /// the last sample of each round.
    fn bursts(rounds: u32, packets: u32, pause: Duration) -> Vec<RateSample> {
        let mut sampler = RateSampler::new(Time::ZERO);
        let gap = RTT / 2 / packets;
        let mut start = Time::ZERO;
        let mut samples = Vec::new();
        for _ in 0..rounds {
            let mut sent = Vec::new();
            for i in 0..packets {
                let now = start + gap * i;
                sent.push((now, sampler.on_sent(now, PACKET, u64::from(i * PACKET))));
            }
            let mut last = None;
            for (at, snapshot) in sent {
                sampler.on_acked(at + RTT, at, PACKET, &snapshot);
                last = sampler.finish_ack(RTT);
            }
            samples.push(last.expect("packets were acknowledged").0);
            start += RTT * 3 / 2 + pause;
        }
        samples
    }

    #[test]
    fn nothing_in_flight_between_bursts_does_not_lower_the_rate() {
        let together = bursts(5, 100, Duration::ZERO);
        let apart = bursts(5, 100, Duration::from_secs(60));
        assert_eq!(together, apart);
        // 100 packets were sent in 25 ms and acknowledged within 75 ms of the first sending time.
        let rate = apart[4].bytes_per_second.expect("long enough");
        assert!((1_000_000..=4_000_000).contains(&rate), "{rate}");
    }

    #[test]
    fn a_steady_flow_is_measured_exactly() {
        let mut sampler = RateSampler::new(Time::ZERO);
        let gap = Duration::from_micros(100);
        let mut flying = std::collections::VecDeque::new();
        let mut last = None;
        for i in 0..5000u32 {
            let now = Time::ZERO + gap * i;
            while let Some(&(at, snapshot)) = flying.front() {
                if at + RTT > now {
                    break;
                }
                flying.pop_front();
                sampler.on_acked(at + RTT, at, PACKET, &snapshot);
                last = sampler.finish_ack(RTT);
            }
            let in_flight = flying.len() as u64 * u64::from(PACKET);
            flying.push_back((now, sampler.on_sent(now, PACKET, in_flight)));
        }
        let rate = last.expect("acknowledged").0.bytes_per_second.expect("long enough");
        assert!(rate.abs_diff(10_000_000) < 50_000, "{rate}");
    }

    #[test]
    fn counters_pass_two_to_the_33_without_wrapping() {
        let mut sampler = RateSampler::new(Time::ZERO);
        let mut now = Time::ZERO;
        let size = 1 << 30;
        for _ in 0..20 {
            let snapshot = sampler.on_sent(now, size, 0);
            let sent_at = now;
            now += RTT;
            sampler.on_acked(now, sent_at, size, &snapshot);
            let (sample, round_start) = sampler.finish_ack(RTT).expect("acknowledged");
            assert!(round_start);
            assert_eq!(sample.bytes_per_second, Some((1u64 << 30) * 20));
        }
        assert_eq!(sampler.delivered(), 20 << 30);
    }

    #[test]
    fn an_interval_shorter_than_the_round_trip_is_not_a_rate() {
        let mut sampler = RateSampler::new(Time::ZERO);
        let snapshot = sampler.on_sent(Time::ZERO, PACKET, 0);
        sampler.on_acked(Time::from_nanos(10), Time::ZERO, PACKET, &snapshot);
        let (sample, _) = sampler.finish_ack(RTT).expect("acknowledged");
        assert_eq!(sample.bytes_per_second, None);
    }

    #[test]
    fn an_app_limited_mark_lasts_until_its_flight_is_delivered() {
        let mut sampler = RateSampler::new(Time::ZERO);
        let first = sampler.on_sent(Time::ZERO, PACKET, 0);
        sampler.set_app_limited(u64::from(PACKET));
        let second = sampler.on_sent(Time::ZERO, PACKET, u64::from(PACKET));
        assert!(!first.app_limited && second.app_limited);
        sampler.on_acked(Time::ZERO + RTT, Time::ZERO, PACKET, &first);
        sampler.finish_ack(RTT);
        assert!(sampler.on_sent(Time::ZERO + RTT, PACKET, 1000).app_limited);
        sampler.on_acked(Time::ZERO + RTT, Time::ZERO, PACKET, &second);
        sampler.finish_ack(RTT);
        assert!(!sampler.on_sent(Time::ZERO + RTT, PACKET, 1000).app_limited);
    }
}
