//! CUBIC (RFC 9438), in bytes, with HyStart++ for slow start.
//!
//! After a reduction, the window follows `W(t) = C·(t − K)³ + W_max`: fast towards the window of
//! the last loss, slowly around it, fast beyond. It is never slower than Reno (§4.3). While the
//! sender does not use the whole window, the window does not grow, and `t` excludes that time
//! (§5.8). There is one reduction per recovery episode. If every loss of the episode was
//! reordering, the earlier state is restored (§4.9).

use std::time::Duration;

use super::controller::{Acked, Control, Controller, Lost, Marked, Metrics};
use super::hystart::HyStart;
use super::window::{WINDOW_BYTES_MAX, initial_window, minimum_window};
use crate::Time;
use crate::measure::Rtt;

/// Multiplicative decrease factor (RFC 9438 §4.6).
const BETA: f64 = 0.7;
/// Multiplicative decrease factor after an ECN CE mark (RFC 8511 §3). Queues that mark stay short,
/// so a reduction as after a loss would leave the link idle.
const BETA_ECN: f64 = 0.85;
/// Scaling constant (RFC 9438 §4.1), in packets per second cubed.
const C: f64 = 0.4;
/// Reno-friendly increase that is fair at this BETA (RFC 9438 §4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Maximum target, as a multiple of the window (RFC 9438 §4.2).
const TARGET_MAX: f64 = 1.5;
/// Pacing gain. RFC 9002 §7.7 requires N > 1, so that the whole window is used in spite of late
/// timers.
const PACING_GAIN: f64 = 1.25;
/// Pacing gain in slow start, which doubles per round trip: twice the window must leave in one.
const PACING_GAIN_SLOW_START: f64 = 2.0;
/// ACKs requested per window.
const ACKS_PER_WINDOW: u64 = 8;
/// Unused packets with which a window is still treated as used: a send quantum that did not fit
/// stays behind.
const USED_SLACK_PACKETS: f64 = 3.0;

/// The CUBIC controller (see the module head).
#[derive(Debug)]
pub struct Cubic {
    mtu: u16,
    state: CubicState,
    /// State to restore if the current episode was spurious.
    before_episode: Option<CubicState>,
    last_acked_at: Option<Time>,
    /// Bytes that the path carried in the last round trip: delivery rate times RTT. Zero before the
    /// first measurement.
    proven_flight: f64,
}

/// State that a reduction changes. Values are bytes; fractions matter, because one ACK may add less
/// than one byte.
#[derive(Clone, Debug)]
struct CubicState {
    window: f64,
    slow_start_threshold: f64,
    /// Window at the plateau of the curve.
    window_max: f64,
    /// Window before the last reduction.
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
    /// Window that Reno would have.
    reno: f64,
}

impl Cubic {
    /// Creates a controller in slow start with the initial window.
    pub fn new(mtu: u16) -> Self {
        let state = CubicState {
            window: initial_window(mtu) as f64,
            slow_start_threshold: f64::INFINITY,
            window_max: 0.0,
            window_prior: 0.0,
            epoch: None,
            hystart: HyStart::new(),
        };
        Self { mtu, state, before_episode: None, last_acked_at: None, proven_flight: 0.0 }
    }

    fn window(&self) -> u64 {
        self.state.window as u64
    }

    fn in_slow_start(&self) -> bool {
        self.state.window < self.state.slow_start_threshold
    }

    /// Returns true if the window was the limit when the newest acknowledged packet was sent (RFC
    /// 9438 §5.8, RFC 9002 §7.8). In slow start, half of the window suffices, because it grows
    /// faster than a bursty application's flight.
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

    /// Congestion avoidance (RFC 9438 §4.2–4.5).
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

    fn reduce(&mut self, refused_flight: f64, beta: f64) {
        let least = minimum_window(self.mtu) as f64;
        let overshot = self.in_slow_start();
        let state = &mut self.state;
        if overshot {
            // Slow start doubled the window since the lost packet was sent. A reduction of the full
            // window would therefore lose again in the next round. The flight that overflowed, or
            // the path's delivery since then, is a lower bound of the path's capacity. Reduce to
            // that.
            let flight = refused_flight.max(self.proven_flight) / BETA;
            state.window = state.window.min(flight).max(least);
        }
        state.window_prior = state.window;
        // §4.7 fast convergence: a flow with a loss below its last plateau leaves room for newer
        // flows.
        state.window_max = if state.window < state.window_max {
            state.window * (1.0 + beta) / 2.0
        } else {
            state.window
        };
        state.window = (state.window * beta).max(least);
        state.slow_start_threshold = state.window;
        state.epoch = None;
    }
}

impl Controller for Cubic {
    fn on_acked(&mut self, acked: &Acked) {
        let since_last = self.last_acked_at.map_or(Duration::ZERO, |last| acked.now.since(last));
        self.last_acked_at = Some(acked.now);
        if let (Some(rate), false) = (acked.rate.bytes_per_second, acked.rate.app_limited) {
            self.proven_flight = rate as f64 * acked.smoothed_rtt.as_secs_f64();
        }
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

    fn on_lost(&mut self, lost: &Lost<'_>) {
        if lost.new_episode {
            self.before_episode = Some(self.state.clone());
            self.reduce(lost.in_flight_at_send as f64, BETA);
        }
        if lost.persistent_congestion {
            self.before_episode = None;
            self.state.window = minimum_window(self.mtu) as f64;
            self.state.epoch = None;
            self.state.hystart = HyStart::new();
        }
    }

    fn on_congestion_experienced(&mut self, marked: &Marked) {
        // A mark is certain: it cannot turn out spurious, unlike losses beside it.
        self.before_episode = None;
        if marked.new_episode {
            // Slow start doubled the window since the marked packet left, so in slow start a mark
            // counts as a loss.
            let beta = if self.in_slow_start() { BETA } else { BETA_ECN };
            self.reduce(self.state.window, beta);
        }
    }

    fn on_spurious_episode(&mut self, _now: Time) {
        let Some(before) = self.before_episode.take() else { return };
        let window = self.state.window.max(before.window);
        self.state = CubicState { window, ..before };
    }

    fn set_mtu(&mut self, mtu: u16) {
        let untouched = self.in_slow_start() && self.state.slow_start_threshold.is_infinite();
        let raised = mtu > self.mtu;
        self.mtu = mtu;
        let least = if untouched && raised { initial_window(mtu) } else { minimum_window(mtu) };
        self.state.window = self.state.window.max(least as f64);
        // The curve is in packets, so it restarts in packets of the new size.
        self.state.epoch = None;
    }

    fn control(&self, rtt: &Rtt) -> Control {
        let doubling = self.in_slow_start() && !self.state.hystart.is_conservative();
        let gain = if doubling { PACING_GAIN_SLOW_START } else { PACING_GAIN };
        // RTTs are at least a microsecond, so this neither divides by zero nor overflows u64.
        let rate = ((gain * self.state.window / rtt.smoothed().as_secs_f64()) as u64).max(1);
        Control { acks_per_window: ACKS_PER_WINDOW, ..Control::new(self.window(), rate, self.mtu) }
    }

    fn state(&self) -> &'static str {
        match (self.in_slow_start(), self.state.hystart.is_conservative()) {
            (true, false) => "SlowStart",
            (true, true) => "ConservativeSlowStart",
            (false, _) => "CongestionAvoidance",
        }
    }

    fn metrics(&self) -> Metrics {
        let threshold = self.state.slow_start_threshold;
        Metrics {
            slow_start_threshold: threshold.is_finite().then_some(threshold as u64),
            ..Metrics::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::RateSample;

    const MTU: u16 = 1000;
    const RTT: Duration = Duration::from_millis(100);

    fn acked(now: Time, bytes: u64) -> Acked {
        Acked::new(now, bytes, RTT)
    }

    fn lost(now: Time, in_flight_at_send: u64) -> Lost<'static> {
        Lost { bytes: u64::from(MTU), in_flight_at_send, ..Lost::new(now, &[]) }
    }

    /// Uses the whole window for `rounds` round trips, with a few ACKs each. Returns the end time.
    fn run(cubic: &mut Cubic, mut now: Time, rounds: u32) -> Time {
        for _ in 0..rounds * 10 {
            now += RTT / 10;
            cubic.on_acked(&acked(now, cubic.window() / 10));
        }
        now
    }

    /// Returns a controller in congestion avoidance, right after a reduction from `packets`.
    fn reduced_from(packets: u64) -> (Cubic, Time) {
        let mut cubic = Cubic::new(MTU);
        let mut now = Time::ZERO;
        while cubic.window() < packets * 1000 {
            now += RTT;
            let bytes = cubic.window().min(packets * 1000 - cubic.window());
            cubic.on_acked(&acked(now, bytes));
        }
        cubic.on_lost(&lost(now, packets * 1000));
        (cubic, now)
    }

    #[test]
    fn slow_start_doubles_in_a_round_trip() {
        let mut cubic = Cubic::new(MTU);
        let before = cubic.window();
        cubic.on_acked(&acked(Time::ZERO + RTT, before));
        assert_eq!(cubic.window(), 2 * before);
    }

    #[test]
    fn a_loss_leaves_seven_tenths_and_the_curve_is_back_after_k() {
        let (mut cubic, now) = reduced_from(1000);
        assert_eq!(cubic.window(), 700_000);
        // RFC 9438 §4.2: K = cbrt((W_max - cwnd) / C), here cbrt(300 / 0.4) = 9.09 s.
        run(&mut cubic, now, 91);
        assert!(cubic.window().abs_diff(1_000_000) < 5_000, "{}", cubic.window());
        let (mut cubic, now) = reduced_from(1000);
        run(&mut cubic, now, 45);
        let halfway = 1_000_000.0 - 0.4 * 1000.0 * (9.09f64 - 4.5).powi(3);
        assert!(cubic.window().abs_diff(halfway as u64) < 10_000, "{}", cubic.window());
    }

    #[test]
    fn a_small_window_grows_as_reno_would() {
        let (mut cubic, now) = reduced_from(40);
        run(&mut cubic, now, 20);
        // §4.3: about half a packet per round trip until the old window, a whole one beyond it.
        assert!(cubic.window() > 28_000 + 20 * 500, "{}", cubic.window());
    }

    #[test]
    fn losing_below_the_last_plateau_leaves_room_for_others() {
        let (mut cubic, now) = reduced_from(1000);
        cubic.on_lost(&lost(now + RTT, 700_000));
        assert!(cubic.window().abs_diff(490_000) <= 1);
        assert_eq!(cubic.state.window_max, 700_000.0 * 0.85);
    }

    #[test]
    fn slow_start_that_overshot_is_reduced_from_what_was_refused() {
        let mut cubic = Cubic::new(MTU);
        let mut now = Time::ZERO;
        while cubic.window() < 1_000_000 {
            now += RTT;
            cubic.on_acked(&acked(now, cubic.window()));
        }
        let window = cubic.window();
        cubic.on_lost(&lost(now, window / 2));
        assert_eq!(cubic.window(), window / 2);
    }

    #[test]
    fn an_unused_window_does_not_grow_and_that_time_does_not_count() {
        let (mut used, now) = reduced_from(1000);
        let (mut unused, _) = reduced_from(1000);
        let now = run(&mut used, now, 10);
        run(&mut unused, now - RTT * 10, 10);
        let before = unused.window();
        let mut later = now;
        for _ in 0..1000 {
            later += RTT;
            let mut idle = acked(later, 2000);
            idle.rate = RateSample { app_limited: true, in_flight_at_send: 2000, ..idle.rate };
            unused.on_acked(&idle);
        }
        assert_eq!(unused.window(), before);
        run(&mut used, now, 20);
        run(&mut unused, later, 20);
        assert!(used.window().abs_diff(unused.window()) < 3000);
    }

    #[test]
    fn an_application_that_fills_half_the_window_in_bursts_still_leaves_slow_start_running() {
        let mut cubic = Cubic::new(MTU);
        let before = cubic.window();
        let mut bursty = acked(Time::ZERO + RTT, before / 2);
        bursty.rate =
            RateSample { app_limited: true, in_flight_at_send: before / 2, ..bursty.rate };
        cubic.on_acked(&bursty);
        assert!(cubic.window() > before);
    }

    #[test]
    fn a_mark_takes_half_as_much_as_a_loss_and_once_in_an_episode() {
        let (mut cubic, now) = reduced_from(1000);
        cubic.on_congestion_experienced(&Marked::new(now + RTT));
        assert_eq!(cubic.window(), 595_000);
        cubic.on_congestion_experienced(&Marked { new_episode: false, ..Marked::new(now + RTT) });
        assert_eq!(cubic.window(), 595_000);
        let mut starting = Cubic::new(MTU);
        let before = starting.window();
        starting.on_congestion_experienced(&Marked::new(now));
        assert!(!starting.in_slow_start() && starting.window() < before);
    }

    #[test]
    fn nothing_grows_in_recovery() {
        let (mut cubic, now) = reduced_from(100);
        let window = cubic.window();
        cubic.on_acked(&Acked { in_recovery: true, ..acked(now, 50_000) });
        assert_eq!(cubic.window(), window);
    }

    #[test]
    fn a_spurious_episode_leaves_no_trace_and_is_forgiven_once() {
        let mut cubic = Cubic::new(MTU);
        let now = run(&mut cubic, Time::ZERO, 5);
        let (window, slow_start) = (cubic.window(), cubic.in_slow_start());
        cubic.on_lost(&lost(now, window));
        cubic.on_spurious_episode(now + RTT);
        assert_eq!((cubic.window(), cubic.in_slow_start()), (window, slow_start));
        cubic.on_lost(&lost(now + RTT * 2, window));
        cubic.on_congestion_experienced(&Marked {
            new_episode: false,
            ..Marked::new(now + RTT * 2)
        });
        let reduced = cubic.window();
        cubic.on_spurious_episode(now + RTT * 3);
        assert_eq!(cubic.window(), reduced, "a mark is never spurious");
    }

    #[test]
    fn persistent_congestion_starts_over_and_the_window_never_falls_below_two_packets() {
        let (mut cubic, mut now) = reduced_from(1000);
        cubic.on_lost(&Lost { persistent_congestion: true, ..lost(now, 700_000) });
        assert_eq!(cubic.window(), 2000);
        assert!(cubic.in_slow_start());
        for _ in 0..100 {
            now += RTT;
            cubic.on_lost(&lost(now, 0));
            assert_eq!(cubic.window(), 2000);
        }
    }

    #[test]
    fn growth_ends_at_the_ceiling() {
        let mut cubic = Cubic::new(MTU);
        let mut now = Time::ZERO;
        for _ in 0..100 {
            now += RTT;
            cubic.on_acked(&acked(now, cubic.window()));
        }
        assert_eq!(cubic.window(), WINDOW_BYTES_MAX);
    }
}
