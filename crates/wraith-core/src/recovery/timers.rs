//! The loss and probe timers (RFC 9002 §6.2).

use std::time::Duration;

use super::{PTO_INTERVAL_MAX, Recovery, Settled, TimeoutOutcome};
use crate::Time;

impl<F> Recovery<F> {
    /// Handles the timer at the time of [`timeout`](Self::timeout). Fills `out`.
    pub fn on_timeout(&mut self, now: Time, out: &mut Settled<F>) -> TimeoutOutcome {
        out.clear();
        let Some(at) = self.timeout() else { return TimeoutOutcome::Nothing };
        if now < at {
            return TimeoutOutcome::Nothing;
        }
        self.last_change = now;
        if self.loss_time().is_none() {
            // No loss is known, so neither RTT nor congestion state changes (RFC 9002 §6.2.4).
            self.pto_count += 1;
            self.pto_from = now;
            self.probe_timeouts += 1;
            return TimeoutOutcome::Probe;
        }
        self.detect_lost(now, out);
        self.path.refresh(now);
        self.forget_oldest_acks();
        // Retransmissions come first; a probe is due only if they are not acknowledged either.
        self.pto_from = now;
        if out.lost.is_empty() { TimeoutOutcome::Nothing } else { TimeoutOutcome::Lost }
    }

    /// Returns the time to call [`on_timeout`](Self::on_timeout), when the oldest overtaken packet
    /// is lost or a probe is due. It is never before the last ACK or timeout, even if that one
    /// shortened the wait.
    pub fn timeout(&self) -> Option<Time> {
        let probe = || (self.eliciting > 0).then(|| self.pto_from + self.backed_off_pto());
        self.loss_time().or_else(probe).map(|at| at.max(self.last_change))
    }

    fn backed_off_pto(&self) -> Duration {
        let (mut pto, mut patient) = (self.pto().min(self.wait_max), 0);
        if self.path.owes_ack() {
            let prompt = self.path.prompt_pto();
            patient = u32::try_from(pto.as_nanos() / prompt.as_nanos().max(1)).unwrap_or(0);
            pto = prompt;
        }
        let doublings = self.pto_count.saturating_sub(patient);
        pto.saturating_mul(1u32.checked_shl(doublings).unwrap_or(u32::MAX))
            .min(PTO_INTERVAL_MAX.max(pto))
    }

    /// Returns the probe timeout without back-off (RFC 9002 §6.2.1). Other timers are multiples of
    /// it.
    pub fn pto(&self) -> Duration {
        self.path.pto(self.config.max_ack_delay)
    }
}
