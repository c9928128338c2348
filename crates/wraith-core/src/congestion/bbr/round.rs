//! Round trips counted in packets (draft §5.5.1): a round ends when a packet sent after its start
//! is acknowledged.
//!
//! A pause without packets is not a round, so no value of the model expires during it.

/// The rounds of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// Number of rounds so far.
    pub(super) round_count: u64,
    /// The current ACK began a round.
    pub(super) round_start: bool,
    /// A packet sent when at least this much was delivered ends the round.
    next_round_delivered: u64,
}

impl Round {
    /// Begins a round, with `delivered` bytes delivered.
    pub(super) fn begin(&mut self, delivered: u64) {
        self.next_round_delivered = delivered;
    }

    /// Handles an acknowledged packet, sent when `delivered_at_send` bytes were delivered. Now
    /// `delivered` are.
    pub(super) fn update(&mut self, delivered_at_send: u64, delivered: u64) {
        self.round_start = delivered_at_send >= self.next_round_delivered;
        if self.round_start {
            self.begin(delivered);
            self.round_count += 1;
        }
    }
}
