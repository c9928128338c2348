//! ProbeBW (draft §5.3.3): slow down and let the queue drain, cruise, refill the pipe, send a quarter faster for a while;
//! every two to three seconds, or every 63 rounds where a Reno flow would be as fast.
//!
//! Deviation: the first probes come sooner, and so do those after one that found much more. The wait grows by half with each
//! that found nothing, up to the draft's. What Startup found is a guess where loss ended it, and a path that just became
//! faster may become faster still.
//!
//! Deviation: where only the last answers to a probe, which come after its end, show that there is more, it goes on as soon as
//! its queue is gone. The path became faster while it ended, and the next may be seconds away.
//!
//! Deviation: a probe that only raises the long-term bound ends as any other once half a round trip of queue shows that there
//! is nothing more to find; the draft goes on until something is lost.

use std::time::Duration;

use super::{Bbr, Phase, State};
use crate::Time;
use crate::congestion::controller::Acked;

/// Draft §5.3.3.8: time between two probes, and how much more chance adds.
const WAIT: Duration = Duration::from_secs(2);
const WAIT_CHANCE: Duration = Duration::from_secs(1);
/// Draft §5.3.3.8: and at most so many rounds, for the sake of Reno and CUBIC.
const RENO_ROUNDS_MAX: u64 = 63;
/// A probe that finds so many times the bandwidth was worth it: nearly all that it sends beyond it, which is a quarter
/// less the pacing margin.
const FRUITFUL: f64 = 1.2;
/// The wait before the first probe as a part of the draft's, and how it grows with each that found nothing.
const EAGER_PART: f64 = 0.125;
const EAGER_GROWTH: f64 = 1.5;

/// What the ACKs that come now were sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The cycle in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cycle {
    pub(super) ack_phase: AckPhase,
    /// Losses now may be the answer to a probe that was not reacted to yet.
    pub(super) is_probe_sample: bool,
    pub(super) rounds_since_up: u64,
    since: Time,
    pub(super) wait: Duration,
    /// Probes that found nothing since the last that found more.
    fruitless: u32,
    /// `max_bw` before the probe that is in progress or whose last answers are on their way.
    before: Option<u64>,
    /// It goes on once there is no queue.
    unfinished: bool,
}

impl Cycle {
    pub(super) fn new(now: Time) -> Self {
        Self {
            ack_phase: AckPhase::Init,
            is_probe_sample: false,
            rounds_since_up: 0,
            since: now,
            wait: Duration::ZERO,
            fruitless: 0,
            before: None,
            unfinished: false,
        }
    }

    /// The probe, if there is one, is over; its last answers are on their way.
    pub(super) fn stop_probing(&mut self) {
        self.ack_phase = AckPhase::ProbeStopping;
    }

    /// The probe raised `max_bw` to `found`, and that was worth it.
    pub(super) fn is_fruitful(&self, found: u64) -> bool {
        self.before.is_some_and(|before| found as f64 >= FRUITFUL * before as f64)
    }
}

impl Bbr {
    /// StartProbeBW_DOWN.
    pub(super) fn start_down(&mut self, now: Time, delivered: u64) {
        self.short_term.reset_signals();
        self.short_term.probed_until = delivered;
        self.long_term.stop_growth();
        self.cycle.rounds_since_up = self.probe_rng.next() & 1;
        self.cycle.wait = self.pick_wait();
        self.cycle.since = now;
        self.cycle.stop_probing();
        self.round.begin(delivered);
        self.state = State::ProbeBw(Phase::Down);
    }

    /// PickProbeWait; called when the probe, if there was one, ends.
    fn pick_wait(&mut self) -> Duration {
        if self.is_up() {
            let worth_it = self.cycle.is_fruitful(self.max_bw.get());
            self.cycle.fruitless = if worth_it { 0 } else { self.cycle.fruitless + 1 };
        }
        let chance = (self.probe_rng.next() >> 11) as f64 / (1u64 << 53) as f64;
        let wait = WAIT + WAIT_CHANCE.mul_f64(chance);
        wait.mul_f64((EAGER_PART * EAGER_GROWTH.powf(f64::from(self.cycle.fruitless))).min(1.0))
    }

    /// The last answers to a probe came. It was not finished if only they show that there was more to find.
    pub(super) fn judge_probe(&mut self) {
        let late = self.cycle.fruitless > 0 && self.cycle.is_fruitful(self.max_bw.get());
        self.cycle.unfinished = late && !self.long_term.prev_too_high;
        if self.cycle.unfinished {
            self.cycle.fruitless = 0;
        } else {
            self.cycle.before = None;
        }
    }

    /// StartProbeBW_REFILL.
    pub(super) fn start_refill(&mut self, _now: Time, delivered: u64) {
        self.background.end_cycle(self.mtu);
        self.reset_short_term_model();
        self.long_term.begin_refill();
        self.cycle.ack_phase = AckPhase::Refilling;
        self.round.begin(delivered);
        self.state = State::ProbeBw(Phase::Refill);
    }

    /// StartProbeBW_UP.
    fn start_up(&mut self, acked: &Acked) {
        self.cycle.ack_phase = AckPhase::ProbeStarting;
        self.round.begin(acked.delivered);
        self.full_pipe.reset(acked.rate.bytes_per_second.unwrap_or(0));
        if !std::mem::take(&mut self.cycle.unfinished) {
            self.cycle.before = Some(self.max_bw.get());
        }
        self.state = State::ProbeBw(Phase::Up);
        self.raise_slope();
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_cycle(&mut self, acked: &Acked) {
        if !self.full_pipe.reached || self.adapt_long_term_model(acked) {
            return;
        }
        let State::ProbeBw(phase) = self.state else { return };
        match phase {
            Phase::Down | Phase::Cruise if self.is_time_to_probe(acked.now) => {
                self.start_refill(acked.now, acked.delivered);
            }
            Phase::Down if self.is_time_to_cruise(acked) => {
                self.state = State::ProbeBw(Phase::Cruise);
            }
            Phase::Down | Phase::Cruise => {}
            Phase::Refill => {
                if self.round.started {
                    self.cycle.is_probe_sample = true;
                    self.start_up(acked);
                }
            }
            Phase::Up => {
                if self.is_time_to_go_down(acked) {
                    self.long_term.prev_too_high = false;
                    self.start_down(acked.now, acked.delivered);
                }
            }
        }
    }

    /// IsTimeToProbeBW, with IsRenoCoexistenceProbeTime.
    fn is_time_to_probe(&self, now: Time) -> bool {
        if self.background.in_trial() {
            return false;
        }
        let reno_rounds = (self.target_inflight() / u64::from(self.mtu)).min(RENO_ROUNDS_MAX);
        now > self.cycle.since + self.cycle.wait
            || self.cycle.rounds_since_up >= reno_rounds
            || (self.cycle.unfinished && !self.is_queueing())
    }

    /// IsTimeToCruise.
    fn is_time_to_cruise(&self, acked: &Acked) -> bool {
        acked.in_flight <= self.inflight_with_headroom()
            && acked.in_flight <= self.inflight(self.max_bw.get(), 1.0)
    }

    /// IsTimeToGoDown.
    fn is_time_to_go_down(&mut self, acked: &Acked) -> bool {
        // Up to a send quantum of the window stays unused until it can be sent whole.
        let reached = acked.prior_in_flight.saturating_add(self.deferred());
        if self.long_term.prev_too_high && reached >= self.long_term.inflight {
            self.long_term.prev_precautionary = true;
            return true;
        }
        if acked.window_limited && self.window >= self.long_term.inflight && !self.is_overfull() {
            // Not the path but the bound was the limit; see what raising it gives.
            self.full_pipe.reset(acked.rate.bytes_per_second.unwrap_or(0));
            return false;
        }
        self.full_pipe.now
    }
}
