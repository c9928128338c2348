//! The short-term model (draft §5.5.10.3): while not probing, a round that lost too much pulls bandwidth and inflight
//! towards what was just delivered, by three tenths at most, until the next probe forgets it.
//!
//! Deviation: "too much" is more than the background and the threshold that the draft applies to probes, not a single
//! packet. A tenth of a percent of random loss would otherwise cost a fifth of the bandwidth of a long path.
//!
//! Deviation: what was lost of a probe counts for the probe only, however late it is noticed. On a short path that is
//! rounds later, and the cruise would pay for it.

use super::{BETA, Bbr, UNLIMITED};
use crate::congestion::controller::{Acked, Lost};

/// Below this part of `max_bw` a flow has slowed down enough to see whether its loss follows.
const SLOWED: f64 = 0.96;

/// Bounds, and what the last round delivered and lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortTerm {
    /// Draft: bw_shortterm, inflight_shortterm.
    pub(super) bw: u64,
    /// See `bw`.
    pub(super) inflight: u64,
    /// Draft: bw_latest, inflight_latest.
    bw_latest: u64,
    pub(super) inflight_latest: u64,
    /// The ACK in progress begins a loss round: one that starts with the first loss.
    pub(super) round_started: bool,
    round_ends_at: u64,
    /// Loss in this round; bytes of it, and bytes acknowledged.
    loss_in_round: bool,
    lost: u64,
    acked: u64,
    /// Packets sent before this much was delivered were sent to probe.
    pub(super) probed_until: u64,
    /// The network said so itself.
    pub(super) congested: bool,
    /// Bytes delivered at the last ACK or loss.
    pub(super) delivered: u64,
}

impl Default for ShortTerm {
    fn default() -> Self {
        Self {
            bw: UNLIMITED,
            inflight: UNLIMITED,
            bw_latest: 0,
            inflight_latest: 0,
            round_started: false,
            round_ends_at: 0,
            loss_in_round: false,
            lost: 0,
            acked: 0,
            probed_until: 0,
            congested: false,
            delivered: 0,
        }
    }
}

impl ShortTerm {
    /// ResetCongestionSignals.
    pub(super) fn reset_signals(&mut self) {
        self.bw_latest = 0;
        self.inflight_latest = 0;
        self.forgive();
    }

    /// What was lost in this round was not lost.
    pub(super) fn forgive(&mut self) {
        self.loss_in_round = false;
        self.congested = false;
        self.lost = 0;
        self.acked = 0;
    }

    /// AdvanceLatestDeliverySignals.
    pub(super) fn advance_latest(&mut self, acked: &Acked) {
        if self.round_started {
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
        self.short_term.bw = UNLIMITED;
        self.short_term.inflight = UNLIMITED;
        self.background.end_trial();
    }

    /// NoteLoss, for a batch.
    pub(super) fn note_losses(&mut self, lost: &Lost<'_>) {
        let signals = &mut self.short_term;
        signals.delivered = lost.delivered;
        let until = signals.probed_until;
        let cruising = lost.packets.iter().filter(|packet| packet.delivered_at_send >= until);
        let bytes: u64 = cruising.map(|packet| u64::from(packet.size)).sum();
        if bytes > 0 {
            if !signals.loss_in_round {
                signals.round_ends_at = lost.delivered;
            }
            signals.loss_in_round = true;
            signals.lost += bytes;
        }
        self.background.on_lost(lost);
        self.note_startup_losses(lost);
    }

    /// UpdateLatestDeliverySignals.
    pub(super) fn update_latest_delivery_signals(&mut self, acked: &Acked) {
        let signals = &mut self.short_term;
        signals.delivered = acked.delivered;
        signals.acked += acked.bytes;
        signals.bw_latest = signals.bw_latest.max(acked.rate.bytes_per_second.unwrap_or(0));
        signals.inflight_latest = signals.inflight_latest.max(acked.rate.delivered);
        signals.round_started = acked.rate.delivered_at_send >= signals.round_ends_at;
        if signals.round_started {
            signals.round_ends_at = acked.delivered;
        }
    }

    /// UpdateCongestionSignals, with UpdateMaxBw.
    pub(super) fn update_congestion_signals(&mut self, acked: &Acked) {
        self.round.update(acked.rate.delivered_at_send, acked.delivered);
        if self.round.started {
            self.cycle.rounds_since_up += 1;
        }
        if let Some(rate) = acked.rate.bytes_per_second {
            self.max_bw.update(rate, acked.rate.app_limited);
        }
        self.background.on_acked(acked, self.min_rtt.get(), self.short_term.round_started);
        if !self.short_term.round_started {
            return;
        }
        if !self.is_probing_bw() {
            self.adapt_lower_bounds(acked.delivered);
        }
        self.short_term.forgive();
    }

    /// AdaptLowerBoundsFromCongestion, with InitLowerBounds and LossLowerBounds.
    fn adapt_lower_bounds(&mut self, delivered: u64) {
        if self.background.is_proven(self.mtu) {
            // We slowed down and the loss stayed: neither bound was about it.
            self.reset_short_term_model();
            self.long_term.inflight = UNLIMITED;
        }
        let ShortTerm { lost, acked, congested, loss_in_round, .. } = self.short_term;
        let too_much = lost > self.background.tolerated(lost + acked, self.mtu);
        let reacts = congested || (loss_in_round && too_much);
        if !reacts {
            return;
        }
        let loss_rate = self.short_term.loss_rate();
        let (max_bw, window) = (self.max_bw.get(), self.window);
        let model = &mut self.short_term;
        if model.bw == UNLIMITED {
            model.bw = max_bw;
        }
        if model.inflight == UNLIMITED {
            model.inflight = window;
        }
        model.bw = model.bw_latest.max((model.bw as f64 * BETA) as u64);
        model.inflight = model.inflight_latest.max((model.inflight as f64 * BETA) as u64);
        if !congested && (model.bw as f64) < SLOWED * max_bw as f64 {
            self.background.begin_trial(delivered, loss_rate, self.mtu);
        }
    }
}
