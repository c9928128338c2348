//! Tests of [`Recovery`](super::Recovery) as a whole: single steps in `steps`, random walks against
//! a model in `model`, and a sender over an emulated bottleneck in `flows`.

pub(crate) mod flow;
mod flows;
mod model;
mod plugged_in;
mod steps;

use std::ops::RangeInclusive;
use std::time::Duration;

use super::{Recovery, RecoveryConfig, SentPacket, Settled};
use crate::Time;
use crate::congestion::Algorithm;

const MTU: u16 = 1200;
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

const fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn at(elapsed: Duration) -> Time {
    Time::from_nanos(elapsed.as_nanos() as u64)
}

fn config(initial_rtt: Duration) -> RecoveryConfig {
    RecoveryConfig {
        congestion: Algorithm::Cubic.into(),
        initial_rtt,
        max_ack_delay: MAX_ACK_DELAY,
        mtu: MTU,
        seed: 1,
    }
}

/// Returns a packet with its own number as frames.
fn packet(pn: u64) -> SentPacket<u64> {
    SentPacket {
        size: u32::from(MTU),
        ack_eliciting: true,
        mtu_probe: false,
        ect0: false,
        frames: pn,
    }
}

/// A recovery and its output, driven step by step.
struct Stepper {
    recovery: Recovery<u64>,
    out: Settled<u64>,
    next: u64,
}

impl Stepper {
    fn new(initial_rtt: Duration) -> Self {
        let recovery = Recovery::new(Time::ZERO, &config(initial_rtt));
        Self { recovery, out: Settled::default(), next: 0 }
    }

    fn send(&mut self, now: Duration, count: u64) {
        for pn in self.next..self.next + count {
            self.recovery.on_sent(at(now), pn, packet(pn));
        }
        self.next += count;
    }

    /// Like [`Self::send`], marked ECT(0).
    fn send_marked(&mut self, now: Duration, count: u64) {
        (0..count).for_each(|_| self.send_other(now, |packet| packet.ect0 = true));
    }

    fn send_other(&mut self, now: Duration, change: impl FnOnce(&mut SentPacket<u64>)) {
        let mut packet = packet(self.next);
        change(&mut packet);
        self.recovery.on_sent(at(now), self.next, packet);
        self.next += 1;
    }

    fn ack(&mut self, now: Duration, ranges: &[RangeInclusive<u64>]) {
        let largest = *ranges[0].end();
        self.recovery
            .on_ack(at(now), largest, ranges.iter().cloned(), Duration::ZERO, &mut self.out)
            .expect("these packets were sent");
    }

    /// Returns whether an ACK of `range`, which may name packets never sent, is accepted.
    fn accepts(&mut self, now: Duration, range: RangeInclusive<u64>) -> bool {
        let (largest, ranges) = (*range.end(), std::iter::once(range));
        self.recovery.on_ack(at(now), largest, ranges, Duration::ZERO, &mut self.out).is_ok()
    }

    fn acked(&self) -> Vec<u64> {
        self.out.acked.iter().map(|packet| packet.pn).collect()
    }

    fn lost(&self) -> Vec<u64> {
        self.out.lost.iter().map(|packet| packet.pn).collect()
    }
}
