//! A sender over an emulated bottleneck, to test the results of a [`Recovery`] rather than its
//! steps.
//!
//! Data leaves as the budget allows, waits in a drop-tail queue and crosses a link of a given rate
//! and delay. It may be lost, delayed or held back, and is acknowledged every few packets.
//! Deterministic: time only moves from event to event.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::{Budget, TimeoutOutcome};
use super::*;
use crate::RangeSet;
use crate::congestion::ControllerFactory;

/// Fate of one data packet besides the queue.
#[derive(Clone, Copy)]
pub(crate) enum Fate {
    Arrives,
    Lost,
    /// Arrives later by this duration.
    Late(Duration),
}

pub(crate) struct Link {
    pub(crate) bytes_per_second: u64,
    pub(crate) round_trip: Duration,
    pub(crate) queue_bytes: u64,
    /// Decides each packet's fate from its number and sending time.
    pub(crate) fate: fn(u64, Duration) -> Fate,
    /// Packets per ACK.
    pub(crate) ack_every: u64,
    /// ACKs arrive together at multiples of this duration, as over Wi-Fi. Zero: they arrive
    /// individually.
    pub(crate) ack_tick: Duration,
    /// Maximum ACK delay of the receiver.
    pub(crate) ack_delay: Duration,
}

impl Link {
    pub(crate) fn clean(bytes_per_second: u64, round_trip: Duration) -> Self {
        let queue_bytes = (bytes_per_second as f64 * round_trip.as_secs_f64()) as u64;
        let fate = |_, _| Fate::Arrives;
        Self {
            bytes_per_second,
            round_trip,
            queue_bytes: queue_bytes.max(100_000),
            fate,
            ack_every: 4,
            ack_tick: Duration::ZERO,
            ack_delay: ms(1),
        }
    }
}

enum Event {
    Arrival(u64),
    Ack(Vec<RangeInclusive<u64>>),
}

pub(crate) struct Flow {
    pub(crate) recovery: Recovery<u64>,
    out: Settled<u64>,
    pub(crate) link: Link,
    pub(crate) now: Time,
    mtu: u64,
    next: u64,
    probes: u32,
    /// New and lost bytes that wait to be sent.
    pub(crate) backlog: u64,
    pub(crate) delivered: u64,
    /// Time and size of each departure, to test pacing.
    pub(crate) departures: Option<Vec<(Time, u64)>>,
    link_free_at: Time,
    received: RangeSet,
    unacknowledged: u64,
    ack_due: Option<Time>,
    /// Ordered by time, then by scheduling order.
    events: BTreeMap<(Time, u64), Event>,
    event_count: u64,
}

/// Time and size of each packet that left, in order.
pub(crate) struct Departures(Vec<(Time, u64)>);

impl Departures {
    /// Returns the mean number of packets that leave at once.
    pub(crate) fn mean_batch(&self) -> usize {
        let batches = self.0.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
        self.0.len() / (batches + 1)
    }

    /// Returns the most bytes that leave within any interval of this length.
    pub(crate) fn most_within(&self, interval: Duration) -> u64 {
        let (mut start, mut sent, mut most) = (0, 0, 0);
        for &(time, size) in &self.0 {
            sent += size;
            while self.0[start].0 + interval < time {
                sent -= self.0[start].1;
                start += 1;
            }
            most = most.max(sent);
        }
        most
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, size)| size).sum()
    }
}

impl Flow {
    /// Sends bulk data for `duration`. Returns the packets that left.
    pub(crate) fn bulk_departures(&mut self, duration: Duration) -> Departures {
        self.departures = Some(Vec::new());
        self.run_bulk(duration);
        self.take_departures()
    }

    /// Returns the departures since [`Self::departures`] was set.
    pub(crate) fn take_departures(&mut self) -> Departures {
        Departures(self.departures.take().expect("they are recorded"))
    }

    pub(crate) fn new(link: Link) -> Self {
        Self::with(link, Algorithm::Cubic)
    }

    pub(crate) fn with(link: Link, congestion: impl Into<Arc<dyn ControllerFactory>>) -> Self {
        let config = RecoveryConfig { congestion: congestion.into(), ..config(link.round_trip) };
        let recovery = Recovery::new(Time::ZERO, &config);
        Self {
            recovery,
            out: Settled::default(),
            link,
            now: Time::ZERO,
            mtu: u64::from(MTU),
            next: 0,
            probes: 0,
            backlog: 0,
            delivered: 0,
            departures: None,
            link_free_at: Time::ZERO,
            received: RangeSet::new(),
            unacknowledged: 0,
            ack_due: None,
            events: BTreeMap::new(),
            event_count: 0,
        }
    }

    pub(crate) fn set_mtu(&mut self, mtu: u16) {
        self.mtu = u64::from(mtu);
        self.recovery.set_mtu(mtu);
    }

    /// Runs a bulk transfer for `duration`. Returns its goodput in bytes per second.
    pub(crate) fn run_bulk(&mut self, duration: Duration) -> u64 {
        self.backlog = u64::MAX / 2;
        let before = self.delivered;
        self.run_until(self.now + duration);
        ((self.delivered - before) as f64 / duration.as_secs_f64()) as u64
    }

    /// Sends `bytes` and returns the time until all were acknowledged. Panics after an hour.
    pub(crate) fn transfer(&mut self, bytes: u64) -> Duration {
        let (start, before) = (self.now, self.delivered);
        self.backlog = bytes;
        while self.delivered - before < bytes {
            assert!(self.now - start < Duration::from_secs(3600), "stalled");
            self.step(Time::MAX);
        }
        self.now - start
    }

    pub(crate) fn run_until(&mut self, end: Time) {
        while self.now < end {
            self.step(end);
        }
    }

    /// Sends within the budget, then advances to the next event, at most to `end`.
    fn step(&mut self, end: Time) {
        let pacing = self.send();
        let next_event = self.events.keys().next().map(|(time, _)| *time);
        let timeout = self.recovery.timeout();
        let wake = [pacing, next_event, timeout, self.ack_due].into_iter().flatten().min();
        self.now = wake.unwrap_or(end).max(self.now).min(end);
        while let Some(event) = self.events.first_entry() {
            if event.key().0 > self.now {
                break;
            }
            let event = event.remove();
            self.handle(event);
        }
        if self.ack_due.is_some_and(|due| due <= self.now) {
            self.acknowledge();
        }
        if self.recovery.timeout().is_some_and(|at| at <= self.now) {
            if self.recovery.on_timeout(self.now, &mut self.out) == TimeoutOutcome::Probe {
                self.probes = 2;
            }
            self.settle();
            assert!(self.recovery.timeout().is_none_or(|at| at > self.now), "timer in the past");
        }
    }

    fn send(&mut self) -> Option<Time> {
        while self.probes > 0 {
            self.probes -= 1;
            self.send_packet(self.mtu.min(self.backlog.max(50)));
        }
        while self.backlog > 0 {
            match self.recovery.budget(self.now) {
                Budget::Bytes(mut bytes) => {
                    while bytes > 0 && self.backlog > 0 {
                        let size = self.mtu.min(self.backlog);
                        self.send_packet(size);
                        bytes = bytes.saturating_sub(self.mtu);
                    }
                    assert!(self.recovery.bytes_in_flight() <= self.recovery.window());
                }
                Budget::At(time) => return Some(time),
                Budget::Blocked => return None,
            }
        }
        self.recovery.set_app_limited(self.now);
        None
    }

    fn send_packet(&mut self, size: u64) {
        let pn = self.next;
        self.next += 1;
        self.backlog = self.backlog.saturating_sub(size);
        let packet = SentPacket {
            size: size as u32,
            ack_eliciting: true,
            mtu_probe: false,
            ect0: false,
            frames: size,
        };
        self.recovery.on_sent(self.now, pn, packet);
        if let Some(departures) = &mut self.departures {
            departures.push((self.now, size));
        }
        let serial = |bytes: u64| {
            Duration::from_nanos(
                (u128::from(bytes) * 1_000_000_000 / u128::from(self.link.bytes_per_second)) as u64,
            )
        };
        let queued = self.link_free_at.since(self.now);
        if queued > serial(self.link.queue_bytes) {
            return;
        }
        self.link_free_at = self.link_free_at.max(self.now) + serial(size);
        let arrival = self.link_free_at + self.link.round_trip / 2;
        match (self.link.fate)(pn, self.now - Time::ZERO) {
            Fate::Arrives => self.schedule(arrival, Event::Arrival(pn)),
            Fate::Late(by) => self.schedule(arrival + by, Event::Arrival(pn)),
            Fate::Lost => {}
        }
    }

    fn schedule(&mut self, time: Time, event: Event) {
        self.event_count += 1;
        self.events.insert((time, self.event_count), event);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival(pn) => {
                let in_order = self.received.last().is_none_or(|last| last.end == pn);
                self.received.insert(pn..pn + 1);
                while self.received.len() > 32 {
                    self.received.pop_first();
                }
                self.unacknowledged += 1;
                if self.unacknowledged >= self.link.ack_every || !in_order {
                    self.acknowledge();
                } else {
                    self.ack_due.get_or_insert(self.now + self.link.ack_delay);
                }
            }
            Event::Ack(ranges) => {
                let largest = *ranges[0].end();
                self.recovery
                    .on_ack(self.now, largest, ranges.into_iter(), Duration::ZERO, &mut self.out)
                    .expect("the receiver is honest");
                self.settle();
            }
        }
    }

    fn acknowledge(&mut self) {
        (self.unacknowledged, self.ack_due) = (0, None);
        let ranges: Vec<_> =
            self.received.iter().rev().map(|range| range.start..=range.end - 1).collect();
        let mut at = self.now + self.link.round_trip / 2;
        if !self.link.ack_tick.is_zero() {
            let tick = self.link.ack_tick.as_nanos() as u64;
            at = Time::from_nanos(at.as_nanos().div_ceil(tick) * tick);
        }
        self.schedule(at, Event::Ack(ranges));
    }

    fn settle(&mut self) {
        self.delivered += self.out.acked.iter().map(|packet| packet.frames).sum::<u64>();
        self.backlog += self.out.lost.iter().map(|packet| packet.frames).sum::<u64>();
    }
}
