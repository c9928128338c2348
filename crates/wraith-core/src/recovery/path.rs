//! State of one path: round trip, reordering, delivery rate, congestion control, pacing and bytes
//! in flight.
//!
//! Migration replaces this struct and nothing else. The controller's decision is cached, so that
//! sending a packet costs no virtual call. The module requests a new decision after each event that
//! may change it.

use std::time::Duration;

use super::ecn::PathEcn;
use super::pacer::Pacer;
use super::reordering::Reordering;
use super::{Budget, GRANULARITY};
use crate::Time;
use crate::congestion::{
    Acked, Control, Controller, ControllerFactory, Lost, Marked, Start, WINDOW_BYTES_MAX,
    minimum_window, send_quantum,
};
use crate::measure::{LostPacket, RateSampler, Rtt, Snapshot};

/// Minimum probe timeout. RFC 9002 §6.2.1 has no minimum but the granularity. With a round trip of
/// tens of microseconds and a short ACK delay, such a timeout would fire on any scheduling delay.
const PTO_MIN: Duration = Duration::from_millis(10);
/// Minimum probe timeout for an overdue ACK: two unnecessary packets cost less than a round trip of
/// silence.
const PROMPT_PTO_MIN: Duration = Duration::from_millis(2);
/// Persistent congestion, in probe timeouts (kPersistentCongestionThreshold, RFC 9002 §7.6.1).
const PERSISTENT_CONGESTION_THRESHOLD: u32 = 3;
/// Divisor: while it waits for the room of a send quantum, the sender leaves at most this fraction
/// of the window unused.
const DEFER_WINDOW_DIVISOR: u64 = 4;
/// Capacity kept for the lost packets of the next batch. A larger batch is an outage.
const LOST_KEPT: usize = 4096;

/// Minimum pacing rate, in packets per second, regardless of the controller's estimate. The window
/// still bounds them. An estimate from a trickle of data must not hold back later data until the
/// connection is idle.
const PACKETS_PER_SECOND_MIN: u64 = 2;

/// State of the current path.
#[derive(Debug)]
pub(super) struct Path {
    /// Number of the path. Packets of older paths neither count as in flight nor yield samples.
    pub(super) generation: u32,
    pub(super) rtt: Rtt,
    reordering: Reordering,
    pub(super) in_flight: u64,
    pub(super) control: Control,
    mtu: u16,
    controller: Box<dyn Controller>,
    pacer: Pacer,
    /// Maximum pacing rate in bytes per second, even if the controller allows more.
    rate_limit: u64,
    sampler: RateSampler,
    /// Time of the first RTT sample. Packets sent before it cannot prove persistent congestion.
    first_sample_at: Option<Time>,
    episode: Episode,
    /// Packets of the current batch of losses; kept to reuse its memory.
    lost: Vec<LostPacket>,
    /// The sender is treated as window-limited until this many bytes were delivered.
    window_limited_until: u64,
    /// The application had nothing to send when there was budget last.
    app_limited: bool,
    pub(super) ecn: PathEcn,
    /// Acknowledgement frequency requested from the peer: packets per ACK, and maximum delay.
    pub(super) ack_request: (u64, Duration),
}

/// The current or last recovery episode.
#[derive(Debug, Default)]
struct Episode {
    number: u64,
    /// Losses of packets sent up to this time belong to the episode.
    started_at: Option<Time>,
    lost: u64,
    late: u64,
}

/// Sums over the acknowledged packets of one ACK.
#[derive(Debug, Default)]
pub(super) struct AckSum {
    pub(super) bytes: u64,
    pub(super) newest_sent_at: Time,
}

/// Sums over a batch of losses.
#[derive(Debug, Default)]
pub(super) struct LossSum {
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) newest_sent_at: Time,
    pub(super) new_episode: bool,
    /// Bytes in flight right after the first lost packet of the episode was sent.
    pub(super) in_flight_at_send: u64,
    pub(super) persistent_congestion: bool,
}

impl Path {
    pub(super) fn new(generation: u32, factory: &dyn ControllerFactory, start: &Start) -> Self {
        let Start { now, mtu, initial_rtt, .. } = *start;
        let rtt = Rtt::assumed(initial_rtt);
        let controller = factory.build(start);
        let mut path = Self {
            generation,
            rtt,
            reordering: Reordering::default(),
            in_flight: 0,
            control: controller.control(&rtt),
            mtu,
            controller,
            pacer: Pacer::new(now, mtu),
            rate_limit: u64::MAX,
            sampler: RateSampler::new(now),
            first_sample_at: None,
            episode: Episode::default(),
            lost: Vec::new(),
            window_limited_until: 0,
            app_limited: false,
            ecn: PathEcn::new(),
            ack_request: (0, Duration::ZERO),
        };
        path.refresh(now);
        path
    }

    /// Records an in-flight packet that leaves.
    pub(super) fn on_sent(&mut self, now: Time, size: u32) -> Snapshot {
        if self.in_flight == 0 {
            self.controller.on_restart(now, self.sampler.is_app_limited());
            self.refresh(now);
        }
        let snapshot = self.sampler.on_sent(now, size, self.in_flight);
        self.in_flight += u64::from(size);
        self.pacer.spend(size);
        snapshot
    }

    /// Handles an acknowledged in-flight packet of this path.
    pub(super) fn on_packet_acked(
        &mut self,
        now: Time,
        sent_at: Time,
        size: u32,
        snapshot: &Snapshot,
    ) {
        self.in_flight -= u64::from(size);
        self.sampler.on_acked(now, sent_at, size, snapshot);
    }

    pub(super) fn sample_rtt(&mut self, now: Time, sample: Duration, ack_delay: Duration) {
        self.rtt.update(sample, ack_delay);
        self.first_sample_at.get_or_insert(now);
    }

    /// Ends an ACK that settled packets. `rtt` is its sample, if any.
    pub(super) fn on_acked(
        &mut self,
        now: Time,
        sum: &AckSum,
        prior_in_flight: u64,
        rtt: Option<Duration>,
    ) {
        let Some((rate, round_start)) = self.sampler.finish_ack(self.rtt.min()) else { return };
        self.controller.on_acked(&Acked {
            now,
            bytes: sum.bytes,
            prior_in_flight,
            in_flight: self.in_flight,
            rtt,
            smoothed_rtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
            newest_sent_at: sum.newest_sent_at,
            in_recovery: self.episode.covers(sum.newest_sent_at),
            round_start,
            delivered: self.sampler.delivered(),
            window_limited: self.sampler.delivered() <= self.window_limited_until,
            ack_batch: self.ack_batch(),
            rate,
        });
    }

    /// Returns the bytes for which the peer may delay an ACK, at the current rate.
    fn ack_batch(&self) -> u64 {
        let (packets, delay) = self.ack_request;
        let in_time = (self.control.pacing_rate as f64 * delay.as_secs_f64()) as u64;
        in_time.min(packets.saturating_mul(u64::from(self.mtu)))
    }

    /// Handles a lost packet of this path that `in_flight` no longer includes. Returns the number
    /// of its episode.
    pub(super) fn on_packet_lost(
        &mut self,
        now: Time,
        pn: u64,
        sent_at: Time,
        size: u32,
        snapshot: &Snapshot,
        sum: &mut LossSum,
    ) -> u64 {
        if self.begin_episode(now, sent_at) {
            sum.new_episode = true;
            sum.in_flight_at_send = snapshot.in_flight();
        }
        sum.bytes += u64::from(size);
        sum.packets += 1;
        sum.newest_sent_at = sent_at;
        self.lost.push(self.sampler.on_lost(pn, size, snapshot));
        self.episode.lost += 1;
        self.episode.number
    }

    /// Ends a batch of losses.
    pub(super) fn on_lost(&mut self, now: Time, sum: &LossSum) {
        if sum.persistent_congestion {
            self.rtt.forget_min();
        }
        self.controller.on_lost(&Lost {
            now,
            packets: &self.lost,
            delivered: self.sampler.delivered(),
            bytes: sum.bytes,
            in_flight: self.in_flight,
            newest_sent_at: sum.newest_sent_at,
            in_flight_at_send: sum.in_flight_at_send,
            new_episode: sum.new_episode,
            persistent_congestion: sum.persistent_congestion,
        });
        self.lost.clear();
        self.lost.shrink_to(LOST_KEPT);
    }

    /// Handles the late ACK of a packet declared lost in `episode`, `age` after it was sent.
    pub(super) fn on_late(&mut self, now: Time, episode: u64, age: Duration) {
        self.reordering.on_late(age, &self.rtt);
        if episode != self.episode.number {
            return;
        }
        self.episode.late += 1;
        if self.episode.late == self.episode.lost {
            // No loss was real, so the next loss begins a new episode.
            self.episode.started_at = None;
            self.controller.on_spurious_episode(now);
        }
    }

    /// Handles `packets` CE marks. The newest marked packet was sent at `newest_sent_at` or before.
    pub(super) fn on_congestion_experienced(
        &mut self,
        now: Time,
        packets: u64,
        newest_sent_at: Time,
    ) {
        let new_episode = self.begin_episode(now, newest_sent_at);
        self.controller.on_congestion_experienced(&Marked {
            now,
            packets,
            delivered: self.sampler.delivered(),
            in_flight: self.in_flight,
            newest_sent_at,
            new_episode,
        });
        self.refresh(now);
    }

    fn begin_episode(&mut self, now: Time, newest_sent_at: Time) -> bool {
        if self.episode.covers(newest_sent_at) {
            return false;
        }
        let number = self.episode.number + 1;
        self.episode = Episode { number, started_at: Some(now), lost: 0, late: 0 };
        self.reordering.on_episode();
        true
    }

    /// Adopts the controller's decision from `now` on.
    pub(super) fn refresh(&mut self, now: Time) {
        self.pacer.fill(now);
        self.adopt();
    }

    fn adopt(&mut self) {
        self.control = self.controller.control(&self.rtt);
        // An application's controller may break the invariants, so its values are clamped.
        let Control { window, pacing_rate, send_quantum: quantum, acks_per_window, .. } =
            &mut self.control;
        *window = (*window).clamp(minimum_window(self.mtu), WINDOW_BYTES_MAX);
        *pacing_rate = (*pacing_rate).max(u64::from(self.mtu) * PACKETS_PER_SECOND_MIN);
        *quantum = (*quantum).max(u64::from(self.mtu));
        *acks_per_window = (*acks_per_window).max(1);
        if self.rate_limit < self.control.pacing_rate {
            self.control.pacing_rate = self.rate_limit;
            let quantum = send_quantum(self.rate_limit, self.mtu);
            self.control.send_quantum = self.control.send_quantum.min(quantum);
        }
        let Control { pacing_rate, send_quantum, measuring_round_trip, .. } = self.control;
        self.pacer.set_rate(pacing_rate, send_quantum, self.mtu);
        if measuring_round_trip {
            self.sampler.set_app_limited(self.in_flight);
        }
    }

    pub(super) fn set_rate_limit(&mut self, now: Time, bytes_per_second: u64) {
        self.rate_limit = bytes_per_second;
        self.refresh(now);
    }

    pub(super) fn rate_limit(&self) -> u64 {
        self.rate_limit
    }

    pub(super) fn mtu(&self) -> u64 {
        u64::from(self.mtu)
    }

    pub(super) fn on_padding_sent(&mut self, bytes: u32) {
        self.pacer.spend(bytes);
    }

    pub(super) fn set_mtu(&mut self, mtu: u16) {
        self.mtu = mtu;
        self.controller.set_mtu(mtu);
        self.adopt();
    }

    pub(super) fn assume_rtt(&mut self, now: Time, rtt: Duration) {
        if !self.rtt.is_sampled() {
            self.rtt = Rtt::assumed(rtt);
            self.refresh(now);
        }
    }

    pub(super) fn controller(&self) -> &dyn Controller {
        self.controller.as_ref()
    }

    /// Returns the sending budget (see [`super::Recovery::budget`]).
    pub(super) fn budget(&mut self, now: Time) -> Budget {
        if std::mem::take(&mut self.app_limited) {
            self.mark_app_limited(now);
        }
        let mtu = u64::from(self.mtu);
        let Control { window, send_quantum, .. } = self.control;
        let room = window.saturating_sub(self.in_flight);
        // Each ACK frees room for a few packets. Sending those at once would cost a system call per
        // ACK.
        if room < send_quantum.min(window / DEFER_WINDOW_DIVISOR).max(mtu) {
            self.window_limited_until = self.sampler.delivered() + self.in_flight;
            return Budget::Blocked;
        }
        match self.pacer.available(now, send_quantum.min(room)) {
            Ok(bytes) => {
                let bytes = bytes.min(room);
                Budget::Bytes(bytes - bytes % mtu)
            }
            Err(at) => Budget::At(at),
        }
    }

    pub(super) fn set_app_limited(&mut self, now: Time) {
        self.app_limited = true;
        self.mark_app_limited(now);
    }

    /// Marks the sender as application-limited, if that leaves the path idle. It does so only under
    /// two conditions. The window has room; otherwise the window is the limit. The pacer's bucket
    /// is full; otherwise later data catches up.
    fn mark_app_limited(&mut self, now: Time) {
        let room = self.in_flight + u64::from(self.mtu) <= self.control.window;
        if room && self.pacer.is_full(now) {
            self.sampler.set_app_limited(self.in_flight);
        }
    }

    /// Returns the loss delay: a packet this old is lost once a newer one was acknowledged.
    pub(super) fn loss_delay(&self) -> Duration {
        self.reordering.loss_delay(&self.rtt)
    }

    pub(super) fn first_sample_at(&self) -> Option<Time> {
        self.first_sample_at
    }

    /// Returns the probe timeout without back-off (RFC 9002 §6.2.1).
    pub(super) fn pto(&self, max_ack_delay: Duration) -> Duration {
        let rtt = &self.rtt;
        (rtt.smoothed() + (rtt.var() * 4).max(GRANULARITY) + max_ack_delay).max(PTO_MIN)
    }

    /// Returns true if so much is in flight that the peer must have sent an ACK by now.
    pub(super) fn owes_ack(&self) -> bool {
        let (packets, _) = self.ack_request;
        packets > 0 && self.in_flight > 2 * packets.saturating_mul(u64::from(self.mtu))
    }

    /// Returns the probe timeout for a peer that has no reason to delay its ACK.
    pub(super) fn prompt_pto(&self) -> Duration {
        let rtt = &self.rtt;
        (rtt.smoothed() + (rtt.var() * 4).max(GRANULARITY)).max(PROMPT_PTO_MIN)
    }

    /// Returns the duration of total loss that is persistent congestion (RFC 9002 §7.6.1).
    pub(super) fn persistent_congestion_duration(&self, max_ack_delay: Duration) -> Duration {
        self.pto(max_ack_delay) * PERSISTENT_CONGESTION_THRESHOLD
    }
}

impl Episode {
    fn covers(&self, sent_at: Time) -> bool {
        self.started_at.is_some_and(|start| sent_at <= start)
    }
}
