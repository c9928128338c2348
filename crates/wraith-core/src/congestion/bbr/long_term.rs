//! The long-term bound on bytes in flight (draft §5.3.3.6, §5.5.10.2): set when a probe lost too
//! much, raised while probes do not.

use super::extensions::probe_losses;
use super::probe_bw::AckPhase;
use super::{BETA, Bbr, BbrState, Phase, UNLIMITED};
use crate::Time;
use crate::congestion::controller::{Acked, Lost};
use crate::measure::LostPacket;

/// Rounds of ProbeBW_UP after which the growth per round stops doubling (2^30 packets).
const GROWTH_ROUNDS_MAX: u32 = 30;
/// Draft: Headroom, the fraction of the bound left to other flows during the cruise.
const HEADROOM: f64 = 0.15;

/// The bound and the state of its growth.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongTerm {
    /// Draft: inflight_longterm.
    pub(super) inflight_longterm: u64,
    /// Growth in this ProbeBW_UP: rounds, bytes acknowledged since the last step, and bytes per
    /// step.
    bw_probe_up_rounds: u32,
    bw_probe_up_acks: u64,
    probe_up_cnt: u64,
    /// The last probe lost too much; the last probe ended early to avoid that.
    pub(super) prev_too_high: bool,
    pub(super) prev_precautionary: bool,
}

impl Default for LongTerm {
    fn default() -> Self {
        Self {
            inflight_longterm: UNLIMITED,
            bw_probe_up_rounds: 0,
            bw_probe_up_acks: 0,
            probe_up_cnt: UNLIMITED,
            prev_too_high: false,
            prev_precautionary: false,
        }
    }
}

impl LongTerm {
    pub(super) fn stop_growth(&mut self) {
        self.probe_up_cnt = UNLIMITED;
    }

    /// Restarts the growth as if `rounds` of it had passed.
    pub(super) fn begin_refill(&mut self, rounds: u32) {
        self.bw_probe_up_rounds = rounds;
        self.bw_probe_up_acks = 0;
        self.prev_precautionary = false;
    }

    /// InflightWithHeadroom.
    pub(super) fn with_headroom(&self, mtu: u64, least: u64) -> u64 {
        if self.inflight_longterm == UNLIMITED {
            return UNLIMITED;
        }
        let headroom = ((self.inflight_longterm as f64 * HEADROOM) as u64).max(mtu);
        self.inflight_longterm.saturating_sub(headroom).max(least)
    }
}

impl Bbr {
    /// RaiseInflightLongtermSlope.
    pub(super) fn raise_inflight_longterm_slope(&mut self) {
        let (window, mtu) = (self.cwnd, u64::from(self.mtu));
        let model = &mut self.long_term;
        model.probe_up_cnt = (window >> model.bw_probe_up_rounds).max(mtu);
        model.bw_probe_up_rounds = (model.bw_probe_up_rounds + 1).min(GROWTH_ROUNDS_MAX);
    }

    /// ProbeInflightLongtermUpward.
    fn probe_inflight_longterm_upward(&mut self, acked: &Acked) {
        if !acked.window_limited || self.cwnd < self.long_term.inflight_longterm {
            return;
        }
        let model = &mut self.long_term;
        model.bw_probe_up_acks += acked.bytes;
        let steps = model.bw_probe_up_acks / model.probe_up_cnt;
        model.bw_probe_up_acks -= steps * model.probe_up_cnt;
        model.inflight_longterm =
            model.inflight_longterm.saturating_add(steps * u64::from(self.mtu));
        if self.round.round_start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// IsInflightTooHigh.
    fn is_inflight_too_high(&self, lost: u64, in_flight: u64) -> bool {
        lost > self.random_loss.tolerated(in_flight, self.mtu)
    }

    /// AdaptLongTermModel. Returns true if it decided the next state.
    pub(super) fn adapt_long_term_model(&mut self, acked: &Acked) -> bool {
        let in_probe_bw = matches!(self.state, BbrState::ProbeBw(_));
        if self.round.round_start && self.cycle.ack_phase == AckPhase::ProbeStarting {
            self.cycle.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.round.round_start && self.cycle.ack_phase == AckPhase::ProbeStopping {
            self.cycle.bw_probe_samples = false;
            self.cycle.ack_phase = AckPhase::Init;
            self.random_loss.begin_cycle();
            self.judge_probe();
            if in_probe_bw && !acked.rate.app_limited {
                self.max_bw.advance();
            }
            if in_probe_bw && self.long_term.prev_precautionary && !self.long_term.prev_too_high {
                self.start_probe_bw_refill(acked.delivered);
                return true;
            }
        }
        let rate = &acked.rate;
        if self.long_term.inflight_longterm == UNLIMITED
            || self.is_inflight_too_high(rate.lost, rate.in_flight_at_send)
        {
            return false;
        }
        self.long_term.inflight_longterm =
            self.long_term.inflight_longterm.max(rate.in_flight_at_send);
        if self.is_up() {
            self.probe_inflight_longterm_upward(acked);
        }
        false
    }

    /// HandleLostPacket, for a batch.
    pub(super) fn handle_lost_packets(&mut self, lost: &Lost<'_>) {
        for packet in lost.packets {
            if !self.cycle.bw_probe_samples {
                return;
            }
            let passed = probe_losses::passed_since(packet);
            if self.is_inflight_too_high(packet.lost_since_send, passed) {
                let in_flight = self.inflight_at_loss(packet);
                self.handle_inflight_too_high(lost.now, in_flight, packet.app_limited);
                // The cruise after a failed probe is slower, so a trial can test whether the loss
                // follows the rate.
                let rate = packet.lost_since_send as f64 / passed.max(1) as f64;
                self.random_loss.begin_trial(lost.delivered, rate, self.mtu);
            }
        }
    }

    /// HandleInflightTooHigh: too many bytes were lost with `in_flight` bytes in flight.
    pub(super) fn handle_inflight_too_high(
        &mut self,
        now: Time,
        in_flight: u64,
        app_limited: bool,
    ) {
        if !self.cycle.bw_probe_samples {
            return;
        }
        self.long_term.prev_too_high = true;
        self.cycle.bw_probe_samples = false;
        if !app_limited {
            let least = (self.target_inflight() as f64 * BETA) as u64;
            self.long_term.inflight_longterm = in_flight.max(least);
        }
        if self.is_up() {
            self.undo.state = Some(BbrState::ProbeBw(Phase::Up));
            self.start_probe_bw_down(now, self.short_term.delivered);
        }
    }

    /// InflightAtLoss: the bytes in flight at which the losses exceeded the threshold, among those
    /// sent up to `packet`.
    fn inflight_at_loss(&self, packet: &LostPacket) -> u64 {
        let size = u64::from(packet.size);
        let before = packet.in_flight_at_send.saturating_sub(size) as f64;
        let lost_before = packet.lost_since_send.saturating_sub(size) as f64;
        let threshold = self.random_loss.threshold();
        let prefix = (threshold * before - lost_before) / (1.0 - threshold);
        (before + prefix.max(0.0)) as u64
    }
}
