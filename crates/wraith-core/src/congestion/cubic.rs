//! CUBIC (RFC 9438), in bytes, with HyStart++ for slow start.
//!
//! After a reduction the window follows `W(t) = C·(t − K)³ + W_max`: fast towards where the last loss happened, slowly
//! around it, fast beyond; never slower than Reno would be (§4.3). A sender that does not use its window does not
//! grow it, and that time does not count as `t` (§5.8). One reduction per recovery episode; when every loss of the episode
//! was reordering, the state from before it comes back (§4.9).

use std::time::Duration;

use super::hystart::HyStart;
use super::{Acked, Controller, Lost, WINDOW_BYTES_MAX, initial_window, minimum_window};
use crate::Time;
use crate::recovery::Rtt;

/// RFC 9438 §4.6: what remains of the window after a reduction.
const BETA: f64 = 0.7;
/// RFC 9438 §4.1: packets per second cubed.
const C: f64 = 0.4;
/// RFC 9438 §4.3: Reno-friendly increase that is fair at this BETA.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// RFC 9438 §4.2: the target is at most this many windows.
const TARGET_MAX: f64 = 1.5;
/// RFC 9002 §7.7 wants N > 1: leaves room to use the whole window in spite of late timers.
const PACING_GAIN: f64 = 1.25;
/// Slow start doubles per round trip, so twice the window must leave in one.
const PACING_GAIN_SLOW_START: f64 = 2.0;
/// A window this close to full counts as used: a send quantum that did not fit stays behind.
const USED_SLACK_PACKETS: f64 = 3.0;

/// See the module.
#[derive(Debug)]
pub struct Cubic {
    mtu: u16,
    state: State,
    /// What to return to if the current episode was spurious.
    before_episode: Option<State>,
    last_acked_at: Option<Time>,
}

/// Everything a reduction changes. Bytes; fractions matter, as one ACK may add less than one.
#[derive(Clone, Debug)]
struct State {
    window: f64,
    slow_start_threshold: f64,
    /// Window where the plateau of the curve lies.
    window_max: f64,
    /// Window just before the last reduction.
    window_prior: f64,
    /// Congestion avoidance since the last reduction.
    epoch: Option<Epoch>,
    hystart: HyStart,
}

#[derive(Clone, Debug)]
struct Epoch {
    start: Time,
    /// Seconds from `start` to the plateau.
    k: f64,
    plateau: f64,
    /// What Reno would have.
    reno: f64,
}

impl Cubic {
    /// In slow start with the initial window.
    pub fn new(mtu: u16) -> Self {
        let state = State {
            window: initial_window(mtu) as f64,
            slow_start_threshold: f64::INFINITY,
            window_max: 0.0,
            window_prior: 0.0,
            epoch: None,
            hystart: HyStart::new(),
        };
        Self { mtu, state, before_episode: None, last_acked_at: None }
    }

    fn in_slow_start(&self) -> bool {
        self.state.window < self.state.slow_start_threshold
    }

    /// RFC 9438 §5.8, RFC 9002 §7.8: was the window the limit when the newest acknowledged packet was sent? Slow start
    /// wants only half of it used, because it grows faster than a bursty application's flight follows.
    fn window_was_used(&self, acked: &Acked) -> bool {
        let used = acked.rate.in_flight_at_send as f64;
        let slack = USED_SLACK_PACKETS * f64::from(self.mtu);
        !acked.rate.app_limited
            || used + slack >= self.state.window
            || (self.in_slow_start() && 2.0 * used >= self.state.window)
    }

    fn slow_start(&mut self, acked: &Acked) {
        let state = &mut self.state;
        if let Some(rtt) = acked.rtt {
            state.hystart.on_rtt(rtt);
        }
        let grown = state.window + state.hystart.growth(acked.bytes) as f64;
        state.window = grown.min(state.slow_start_threshold);
    }

    /// RFC 9438 §4.2–4.5.
    fn avoid_congestion(&mut self, acked: &Acked) {
        let packet = f64::from(self.mtu);
        let state = &mut self.state;
        let epoch = state.epoch.get_or_insert_with(|| {
            let plateau = state.window_max.max(state.window);
            let k = ((plateau - state.window) / (C * packet)).cbrt();
            Epoch { start: acked.now, k, plateau, reno: state.window }
        });
        let curve = |t: f64| C * packet * (t - epoch.k).powi(3) + epoch.plateau;
        let t = acked.now.since(epoch.start).as_secs_f64();
        let windows_acked = acked.bytes as f64 / state.window;

        let alpha = if epoch.reno >= state.window_prior { 1.0 } else { ALPHA };
        epoch.reno += alpha * windows_acked * packet;
        if curve(t) < epoch.reno {
            state.window = state.window.max(epoch.reno);
        } else {
            let target = curve(t + acked.smoothed_rtt.as_secs_f64())
                .clamp(state.window, TARGET_MAX * state.window);
            state.window += (target - state.window) * windows_acked.min(1.0);
        }
    }

    fn reduce(&mut self) {
        let least = minimum_window(self.mtu) as f64;
        let state = &mut self.state;
        state.window_prior = state.window;
        // §4.7 fast convergence: a flow that lost below its last plateau leaves room for newer ones.
        state.window_max = if state.window < state.window_max {
            state.window * (1.0 + BETA) / 2.0
        } else {
            state.window
        };
        state.window = (state.window * BETA).max(least);
        state.slow_start_threshold = state.window;
        state.epoch = None;
    }
}

impl Controller for Cubic {
    fn on_acked(&mut self, acked: &Acked) {
        let since_last = self.last_acked_at.map_or(Duration::ZERO, |last| acked.now.since(last));
        self.last_acked_at = Some(acked.now);
        if acked.round_start && self.in_slow_start() && self.state.hystart.on_round_start() {
            self.state.slow_start_threshold = self.state.window;
        }
        if acked.in_recovery {
            return;
        }
        if !self.window_was_used(acked) {
            if let Some(epoch) = &mut self.state.epoch {
                epoch.start += since_last;
            }
            return;
        }
        if self.in_slow_start() {
            self.slow_start(acked);
        } else {
            self.avoid_congestion(acked);
        }
        self.state.window = self.state.window.min(WINDOW_BYTES_MAX as f64);
    }

    fn on_lost(&mut self, lost: &Lost) {
        if lost.new_episode {
            self.before_episode = Some(self.state.clone());
            self.reduce();
        }
        if lost.persistent_congestion {
            self.before_episode = None;
            self.state.window = minimum_window(self.mtu) as f64;
            self.state.epoch = None;
            self.state.hystart = HyStart::new();
        }
    }

    fn on_congestion_experienced(&mut self, _now: Time, new_episode: bool) {
        // A mark is no guess: nothing to take back, whatever was lost beside it.
        self.before_episode = None;
        if new_episode {
            self.reduce();
        }
    }

    fn on_spurious_episode(&mut self, _now: Time) {
        let Some(before) = self.before_episode.take() else { return };
        let window = self.state.window.max(before.window);
        self.state = State { window, ..before };
    }

    fn set_mtu(&mut self, mtu: u16) {
        let untouched = self.in_slow_start() && self.state.slow_start_threshold.is_infinite();
        let raised = mtu > self.mtu;
        self.mtu = mtu;
        let least = if untouched && raised { initial_window(mtu) } else { minimum_window(mtu) };
        self.state.window = self.state.window.max(least as f64);
        // The curve is in packets; start a new one in packets of the new size.
        self.state.epoch = None;
    }

    fn window(&self) -> u64 {
        self.state.window as u64
    }

    fn pacing_rate(&self, rtt: &Rtt) -> u64 {
        let doubling = self.in_slow_start() && !self.state.hystart.is_conservative();
        let gain = if doubling { PACING_GAIN_SLOW_START } else { PACING_GAIN };
        // RTTs are at least a microsecond, so this neither divides by zero nor leaves u64.
        ((gain * self.state.window / rtt.smoothed().as_secs_f64()) as u64).max(1)
    }
}
