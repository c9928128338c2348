//! From the model to window, pacing rate and send quantum (draft §5.6).
//!
//! Deviation: the offload budget, the least that keeps both hosts busy, includes a millisecond at the bandwidth
//! ([`HOST_RTT`]). On loopback and in a rack threads that wait for a core are most of the round trip, and a window of
//! twice the shortest one would idle. Between two processes of one machine it is ten.

use std::time::Duration;

use super::{Bbr, HOST_RTT, MIN_PIPE_PACKETS, Phase, State, UNLIMITED, probe_rtt};
use crate::congestion::controller::{Acked, Control};
use crate::congestion::window::{WINDOW_BYTES_MAX, initial_window, send_quantum};
use crate::measure::Rtt;

/// No network is as short as this; both ends are on one machine, where there is no queue but memory.
const SAME_HOST_RTT: Duration = Duration::from_micros(100);
/// What threads of one busy machine wait for each other.
const SAME_HOST_DELAY: Duration = Duration::from_millis(10);
/// Draft: StartupPacingGain, 4 ln 2; the least that doubles the rate each round.
const STARTUP_PACING_GAIN: f64 = 2.77;
/// The same for threefold, and the window for it; see `hurry`.
const HURRY_PACING_GAIN: f64 = 4.16;
const HURRY_WINDOW_GAIN: f64 = 3.0;
/// Draft: DrainPacingGain.
const DRAIN_PACING_GAIN: f64 = 0.5;
/// Draft §5.6.1: ProbeBW_DOWN and ProbeBW_UP.
const DOWN_PACING_GAIN: f64 = 0.9;
const UP_PACING_GAIN: f64 = 1.25;
/// Draft: DefaultCwndGain, and its value in ProbeBW_UP.
const WINDOW_GAIN: f64 = 2.0;
const UP_WINDOW_GAIN: f64 = 2.25;
/// Acknowledgements asked for in one window: the 4 in a round trip that the draft asks for at least. More of them queue up
/// where the way back is narrow.
const ACKS_PER_WINDOW: u64 = 4;
/// The same where loss bounds what is in flight: what waits for its ACK has left the path, and the bound cannot make up
/// for it.
const ACKS_PER_BOUNDED_WINDOW: u64 = 8;
/// The same while Startup jumps: what it makes of the path shows early in the round, or not at all.
const ACKS_PER_JUMP: u64 = 16;
/// Draft: PacingMarginPercent; a little less than the bandwidth lets queues drain.
const PACING_MARGIN: f64 = 0.99;

impl Bbr {
    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup if self.is_at_train_rate() => UP_PACING_GAIN,
            State::Startup if self.is_tripling() => HURRY_PACING_GAIN,
            State::Startup => STARTUP_PACING_GAIN,
            State::Drain => DRAIN_PACING_GAIN,
            State::ProbeBw(Phase::Down) => DOWN_PACING_GAIN,
            State::ProbeBw(Phase::Up) if self.is_doubling() => STARTUP_PACING_GAIN,
            State::ProbeBw(Phase::Up) => UP_PACING_GAIN,
            State::ProbeBw(Phase::Cruise | Phase::Refill) | State::ProbeRtt => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.state {
            State::ProbeBw(Phase::Up) => UP_WINDOW_GAIN,
            State::ProbeRtt => probe_rtt::WINDOW_GAIN,
            State::Startup if self.is_at_train_rate() => WINDOW_GAIN,
            State::Startup if self.is_tripling() => HURRY_WINDOW_GAIN,
            _ => WINDOW_GAIN,
        }
    }

    /// BDPMultiple, at the current bandwidth.
    pub(super) fn bdp(&self, gain: f64) -> u64 {
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
        let same_host = self.min_rtt.get().is_some_and(|rtt| rtt < SAME_HOST_RTT);
        let delay = if same_host { SAME_HOST_DELAY } else { HOST_RTT };
        let hosts = (self.bw as f64 * delay.as_secs_f64()) as u64;
        let offload = send_quantum(self.pacing_rate, self.mtu) + self.ack_batch + hosts;
        let budget = inflight.max(offload).max(self.min_pipe_window());
        if self.is_up() { budget + 2 * u64::from(self.mtu) } else { budget }
    }

    pub(super) fn min_pipe_window(&self) -> u64 {
        MIN_PIPE_PACKETS * u64::from(self.mtu)
    }

    /// TargetInflight.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp(1.0).min(self.window)
    }

    /// InflightWithHeadroom. Room is left in the queue, not in the pipe: what fits into that is not given away.
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        let pipe = self.bdp(1.0) + self.ack_batch + send_quantum(self.pacing_rate, self.mtu);
        let headroom = self.long_term.with_headroom(u64::from(self.mtu), self.min_pipe_window());
        headroom.max(pipe.min(self.long_term.inflight))
    }

    fn acks_per_window(&self) -> u64 {
        if self.is_jumping() {
            return ACKS_PER_JUMP;
        }
        let bounded = self.long_term.inflight.min(self.short_term.inflight) < UNLIMITED;
        if bounded { ACKS_PER_BOUNDED_WINDOW } else { ACKS_PER_WINDOW }
    }

    /// The part of the window that may stay unused until a send quantum fits.
    pub(super) fn deferred(&self) -> u64 {
        send_quantum(self.pacing_rate, self.mtu).min(self.window / 4).max(u64::from(self.mtu))
    }

    /// UpdateControlParameters.
    pub(super) fn update_control_parameters(&mut self, acked: &Acked) {
        if self.pacing_rate == 0 {
            self.pacing_rate = self.initial_pacing_rate(acked.smoothed_rtt);
        }
        self.set_pacing_rate(self.pacing_gain());
        self.set_window(acked);
    }

    /// SetPacingRateWithGain.
    pub(super) fn set_pacing_rate(&mut self, gain: f64) {
        let rate = (gain * self.bw as f64 * PACING_MARGIN) as u64;
        // Before the pipe is full the first rate is a guess, until a queue shows that it was too high.
        let known = self.full_pipe.reached
            || self.is_at_train_rate()
            || self.has_failed_to_jump()
            || (self.round.count > 1 && self.is_queueing());
        if rate > 0 && (known || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// InitPacingRate.
    fn initial_pacing_rate(&self, rtt: Duration) -> u64 {
        // RTTs are at least a microsecond, so this neither divides by zero nor leaves u64.
        let rate = STARTUP_PACING_GAIN * self.first_window(rtt) as f64 / rtt.as_secs_f64();
        (rate as u64).max(1)
    }

    /// SetCwnd.
    fn set_window(&mut self, acked: &Acked) {
        let max_inflight =
            self.quantization_budget(self.bdp(self.window_gain()) + self.extra_acked.get());
        if self.full_pipe.reached {
            self.window = (self.window + acked.bytes).min(max_inflight);
        } else if self.window < max_inflight
            || (acked.delivered < self.first_window(acked.smoothed_rtt) && !self.is_queueing())
        {
            // Each ACK lets out itself and what the round is to grow by.
            self.window += if self.is_tripling() { 2 * acked.bytes } else { acked.bytes };
        }
        self.open_toward_train(acked);
        let too_fast = self.has_failed_to_jump() || self.is_queueing();
        if self.state == State::Startup && too_fast && self.max_bw.get() > 0 {
            // Threefold growth and jumping are over: back to what doubling would have.
            self.window = self.window.min(max_inflight.max(self.first_window(acked.smoothed_rtt)));
        }
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        let cap = match self.state {
            State::ProbeBw(Phase::Cruise) | State::ProbeRtt => self.inflight_with_headroom(),
            State::ProbeBw(_) => self.long_term.inflight,
            State::Startup | State::Drain => UNLIMITED,
        };
        let cap = cap.min(self.short_term.inflight).min(WINDOW_BYTES_MAX);
        self.window = self.window.min(cap).max(self.min_pipe_window());
    }

    /// What it allows before and after the first sample.
    pub(super) fn control_for(&self, rtt: &Rtt) -> Control {
        let (window, pacing_rate) = if self.pacing_rate == 0 {
            let first = self.first_window(rtt.smoothed());
            (self.window.max(first), self.initial_pacing_rate(rtt.smoothed()))
        } else {
            (self.window, self.pacing_rate)
        };
        Control {
            window,
            pacing_rate,
            send_quantum: send_quantum(pacing_rate, self.mtu),
            measuring_round_trip: self.state == State::ProbeRtt,
            acks_per_window: self.acks_per_window(),
        }
    }
}
