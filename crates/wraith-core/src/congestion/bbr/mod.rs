//! BBRv3 (draft-ietf-ccwg-bbr, state of August 2026): a model of the path instead of a reaction to loss.
//!
//! The model is the bandwidth the path has shown to carry ([`max_bw`]) and its empty round trip ([`min_rtt`]); their
//! product is what belongs in flight. The state machine runs experiments on it: Startup doubles until the pipe is full,
//! Drain empties the queue that made, ProbeBW cruises and now and then sends a quarter faster, ProbeRTT shows the
//! path empty. Loss bounds the model: for the time being ([`short_term`]) or until a probe says otherwise ([`long_term`]).
//! Names are the draft's; its section numbers count from "Detailed Algorithm" as 5.
//!
//! Where we differ, each with its reason beside the code, and all of it in docs/SPEC.md §7: loss the path has whatever
//! we do is no signal ([`background_loss`]), a sample as low as the minimum measures the round trip ([`min_rtt`]), Startup
//! goes on in spite of loss while it still finds more ([`startup`]), faster where round trips are long ([`hurry`]) and toward
//! the rate at which its first burst arrived ([`train`]),
//! probes come sooner while they may find something ([`probe_bw`]), a standing queue counts ([`standing_queue`]), and what
//! hosts need is added to the window ([`control`]).
//!
//! Invariants: a timeout changes neither `max_bw` nor `min_rtt`; nothing acknowledged is forgotten in a pause; the window
//! holds at least [`MIN_PIPE_PACKETS`].

mod background_loss;
mod control;
mod drain;
mod extra_acked;
mod full_pipe;
mod hurry;
mod long_term;
mod max_bw;
mod min_rtt;
mod probe_bw;
mod probe_rtt;
mod round;
mod short_term;
mod standing_queue;
mod startup;
#[cfg(test)]
mod tests;
mod train;
mod undo;

use std::time::Duration;

use super::controller::{Acked, Control, Controller, Lost, Marked, Metrics};
use super::window::{initial_window, minimum_window};
use crate::Time;
use crate::measure::Rtt;
use background_loss::BackgroundLoss;
use extra_acked::ExtraAcked;
use full_pipe::FullPipe;
use hurry::Hurry;
use long_term::LongTerm;
use max_bw::MaxBw;
use min_rtt::MinRtt;
use probe_bw::Cycle;
use probe_rtt::ProbeRtt;
use round::Round;
use short_term::ShortTerm;
use standing_queue::StandingQueue;
use startup::StartupLoss;
use train::Jump;
use undo::Undo;

/// Draft: MinPipeCwnd. Two packets on the way and the ACK of two on the way back.
const MIN_PIPE_PACKETS: u64 = 4;
/// Draft: LossThresh, the most a round may lose while bandwidth is probed.
const LOSS_THRESHOLD: f64 = 0.02;
/// Draft: Beta, what remains at least of a bound after a round with loss.
const BETA: f64 = 0.7;
/// No bound.
const UNLIMITED: u64 = u64::MAX;
/// Threads that wait for a core, interrupts and batched sends delay as much as this on any host: a shorter round trip
/// says nothing about the path.
const HOST_RTT: Duration = Duration::from_millis(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBw(Phase),
    ProbeRtt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Down,
    Cruise,
    Refill,
    Up,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Bbr {
    state: State,
    mtu: u16,
    /// What may be in flight, and the largest it was before recovery or ProbeRTT made it small.
    window: u64,
    prior_window: u64,
    /// Bytes per second; zero before the first sample.
    pacing_rate: u64,
    /// Bandwidth to send at: `max_bw` within the short-term bound.
    bw: u64,
    max_bw: MaxBw,
    min_rtt: MinRtt,
    round: Round,
    full_pipe: FullPipe,
    extra_acked: ExtraAcked,
    short_term: ShortTerm,
    long_term: LongTerm,
    background: BackgroundLoss,
    startup_loss: StartupLoss,
    /// Round in which Drain began.
    drain_since: u64,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    undo: Undo,
    idle_restart: bool,
    in_recovery: bool,
    hurry: Hurry,
    jump: Jump,
    queue: StandingQueue,
    /// See [`Acked::ack_batch`].
    ack_batch: u64,
    probe_rng: ProbeRng,
}

impl Bbr {
    /// In Startup with the initial window (draft §5.2.1).
    pub fn new(now: Time, mtu: u16, seed: u64) -> Self {
        Self {
            state: State::Startup,
            mtu,
            window: initial_window(mtu),
            prior_window: 0,
            pacing_rate: 0,
            bw: 0,
            max_bw: MaxBw::default(),
            min_rtt: MinRtt::new(now),
            round: Round::default(),
            full_pipe: FullPipe::default(),
            extra_acked: ExtraAcked::new(now),
            short_term: ShortTerm::default(),
            long_term: LongTerm::default(),
            background: BackgroundLoss::default(),
            startup_loss: StartupLoss::default(),
            drain_since: 0,
            cycle: Cycle::new(now),
            probe_rtt: ProbeRtt::default(),
            undo: Undo::default(),
            idle_restart: false,
            in_recovery: false,
            hurry: Hurry::default(),
            jump: Jump::default(),
            queue: StandingQueue::default(),
            ack_batch: 0,
            probe_rng: ProbeRng(seed),
        }
    }

    /// Draft §5.2.3, UpdateModelAndState; the order matters.
    fn update_model_and_state(&mut self, acked: &Acked) {
        self.update_latest_delivery_signals(acked);
        self.update_congestion_signals(acked);
        let startup = !self.full_pipe.reached;
        self.extra_acked.update(
            acked.now,
            acked.bytes,
            self.bw,
            self.window,
            self.round.count,
            startup,
        );
        if self.round.started
            && !acked.rate.app_limited
            && let Some(rate) = acked.rate.bytes_per_second
        {
            self.full_pipe.on_round(rate);
        }
        if self.round.started && self.state == State::Startup {
            self.background.on_startup_round(self.max_bw.get(), self.mtu);
        }
        self.queue.update(acked.rtt);
        self.update_train(acked);
        self.check_hurry(acked);
        self.check_startup_done(acked);
        self.check_drain_done(acked);
        self.update_cycle(acked);
        let path_not_seen_empty = self.min_rtt.update(acked.now, acked.rtt);
        self.check_probe_rtt(acked, path_not_seen_empty);
        self.short_term.advance_latest(acked);
        self.bound_bw();
    }

    fn bound_bw(&mut self) {
        self.bw = self.max_bw.get().min(self.short_term.bw);
    }

    /// Accelerating: in these states loss is an answer, not a surprise.
    fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::ProbeBw(Phase::Refill | Phase::Up))
    }
}

impl Controller for Bbr {
    fn on_restart(&mut self, now: Time, app_limited: bool) {
        // Draft §5.4.1.
        if !app_limited {
            return;
        }
        self.idle_restart = true;
        self.extra_acked.restart(now);
        match self.state {
            State::ProbeBw(_) => self.set_pacing_rate(1.0),
            State::ProbeRtt => self.check_probe_rtt_done(now, self.probe_rtt.delivered()),
            State::Startup | State::Drain => {}
        }
    }

    fn on_acked(&mut self, acked: &Acked) {
        self.ack_batch = acked.ack_batch;
        let recovered = self.in_recovery && !acked.in_recovery;
        self.in_recovery = acked.in_recovery;
        if recovered {
            self.restore_window();
        }
        if self.max_bw.get() == 0 {
            self.window = self.window.max(self.first_window(acked.smoothed_rtt));
        }
        self.update_model_and_state(acked);
        self.update_control_parameters(acked);
    }

    fn on_lost(&mut self, lost: &Lost<'_>) {
        if lost.new_episode {
            self.save_state_upon_loss();
            self.in_recovery = true;
        }
        self.note_losses(lost);
        self.probe_lost(lost);
        if lost.persistent_congestion {
            self.save_window();
            let least = minimum_window(self.mtu).max(MIN_PIPE_PACKETS * u64::from(self.mtu));
            self.window = (lost.in_flight + u64::from(self.mtu)).max(least);
        }
    }

    fn on_congestion_experienced(&mut self, marked: &Marked) {
        // The draft names no response but wants marks treated as congestion: as loss beyond the threshold.
        if marked.new_episode {
            self.undo.forget();
            self.short_term.congested = true;
            self.probe_went_too_high(marked.now, self.target_inflight(), false);
        }
    }

    fn on_spurious_episode(&mut self, now: Time) {
        self.undo_spurious_losses(now);
    }

    fn set_mtu(&mut self, mtu: u16) {
        let untouched = self.max_bw.get() == 0 && mtu > self.mtu;
        self.mtu = mtu;
        let least = if untouched { initial_window(mtu) } else { self.min_pipe_window() };
        self.window = self.window.max(least);
    }

    fn control(&self, rtt: &Rtt) -> Control {
        self.control_for(rtt)
    }

    fn state(&self) -> &'static str {
        match self.state {
            State::Startup => "Startup",
            State::Drain => "Drain",
            State::ProbeBw(Phase::Down) => "ProbeBW_DOWN",
            State::ProbeBw(Phase::Cruise) => "ProbeBW_CRUISE",
            State::ProbeBw(Phase::Refill) => "ProbeBW_REFILL",
            State::ProbeBw(Phase::Up) => "ProbeBW_UP",
            State::ProbeRtt => "ProbeRTT",
        }
    }

    fn metrics(&self) -> Metrics {
        let known = |value: u64| (value > 0 && value != UNLIMITED).then_some(value);
        Metrics {
            bandwidth: known(self.bw),
            min_rtt: self.min_rtt.get(),
            slow_start_threshold: None,
            inflight_limit: known(self.long_term.inflight.min(self.short_term.inflight)),
            random_loss_ppm: Some((self.background.rate() * 1e6) as u32),
        }
    }
}

/// Random numbers (SplitMix64) that spread bandwidth probes, so that flows do not probe in step.
#[derive(Clone, Copy, Debug)]
struct ProbeRng(u64);

impl ProbeRng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }
}
