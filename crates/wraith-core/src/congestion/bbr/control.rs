//! Window, pacing rate and send quantum from the model (draft §5.6).
//!
//! The extensions are called by name: [`host_delay`](super::extensions::host_delay) adds to the
//! offload budget, and [`headroom`](super::extensions::headroom) changes the cruise. The gains of
//! Startup and of a probe are in `pacing_gain` and `cwnd_gain`.

use std::time::Duration;

use super::extensions::fast_startup::{TRIPLING_CWND_GAIN, TRIPLING_PACING_GAIN};
use super::{Bbr, BbrState, MIN_PIPE_CWND_PACKETS, Phase, UNLIMITED, probe_rtt};
use crate::congestion::controller::{Acked, Control};
use crate::congestion::window::{WINDOW_BYTES_MAX, initial_window, send_quantum};
use crate::measure::Rtt;

/// Draft: StartupPacingGain, 4 ln 2, the smallest gain that doubles the rate each round.
const STARTUP_PACING_GAIN: f64 = 2.77;
/// Draft: DrainPacingGain.
const DRAIN_PACING_GAIN: f64 = 0.5;
/// Draft §5.6.1: ProbeBW_DOWN and ProbeBW_UP.
const DOWN_PACING_GAIN: f64 = 0.9;
const UP_PACING_GAIN: f64 = 1.25;
/// Draft: DefaultCwndGain, and its value in ProbeBW_UP.
const CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
/// Draft: PacingMarginPercent. Pacing slightly below the bandwidth lets queues drain.
const PACING_MARGIN: f64 = 0.99;

impl Bbr {
    fn pacing_gain(&self) -> f64 {
        match self.state {
            BbrState::Startup if self.is_at_train_rate() => UP_PACING_GAIN,
            BbrState::Startup if self.is_tripling() => TRIPLING_PACING_GAIN,
            BbrState::Startup => STARTUP_PACING_GAIN,
            BbrState::Drain => DRAIN_PACING_GAIN,
            BbrState::ProbeBw(Phase::Down) => DOWN_PACING_GAIN,
            BbrState::ProbeBw(Phase::Up) if self.is_doubling() => STARTUP_PACING_GAIN,
            BbrState::ProbeBw(Phase::Up) => UP_PACING_GAIN,
            BbrState::ProbeBw(Phase::Cruise | Phase::Refill) | BbrState::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.state {
            BbrState::ProbeBw(Phase::Up) => UP_CWND_GAIN,
            BbrState::ProbeRtt => probe_rtt::CWND_GAIN,
            BbrState::Startup if self.is_at_train_rate() => CWND_GAIN,
            BbrState::Startup if self.is_tripling() => TRIPLING_CWND_GAIN,
            _ => CWND_GAIN,
        }
    }

    /// BDPMultiple, at the current bandwidth.
    pub(super) fn bdp_multiple(&self, gain: f64) -> u64 {
        self.bdp_at(self.bw, gain)
    }

    pub(super) fn bdp_at(&self, bw: u64, gain: f64) -> u64 {
        let Some(min_rtt) = self.min_rtt.get() else { return initial_window(self.mtu) };
        (gain * bw as f64 * min_rtt.as_secs_f64()) as u64
    }

    /// Inflight.
    pub(super) fn inflight(&self, bw: u64, gain: f64) -> u64 {
        self.quantization_budget(self.bdp_at(bw, gain))
    }

    fn quantization_budget(&self, inflight: u64) -> u64 {
        let offload =
            send_quantum(self.pacing_rate, self.mtu) + self.ack_batch + self.host_budget();
        let budget = inflight.max(offload).max(self.min_pipe_cwnd());
        if self.is_up() { budget + 2 * u64::from(self.mtu) } else { budget }
    }

    pub(super) fn min_pipe_cwnd(&self) -> u64 {
        MIN_PIPE_CWND_PACKETS * u64::from(self.mtu)
    }

    /// TargetInflight.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp_multiple(1.0).min(self.cwnd)
    }

    /// InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        self.keep_pipe_full(self.long_term.with_headroom(u64::from(self.mtu), self.min_pipe_cwnd()))
    }

    /// Returns the part of the window that may stay unused until a send quantum fits.
    pub(super) fn deferred(&self) -> u64 {
        send_quantum(self.pacing_rate, self.mtu).min(self.cwnd / 4).max(u64::from(self.mtu))
    }

    /// UpdateControlParameters.
    pub(super) fn update_control_parameters(&mut self, acked: &Acked) {
        if self.pacing_rate == 0 {
            self.pacing_rate = self.init_pacing_rate(acked.smoothed_rtt);
        }
        self.set_pacing_rate_with_gain(self.pacing_gain());
        self.set_cwnd(acked);
    }

    /// SetPacingRateWithGain.
    pub(super) fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = (gain * self.bw as f64 * PACING_MARGIN) as u64;
        // Before the pipe is full, the first rate is an assumption, valid until a queue shows that
        // it is too high.
        let known = self.full_bw.reached
            || self.is_at_train_rate()
            || self.has_failed_to_jump()
            || (self.round.round_count > 1 && self.is_queueing());
        if rate > 0 && (known || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// InitPacingRate.
    fn init_pacing_rate(&self, rtt: Duration) -> u64 {
        // RTTs are at least a microsecond, so this neither divides by zero nor overflows u64.
        let rate = STARTUP_PACING_GAIN * self.first_window(rtt) as f64 / rtt.as_secs_f64();
        (rate as u64).max(1)
    }

    /// SetCwnd.
    fn set_cwnd(&mut self, acked: &Acked) {
        let max_inflight =
            self.quantization_budget(self.bdp_multiple(self.cwnd_gain()) + self.extra_acked.get());
        if self.full_bw.reached {
            self.cwnd = (self.cwnd + acked.bytes).min(max_inflight);
        } else if self.cwnd < max_inflight
            || (acked.delivered < self.first_window(acked.smoothed_rtt) && !self.is_queueing())
        {
            // Each ACK releases its own bytes and the growth of the round.
            self.cwnd += if self.is_tripling() { 2 * acked.bytes } else { acked.bytes };
        }
        self.open_toward_train(acked);
        let too_fast = self.has_failed_to_jump() || self.is_queueing();
        if self.state == BbrState::Startup && too_fast && self.max_bw.get() > 0 {
            // Tripling and jumping are over: return to the window of doubling.
            self.cwnd = self.cwnd.min(max_inflight.max(self.first_window(acked.smoothed_rtt)));
        }
        if self.state == BbrState::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        let cap = match self.state {
            BbrState::ProbeBw(Phase::Cruise) | BbrState::ProbeRtt => self.inflight_with_headroom(),
            BbrState::ProbeBw(_) => self.long_term.inflight_longterm,
            BbrState::Startup | BbrState::Drain => UNLIMITED,
        };
        let cap = cap.min(self.short_term.inflight_shortterm).min(WINDOW_BYTES_MAX);
        self.cwnd = self.cwnd.min(cap).max(self.min_pipe_cwnd());
    }

    /// Returns the decision before and after the first sample.
    pub(super) fn control_for(&self, rtt: &Rtt) -> Control {
        let (window, pacing_rate) = if self.pacing_rate == 0 {
            let first = self.first_window(rtt.smoothed());
            (self.cwnd.max(first), self.init_pacing_rate(rtt.smoothed()))
        } else {
            (self.cwnd, self.pacing_rate)
        };
        Control {
            measuring_round_trip: self.state == BbrState::ProbeRtt,
            acks_per_window: self.acks_per_window(),
            ..Control::new(window, pacing_rate, self.mtu)
        }
    }
}
