//! ProbeBW (draft §5.3.3): slows down to drain the queue, cruises, refills the pipe, then sends a
//! quarter faster for a while. A cycle takes two to three seconds. It is shorter if a Reno flow
//! would grow back earlier: as many rounds as the target has packets, at most 63.
//!
//! [`early_probes`](super::extensions::early_probes) shortens the wait.
//! [`unfinished_probe`](super::extensions::unfinished_probe) continues a probe that ended too
//! early. [`persistent_queue`](super::extensions::persistent_queue) ends a probe that only raises
//! the long-term bound.

use std::time::Duration;

use super::{Bbr, BbrState, Phase};
use crate::Time;
use crate::congestion::controller::Acked;

/// Draft §5.3.3.8: minimum time between two probes.
const WAIT: Duration = Duration::from_secs(2);
/// Draft §5.3.3.8: maximum random addition to it.
const WAIT_CHANCE: Duration = Duration::from_secs(1);
/// Draft §5.3.3.8: maximum number of rounds between two probes, for coexistence with Reno and
/// CUBIC.
const RENO_ROUNDS_MAX: u64 = 63;

/// The phase in which the packets acknowledged now were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The current cycle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    /// Losses may be the result of a probe that has had no response yet.
    pub(super) bw_probe_samples: bool,
    pub(super) rounds_since_bw_probe: u64,
    cycle_stamp: Time,
    pub(super) bw_probe_wait: Duration,
}

impl Cycle {
    pub(super) fn new(now: Time) -> Self {
        Self {
            ack_phase: AckPhase::Init,
            bw_probe_samples: false,
            rounds_since_bw_probe: 0,
            cycle_stamp: now,
            bw_probe_wait: Duration::ZERO,
        }
    }

    /// Ends the probe, if any; its last ACKs are still on their way.
    pub(super) fn stop_probing(&mut self) {
        self.ack_phase = AckPhase::ProbeStopping;
    }
}

impl Bbr {
    /// StartProbeBW_DOWN.
    pub(super) fn start_probe_bw_down(&mut self, now: Time, delivered: u64) {
        self.short_term.reset_congestion_signals();
        self.probe_losses.end_probe(delivered);
        self.long_term.stop_growth();
        self.cycle.rounds_since_bw_probe = self.probe_rng.next() & 1;
        self.cycle.bw_probe_wait = self.pick_probe_wait();
        self.cycle.cycle_stamp = now;
        self.cycle.stop_probing();
        self.round.begin(delivered);
        self.state = BbrState::ProbeBw(Phase::Down);
    }

    /// PickProbeWait; called when the probe, if any, ends.
    fn pick_probe_wait(&mut self) -> Duration {
        if self.is_up() {
            self.count_probe();
        }
        let chance = (self.probe_rng.next() >> 11) as f64 / (1u64 << 53) as f64;
        self.shorten_probe_wait(WAIT + WAIT_CHANCE.mul_f64(chance))
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_probe_bw_refill(&mut self, delivered: u64) {
        self.random_loss.end_cycle(self.mtu);
        self.reset_short_term_model();
        self.long_term.begin_refill(self.rough_bound.take_rounds_ahead());
        self.cycle.ack_phase = AckPhase::Refilling;
        self.round.begin(delivered);
        self.state = BbrState::ProbeBw(Phase::Refill);
    }

    /// StartProbeBW_UP.
    fn start_probe_bw_up(&mut self, acked: &Acked) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.round.begin(acked.delivered);
        self.full_bw.reset(acked.rate.bytes_per_second.unwrap_or(0));
        if !self.unfinished_probe.take() {
            self.early_probes.begin(self.max_bw.get());
        }
        self.state = BbrState::ProbeBw(Phase::Up);
        self.raise_inflight_longterm_slope();
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_probe_bw_cycle_phase(&mut self, acked: &Acked) {
        if !self.full_bw.reached || self.adapt_long_term_model(acked) {
            return;
        }
        let BbrState::ProbeBw(phase) = self.state else { return };
        match phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe_bw(acked.now) => {
                self.start_probe_bw_refill(acked.delivered);
            }
            Phase::Down if self.is_time_to_cruise(acked) => {
                self.state = BbrState::ProbeBw(Phase::Cruise);
            }
            Phase::Down | Phase::Cruise => {}
            Phase::Refill => {
                if self.round.round_start {
                    self.cycle.bw_probe_samples = true;
                    self.start_probe_bw_up(acked);
                }
            }
            Phase::Up => {
                if self.is_time_to_go_down(acked) {
                    self.long_term.prev_too_high = false;
                    self.start_probe_bw_down(acked.now, acked.delivered);
                }
            }
        }
    }

    /// IsTimeToProbeBW, with IsRenoCoexistenceProbeTime.
    fn is_time_to_probe_bw(&self, now: Time) -> bool {
        if self.random_loss.in_trial() {
            return false;
        }
        let reno_rounds = (self.target_inflight() / u64::from(self.mtu)).min(RENO_ROUNDS_MAX);
        now > self.cycle.cycle_stamp + self.cycle.bw_probe_wait
            || self.cycle.rounds_since_bw_probe >= reno_rounds
            || self.is_time_to_go_on()
    }

    /// IsTimeToCruise.
    fn is_time_to_cruise(&self, acked: &Acked) -> bool {
        acked.in_flight <= self.inflight_with_headroom()
            && acked.in_flight <= self.inflight(self.max_bw.get(), 1.0)
    }

    /// IsTimeToGoDown.
    fn is_time_to_go_down(&mut self, acked: &Acked) -> bool {
        // Part of the window stays unused until a whole send quantum fits.
        let reached = acked.prior_in_flight.saturating_add(self.deferred());
        if self.long_term.prev_too_high && reached >= self.long_term.inflight_longterm {
            self.long_term.prev_precautionary = true;
            return true;
        }
        if acked.window_limited
            && self.cwnd >= self.long_term.inflight_longterm
            && !self.is_overfull()
        {
            // The bound was the limit, not the path, so raise it and continue.
            self.full_bw.reset(acked.rate.bytes_per_second.unwrap_or(0));
            return false;
        }
        self.full_bw.now
    }
}
