//! ProbeRTT (draft §5.3.4): halves the bytes in flight for a moment, so that the queue empties and
//! the path's round trip becomes visible.

use std::time::Duration;

use super::{Bbr, BbrState, Phase, UNLIMITED};
use crate::Time;
use crate::congestion::controller::Acked;

/// Draft: ProbeRTTCwndGain, the fraction of the bandwidth-delay product that stays in flight.
pub(super) const CWND_GAIN: f64 = 0.5;
/// Draft: ProbeRTTDuration.
const DURATION: Duration = Duration::from_millis(200);

/// Progress of a ProbeRTT.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// End time; set once few enough bytes are in flight.
    done_at: Option<Time>,
    round_done: bool,
    delivered: u64,
}

impl ProbeRtt {
    /// Returns the bytes delivered at the last ACK in ProbeRTT.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }
}

impl Bbr {
    /// CheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, acked: &Acked, path_not_seen_empty: bool) {
        if self.state != BbrState::ProbeRtt && path_not_seen_empty && !self.idle_restart {
            self.save_cwnd();
            self.state = BbrState::ProbeRtt;
            self.probe_rtt = ProbeRtt::default();
            self.cycle.stop_probing();
            self.round.begin(acked.delivered);
        }
        if self.state == BbrState::ProbeRtt {
            self.handle_probe_rtt(acked);
        }
        if acked.rate.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, acked: &Acked) {
        self.probe_rtt.delivered = acked.delivered;
        if self.probe_rtt.done_at.is_none() {
            if acked.in_flight <= self.probe_rtt_cwnd() {
                self.probe_rtt.done_at = Some(acked.now + DURATION);
                self.probe_rtt.round_done = false;
                self.round.begin(acked.delivered);
            }
            return;
        }
        self.probe_rtt.round_done |= self.round.round_start;
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(acked.now, acked.delivered);
        }
    }

    /// CheckProbeRTTDone and ExitProbeRTT.
    pub(super) fn check_probe_rtt_done(&mut self, now: Time, delivered: u64) {
        if self.probe_rtt.done_at.is_none_or(|at| now <= at) {
            return;
        }
        self.min_rtt.on_probed(now);
        self.restore_cwnd();
        self.short_term.bw_shortterm = UNLIMITED;
        self.short_term.inflight_shortterm = UNLIMITED;
        if self.full_bw.reached {
            self.start_probe_bw_down(now, delivered);
            self.state = BbrState::ProbeBw(Phase::Cruise);
        } else {
            self.enter_startup();
        }
    }

    /// ProbeRTTCwnd.
    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp_multiple(CWND_GAIN).max(self.min_pipe_cwnd())
    }
}
