//! The short-term model (draft §5.5.10.3). Outside of probes, a round with too much loss lowers
//! bandwidth and inflight towards the last delivery, by at most three tenths. The next probe resets
//! the short-term model.
//!
//! [`random_loss`](super::extensions::random_loss) defines too much loss;
//! [`probe_losses`](super::extensions::probe_losses) selects the losses that count.

use super::{BETA, Bbr, UNLIMITED};
use crate::congestion::controller::{Acked, Lost};

/// Fraction of `max_bw` below which a flow is slow enough to test whether its loss follows the
/// rate.
const SLOWED: f64 = 0.96;

/// The bounds, and the delivery and loss of the last round.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortTerm {
    /// Bandwidth bound, in bytes per second.
    pub(super) bw_shortterm: u64,
    /// Bound on bytes in flight.
    pub(super) inflight_shortterm: u64,
    /// Maximum delivery of the last round: rate in bytes per second, and bytes.
    bw_latest: u64,
    pub(super) inflight_latest: u64,
    /// The current ACK begins a loss round: one that starts with the first loss.
    pub(super) loss_round_start: bool,
    loss_round_delivered: u64,
    /// Whether this round has loss, and its lost and acknowledged bytes.
    loss_in_round: bool,
    lost: u64,
    acked: u64,
    /// The network reported congestion with a CE mark.
    pub(super) congested: bool,
    /// Bytes delivered at the last ACK or loss.
    pub(super) delivered: u64,
}

impl Default for ShortTerm {
    fn default() -> Self {
        Self {
            bw_shortterm: UNLIMITED,
            inflight_shortterm: UNLIMITED,
            bw_latest: 0,
            inflight_latest: 0,
            loss_round_start: false,
            loss_round_delivered: 0,
            loss_in_round: false,
            lost: 0,
            acked: 0,
            congested: false,
            delivered: 0,
        }
    }
}

impl ShortTerm {
    /// ResetCongestionSignals.
    pub(super) fn reset_congestion_signals(&mut self) {
        self.bw_latest = 0;
        self.inflight_latest = 0;
        self.forgive();
    }

    /// Clears the losses of this round, which were spurious.
    pub(super) fn forgive(&mut self) {
        self.loss_in_round = false;
        self.congested = false;
        self.lost = 0;
        self.acked = 0;
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest_delivery_signals(&mut self, acked: &Acked) {
        if self.loss_round_start {
            self.bw_latest = acked.rate.bytes_per_second.unwrap_or(0);
            self.inflight_latest = acked.rate.delivered;
        }
    }

    fn loss_rate(&self) -> f64 {
        self.lost as f64 / (self.lost + self.acked).max(1) as f64
    }
}

impl Bbr {
    /// ResetShortTermModel.
    pub(super) fn reset_short_term_model(&mut self) {
        self.short_term.bw_shortterm = UNLIMITED;
        self.short_term.inflight_shortterm = UNLIMITED;
        self.random_loss.end_trial();
    }

    /// NoteLoss, for a batch of losses.
    pub(super) fn note_loss(&mut self, lost: &Lost<'_>) {
        let signals = &mut self.short_term;
        signals.delivered = lost.delivered;
        let bytes = self.probe_losses.cruising_bytes(lost);
        if bytes > 0 {
            if !signals.loss_in_round {
                signals.loss_round_delivered = lost.delivered;
            }
            signals.loss_in_round = true;
            signals.lost += bytes;
        }
        self.random_loss.on_lost(lost);
        self.note_startup_losses(lost);
    }

    /// UpdateLatestDeliverySignals.
    pub(super) fn update_latest_delivery_signals(&mut self, acked: &Acked) {
        let signals = &mut self.short_term;
        signals.delivered = acked.delivered;
        signals.acked += acked.bytes;
        signals.bw_latest = signals.bw_latest.max(acked.rate.bytes_per_second.unwrap_or(0));
        signals.inflight_latest = signals.inflight_latest.max(acked.rate.delivered);
        signals.loss_round_start = acked.rate.delivered_at_send >= signals.loss_round_delivered;
        if signals.loss_round_start {
            signals.loss_round_delivered = acked.delivered;
        }
    }

    /// UpdateCongestionSignals, with UpdateMaxBw.
    pub(super) fn update_congestion_signals(&mut self, acked: &Acked) {
        self.round.update(acked.rate.delivered_at_send, acked.delivered);
        if self.round.round_start {
            self.cycle.rounds_since_bw_probe += 1;
        }
        if let Some(rate) = acked.rate.bytes_per_second {
            self.max_bw.update(rate, acked.rate.app_limited);
        }
        self.random_loss.on_acked(acked, self.min_rtt.get(), self.short_term.loss_round_start);
        if !self.short_term.loss_round_start {
            return;
        }
        if !self.is_probing_bw() {
            self.adapt_lower_bounds_from_congestion(acked.delivered);
        }
        self.short_term.forgive();
    }

    /// AdaptLowerBoundsFromCongestion with InitLowerBounds and LossLowerBounds.
    fn adapt_lower_bounds_from_congestion(&mut self, delivered: u64) {
        if self.random_loss.is_proven(self.mtu) {
            // The flow slowed down and the loss remained, so it depends on neither bound.
            self.reset_short_term_model();
            self.long_term.inflight_longterm = UNLIMITED;
        }
        let ShortTerm { lost, acked, congested, loss_in_round, .. } = self.short_term;
        let too_much = lost > self.random_loss.tolerated(lost + acked, self.mtu);
        let reacts = congested || (loss_in_round && too_much);
        if !reacts {
            return;
        }
        let loss_rate = self.short_term.loss_rate();
        let (max_bw, cwnd) = (self.max_bw.get(), self.cwnd);
        let model = &mut self.short_term;
        if model.bw_shortterm == UNLIMITED {
            model.bw_shortterm = max_bw;
        }
        if model.inflight_shortterm == UNLIMITED {
            model.inflight_shortterm = cwnd;
        }
        model.bw_shortterm = model.bw_latest.max((model.bw_shortterm as f64 * BETA) as u64);
        model.inflight_shortterm =
            model.inflight_latest.max((model.inflight_shortterm as f64 * BETA) as u64);
        if !congested && (model.bw_shortterm as f64) < SLOWED * max_bw as f64 {
            self.random_loss.begin_trial(delivered, loss_rate, self.mtu);
        }
    }
}
