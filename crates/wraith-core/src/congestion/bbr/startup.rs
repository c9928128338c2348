//! Startup (draft §5.3.1): double the rate each round until the pipe is full, as a plateau of the delivery rate or as loss
//! says.
//!
//! Deviation: loss ends Startup only in a round that found no quarter more bandwidth, unless it is far beyond what
//! a path loses by chance, and without a standing queue it must be more than that too; where the application limits the samples, so that there is no plateau to see, a middling
//! loss decides. On a path that loses two percent anyway the draft's Startup ends at a fraction of the bandwidth.
//!
//! Deviation: where the round trip is long, a first window is what a few Mbit/s carry in it: what is sent at once stays
//! what a short path gets in the same time. And it grows faster, see `hurry`.

use std::time::Duration;

use super::{Bbr, LOSS_THRESHOLD, Phase, State};
use crate::congestion::controller::{Acked, Lost};
use crate::congestion::window::initial_window;

/// Draft: BBRStartupFullLossCnt, runs of lost packets that a round needs to count as lossy.
const LOST_RUNS: u32 = 6;
/// Loss that ends Startup whatever else it finds: a queue that overflows loses this, chance rarely.
const LOSS_CERTAIN: f64 = 0.25;
/// Loss that ends it where the rate grew no more but round trips show no queue.
const LOSS_WITHOUT_QUEUE: f64 = 0.15;
/// Loss that ends it when the application limits the samples.
const LOSS_APP_LIMITED: f64 = 0.08;

/// Bytes per second that the first window allows for: 5 Mbit/s, less than it is on any path of 50 ms.
const FIRST_RATE: f64 = 625_000.0;
/// Bytes of the first window at most.
const FIRST_WINDOW_MAX: u64 = 256 * 1024;

/// Losses of the round in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StartupLoss {
    runs: u32,
    newest: Option<u64>,
}

impl Bbr {
    /// Draft §5.3.1.1.
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    /// Bytes in flight before anything is known but a round trip.
    pub(super) fn first_window(&self, rtt: Duration) -> u64 {
        let volume = (FIRST_RATE * rtt.as_secs_f64()) as u64;
        initial_window(self.mtu).max(volume.min(FIRST_WINDOW_MAX))
    }

    /// Counts runs of lost packets.
    pub(super) fn note_startup_losses(&mut self, lost: &Lost<'_>) {
        for packet in lost.packets {
            let continued = self.startup_loss.newest.is_some_and(|newest| newest + 1 == packet.pn);
            self.startup_loss.runs += u32::from(!continued);
            self.startup_loss.newest = Some(packet.pn);
        }
    }

    /// Draft §5.3.1.1, CheckStartupDone.
    pub(super) fn check_startup_done(&mut self, acked: &Acked) {
        self.check_startup_high_loss(acked);
        if self.state == State::Startup && self.full_pipe.reached {
            self.enter_drain();
        }
    }

    /// Draft §5.3.1.3.
    fn check_startup_high_loss(&mut self, acked: &Acked) {
        if !self.short_term.round_started {
            return;
        }
        let runs = std::mem::take(&mut self.startup_loss.runs);
        if self.state != State::Startup || self.full_pipe.reached || runs < LOST_RUNS {
            return;
        }
        if self.is_after_failed_jump() {
            return;
        }
        let rate = &acked.rate;
        let lost = rate.lost as f64 / rate.in_flight_at_send.max(1) as f64;
        let enough = if rate.app_limited {
            LOSS_APP_LIMITED
        } else if self.full_pipe.count > 0 && self.is_queueing() {
            LOSS_THRESHOLD
        } else if self.full_pipe.count > 0 {
            LOSS_WITHOUT_QUEUE
        } else {
            LOSS_CERTAIN
        };
        if lost <= enough + self.background.rate() {
            return;
        }
        self.undo.state = Some(State::Startup);
        self.full_pipe.now = true;
        self.full_pipe.reached = true;
        self.long_term.rough = true;
        self.long_term.inflight = self.bdp(1.0).max(self.short_term.inflight_latest);
    }

    /// True in the states that undo returns to by a new probe.
    pub(super) fn is_up(&self) -> bool {
        self.state == State::ProbeBw(Phase::Up)
    }
}
