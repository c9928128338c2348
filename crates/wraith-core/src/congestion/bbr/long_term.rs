//! The long-term bound on what is in flight (draft §5.3.3.6, §5.5.10.2): set where a probe lost too much, raised while probes
//! do not.

use super::{BETA, Bbr, Phase, State, UNLIMITED};
use crate::Time;
use crate::congestion::controller::{Acked, Lost};
use crate::measure::LostPacket;

use super::probe_bw::AckPhase;

/// Rounds of ProbeBW_UP after which the growth per round no longer doubles (2^30 packets).
const GROWTH_ROUNDS_MAX: u32 = 30;
/// Rounds of growth by which the probe after a Startup that ended with loss is ahead (deviation): its bound is rough.
const ROUGH_ROUNDS: u32 = 3;
/// Draft: Headroom, the part of the bound left to others while cruising.
const HEADROOM: f64 = 0.15;

/// The bound and how it is being raised.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongTerm {
    /// Draft: inflight_longterm.
    pub(super) inflight: u64,
    /// Rounds of growth in this ProbeBW_UP, bytes acknowledged since the last step, and bytes that make a step.
    up_rounds: u32,
    up_acked: u64,
    acked_per_step: u64,
    /// The bound is what a Startup that lost too much delivered: the path may hold more than that.
    pub(super) rough: bool,
    /// The last probe lost too much; the last probe ended early in order not to.
    pub(super) prev_too_high: bool,
    pub(super) prev_precautionary: bool,
}

impl Default for LongTerm {
    fn default() -> Self {
        Self {
            inflight: UNLIMITED,
            up_rounds: 0,
            up_acked: 0,
            acked_per_step: UNLIMITED,
            rough: false,
            prev_too_high: false,
            prev_precautionary: false,
        }
    }
}

impl LongTerm {
    pub(super) fn stop_growth(&mut self) {
        self.acked_per_step = UNLIMITED;
    }

    pub(super) fn begin_refill(&mut self) {
        self.up_rounds = if std::mem::take(&mut self.rough) { ROUGH_ROUNDS } else { 0 };
        self.up_acked = 0;
        self.prev_precautionary = false;
    }

    /// InflightWithHeadroom.
    pub(super) fn with_headroom(&self, mtu: u64, least: u64) -> u64 {
        if self.inflight == UNLIMITED {
            return UNLIMITED;
        }
        let headroom = ((self.inflight as f64 * HEADROOM) as u64).max(mtu);
        self.inflight.saturating_sub(headroom).max(least)
    }
}

impl Bbr {
    /// RaiseInflightLongtermSlope.
    pub(super) fn raise_slope(&mut self) {
        let (window, mtu) = (self.window, u64::from(self.mtu));
        let model = &mut self.long_term;
        model.acked_per_step = (window >> model.up_rounds).max(mtu);
        model.up_rounds = (model.up_rounds + 1).min(GROWTH_ROUNDS_MAX);
    }

    /// ProbeInflightLongtermUpward.
    fn probe_upward(&mut self, acked: &Acked) {
        if !acked.window_limited || self.window < self.long_term.inflight {
            return;
        }
        let model = &mut self.long_term;
        model.up_acked += acked.bytes;
        let steps = model.up_acked / model.acked_per_step;
        model.up_acked -= steps * model.acked_per_step;
        model.inflight = model.inflight.saturating_add(steps * u64::from(self.mtu));
        if self.round.started {
            self.raise_slope();
        }
    }

    /// IsInflightTooHigh.
    fn is_too_high(&self, lost: u64, in_flight: u64) -> bool {
        lost > self.background.tolerated(in_flight, self.mtu)
    }

    /// AdaptLongTermModel. True if it decided the next state.
    pub(super) fn adapt_long_term_model(&mut self, acked: &Acked) -> bool {
        let in_probe_bw = matches!(self.state, State::ProbeBw(_));
        if self.round.started && self.cycle.ack_phase == AckPhase::ProbeStarting {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.round.started && self.cycle.ack_phase == AckPhase::ProbeStopping {
            self.cycle.is_probe_sample = false;
            self.cycle.ack_phase = AckPhase::Init;
            self.background.begin_cycle();
            self.judge_probe();
            if in_probe_bw && !acked.rate.app_limited {
                self.max_bw.advance();
            }
            if in_probe_bw && self.long_term.prev_precautionary && !self.long_term.prev_too_high {
                self.start_refill(acked.now, acked.delivered);
                return true;
            }
        }
        let rate = &acked.rate;
        if self.long_term.inflight == UNLIMITED
            || self.is_too_high(rate.lost, rate.in_flight_at_send)
        {
            return false;
        }
        self.long_term.inflight = self.long_term.inflight.max(rate.in_flight_at_send);
        if self.is_up() {
            self.probe_upward(acked);
        }
        false
    }

    /// HandleLostPacket, for a batch.
    pub(super) fn probe_lost(&mut self, lost: &Lost<'_>) {
        for packet in lost.packets {
            if !self.cycle.is_probe_sample {
                return;
            }
            // Where the round trip is shorter than the timers' granularity, several flights have passed since.
            let passed = packet.in_flight_at_send.max(packet.settled_since_send);
            if self.is_too_high(packet.lost_since_send, passed) {
                let in_flight = self.inflight_at_loss(packet);
                self.probe_went_too_high(lost.now, in_flight, packet.app_limited);
                // What follows a failed probe is slower: whether the loss follows it is worth asking.
                let rate = packet.lost_since_send as f64 / passed.max(1) as f64;
                self.background.begin_trial(lost.delivered, rate, self.mtu);
            }
        }
    }

    /// HandleInflightTooHigh: with `in_flight` bytes on the way, too many were lost.
    pub(super) fn probe_went_too_high(&mut self, now: Time, in_flight: u64, app_limited: bool) {
        if !self.cycle.is_probe_sample {
            return;
        }
        self.long_term.prev_too_high = true;
        self.cycle.is_probe_sample = false;
        if !app_limited {
            let least = (self.target_inflight() as f64 * BETA) as u64;
            self.long_term.inflight = in_flight.max(least);
        }
        if self.is_up() {
            self.undo.state = Some(State::ProbeBw(Phase::Up));
            self.start_down(now, self.short_term.delivered);
        }
    }

    /// InflightAtLoss: how much was in flight where the losses passed the threshold, within what left with `packet`.
    fn inflight_at_loss(&self, packet: &LostPacket) -> u64 {
        let size = u64::from(packet.size);
        let before = packet.in_flight_at_send.saturating_sub(size) as f64;
        let lost_before = packet.lost_since_send.saturating_sub(size) as f64;
        let threshold = self.background.threshold();
        let prefix = (threshold * before - lost_before) / (1.0 - threshold);
        (before + prefix.max(0.0)) as u64
    }
}
