//! Round trips counted in packets (draft §5.5.1): a round ends when a packet sent after its beginning is acknowledged.
//!
//! Time that passes while nothing is sent is no round, so nothing the model remembers is forgotten in a pause.

/// The rounds of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    /// Rounds so far.
    pub(super) round_count: u64,
    /// The ACK in progress began a round.
    pub(super) round_start: bool,
    /// A packet sent when this much was delivered ends the round.
    next_round_delivered: u64,
}

impl Round {
    /// A round begins now, when `delivered` bytes are.
    pub(super) fn begin(&mut self, delivered: u64) {
        self.next_round_delivered = delivered;
    }

    /// A packet sent when `delivered_at_send` bytes were delivered was acknowledged; now `delivered` are.
    pub(super) fn update(&mut self, delivered_at_send: u64, delivered: u64) {
        self.round_start = delivered_at_send >= self.next_round_delivered;
        if self.round_start {
            self.begin(delivered);
            self.round_count += 1;
        }
    }
}
