//! BBRv3 (draft-ietf-ccwg-bbr, state of August 2026): models the path instead of reacting to loss.
//!
//! The model consists of the path's proven bandwidth ([`max_bw`]) and its empty round trip
//! ([`min_rtt`]). Their product is the target for bytes in flight. The state machine probes the
//! path:
//!
//! - Startup doubles the rate until the pipe is full.
//! - Drain empties the queue of Startup.
//! - ProbeBW cruises, and periodically sends a quarter faster.
//! - ProbeRTT empties the path.
//!
//! Loss bounds the model, either temporarily ([`short_term`]) or until a probe succeeds
//! ([`long_term`]).
//!
//! Functions and variables have the draft's names in Rust's spelling. Section numbers are the
//! draft's, in which "Detailed Algorithm" is section 5. Everything beyond the draft is in
//! [`extensions`], and docs/SPEC.md §7 lists it.
//!
//! Invariants:
//!
//! - A timeout changes neither `max_bw` nor `min_rtt`.
//! - During a pause, no value that was learned from acknowledgements expires.
//! - The window is at least [`MIN_PIPE_CWND_PACKETS`].

mod control;
mod drain;
mod extensions;
mod extra_acked;
mod full_bw;
mod long_term;
mod max_bw;
mod min_rtt;
mod probe_bw;
mod probe_rng;
mod probe_rtt;
mod round;
mod short_term;
mod startup;
#[cfg(test)]
mod tests;
mod undo;

use super::controller::{Acked, Control, Controller, Lost, Marked, Metrics};
use super::window::{initial_window, minimum_window};
use crate::Time;
use crate::measure::Rtt;
use extensions::early_probes::EarlyProbes;
use extensions::fast_startup::FastStartup;
use extensions::jump_start::JumpStart;
use extensions::persistent_queue::PersistentQueue;
use extensions::probe_losses::ProbeLosses;
use extensions::random_loss::RandomLoss;
use extensions::rough_bound::RoughBound;
use extensions::unfinished_probe::UnfinishedProbe;
use extra_acked::ExtraAcked;
use full_bw::FullBw;
use long_term::LongTerm;
use max_bw::MaxBw;
use min_rtt::MinRtt;
use probe_bw::Cycle;
use probe_rng::ProbeRng;
use probe_rtt::ProbeRtt;
use round::Round;
use short_term::ShortTerm;
use startup::StartupLoss;
use undo::Undo;

/// Draft: MinPipeCwnd, in packets. Two packets in flight, and the ACK of two on its way back.
const MIN_PIPE_CWND_PACKETS: u64 = 4;
/// Draft: LossThresh, the fraction of a round that may be lost during a bandwidth probe.
const LOSS_THRESH: f64 = 0.02;
/// Draft: Beta, the minimum fraction of a bound that remains after a round with loss.
const BETA: f64 = 0.7;
/// The value of an absent bound.
const UNLIMITED: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BbrState {
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

/// The BBRv3 controller (see the module head).
#[derive(Clone, Debug)]
pub struct Bbr {
    state: BbrState,
    mtu: u16,
    /// Congestion window, in bytes.
    cwnd: u64,
    /// The largest `cwnd` before recovery or ProbeRTT reduced it.
    prior_cwnd: u64,
    /// Pacing rate in bytes per second; zero before the first sample.
    pacing_rate: u64,
    /// Bandwidth to send at: `max_bw` within the short-term bound.
    bw: u64,
    max_bw: MaxBw,
    min_rtt: MinRtt,
    round: Round,
    full_bw: FullBw,
    extra_acked: ExtraAcked,
    short_term: ShortTerm,
    long_term: LongTerm,
    startup_loss: StartupLoss,
    drain_start_round: u64,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    undo: Undo,
    idle_restart: bool,
    in_recovery: bool,
    /// Bytes for which the peer may delay an ACK ([`Acked::ack_batch`]).
    ack_batch: u64,
    probe_rng: ProbeRng,
    // State of the extensions.
    random_loss: RandomLoss,
    probe_losses: ProbeLosses,
    rough_bound: RoughBound,
    fast_startup: FastStartup,
    jump_start: JumpStart,
    persistent_queue: PersistentQueue,
    early_probes: EarlyProbes,
    unfinished_probe: UnfinishedProbe,
}

impl Bbr {
    /// Creates a controller in Startup with the initial window (draft §5.2.1).
    pub fn new(now: Time, mtu: u16, seed: u64) -> Self {
        Self {
            state: BbrState::Startup,
            mtu,
            cwnd: initial_window(mtu),
            prior_cwnd: 0,
            pacing_rate: 0,
            bw: 0,
            max_bw: MaxBw::default(),
            min_rtt: MinRtt::new(now),
            round: Round::default(),
            full_bw: FullBw::default(),
            extra_acked: ExtraAcked::new(now),
            short_term: ShortTerm::default(),
            long_term: LongTerm::default(),
            startup_loss: StartupLoss::default(),
            drain_start_round: 0,
            cycle: Cycle::new(now),
            probe_rtt: ProbeRtt::default(),
            undo: Undo::default(),
            idle_restart: false,
            in_recovery: false,
            ack_batch: 0,
            probe_rng: ProbeRng(seed),
            random_loss: RandomLoss::default(),
            probe_losses: ProbeLosses::default(),
            rough_bound: RoughBound::default(),
            fast_startup: FastStartup::default(),
            jump_start: JumpStart::default(),
            persistent_queue: PersistentQueue::default(),
            early_probes: EarlyProbes::default(),
            unfinished_probe: UnfinishedProbe::default(),
        }
    }

    /// UpdateModelAndState (draft §5.2.3); the order matters.
    fn update_model_and_state(&mut self, acked: &Acked) {
        self.update_latest_delivery_signals(acked);
        self.update_congestion_signals(acked);
        let startup = !self.full_bw.reached;
        self.extra_acked.update(
            acked.now,
            acked.bytes,
            self.bw,
            self.cwnd,
            self.round.round_count,
            startup,
        );
        if self.round.round_start
            && !acked.rate.app_limited
            && let Some(rate) = acked.rate.bytes_per_second
        {
            self.full_bw.on_round(rate);
        }
        if self.round.round_start && self.state == BbrState::Startup {
            self.random_loss.on_startup_round(self.max_bw.get(), self.mtu);
        }
        self.persistent_queue.update(acked.rtt);
        self.update_train(acked);
        self.check_fast_startup(acked);
        self.check_startup_done(acked);
        self.check_drain_done(acked);
        self.update_probe_bw_cycle_phase(acked);
        let path_not_seen_empty = self.min_rtt.update(acked.now, acked.rtt);
        self.check_probe_rtt(acked, path_not_seen_empty);
        self.short_term.advance_latest_delivery_signals(acked);
        self.bound_bw_for_model();
    }

    fn bound_bw_for_model(&mut self) {
        self.bw = self.max_bw.get().min(self.short_term.bw_shortterm);
    }

    /// Returns true in the accelerating states, in which loss is an expected answer.
    fn is_probing_bw(&self) -> bool {
        matches!(self.state, BbrState::Startup | BbrState::ProbeBw(Phase::Refill | Phase::Up))
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
            BbrState::ProbeBw(_) => self.set_pacing_rate_with_gain(1.0),
            BbrState::ProbeRtt => self.check_probe_rtt_done(now, self.probe_rtt.delivered()),
            BbrState::Startup | BbrState::Drain => {}
        }
    }

    fn on_acked(&mut self, acked: &Acked) {
        self.ack_batch = acked.ack_batch;
        let recovered = self.in_recovery && !acked.in_recovery;
        self.in_recovery = acked.in_recovery;
        if recovered {
            self.restore_cwnd();
        }
        if self.max_bw.get() == 0 {
            self.cwnd = self.cwnd.max(self.first_window(acked.smoothed_rtt));
        }
        self.update_model_and_state(acked);
        self.update_control_parameters(acked);
    }

    fn on_lost(&mut self, lost: &Lost<'_>) {
        if lost.new_episode {
            self.save_state_upon_loss();
            self.in_recovery = true;
        }
        self.note_loss(lost);
        self.handle_lost_packets(lost);
        if lost.persistent_congestion {
            self.save_cwnd();
            let least = minimum_window(self.mtu).max(MIN_PIPE_CWND_PACKETS * u64::from(self.mtu));
            self.cwnd = (lost.in_flight + u64::from(self.mtu)).max(least);
        }
    }

    fn on_congestion_experienced(&mut self, marked: &Marked) {
        self.respond_to_marks(marked);
    }

    fn on_spurious_episode(&mut self, _now: Time) {
        self.handle_spurious_loss_detection();
    }

    fn set_mtu(&mut self, mtu: u16) {
        let untouched = self.max_bw.get() == 0 && mtu > self.mtu;
        self.mtu = mtu;
        let least = if untouched { initial_window(mtu) } else { self.min_pipe_cwnd() };
        self.cwnd = self.cwnd.max(least);
    }

    fn control(&self, rtt: &Rtt) -> Control {
        self.control_for(rtt)
    }

    fn state(&self) -> &'static str {
        match self.state {
            BbrState::Startup => "Startup",
            BbrState::Drain => "Drain",
            BbrState::ProbeBw(Phase::Down) => "ProbeBW_DOWN",
            BbrState::ProbeBw(Phase::Cruise) => "ProbeBW_CRUISE",
            BbrState::ProbeBw(Phase::Refill) => "ProbeBW_REFILL",
            BbrState::ProbeBw(Phase::Up) => "ProbeBW_UP",
            BbrState::ProbeRtt => "ProbeRTT",
        }
    }

    fn metrics(&self) -> Metrics {
        let known = |value: u64| (value > 0 && value != UNLIMITED).then_some(value);
        Metrics {
            bandwidth: known(self.bw),
            min_rtt: self.min_rtt.get(),
            slow_start_threshold: None,
            inflight_limit: known(
                self.long_term.inflight_longterm.min(self.short_term.inflight_shortterm),
            ),
            random_loss_ppm: Some((self.random_loss.rate() * 1e6) as u32),
        }
    }
}
