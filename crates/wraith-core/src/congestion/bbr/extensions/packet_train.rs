//! Packet trains: the bottleneck's rate, estimated from the spacing of a burst's ACKs.
//!
//! - The draft: nothing of the kind.
//! - Ours: packets that leave together queue up at the bottleneck and leave it one after the other,
//!   at its rate. If the ACKs of such a train are spaced wider than its packets were, bytes over
//!   time is that rate.
//! - Why: the estimate is known after one round trip, where doubling needs ten.
//! - Grid: see [`super::jump_start`].
//!
//! The estimate is only a hint. Other traffic lowers it, ACK compression raises it, and a policer
//! lets a first burst pass at line rate. Therefore the estimate never enters the model.

use crate::Time;
use crate::congestion::controller::Acked;

/// Minimum ratio of the ACKs' spread to the packets' spread for a train to count as a bandwidth
/// sample.
const SPREAD_MIN: f64 = 1.5;
/// Minimum number of packets after the first ACK: most of an initial burst of ten.
const PACKETS_MIN: u64 = 4;
/// Minimum number of ACKs after the first.
const ACKS_MIN: u32 = 2;
/// Divisor: the maximum length of a train is this fraction of a round trip.
const LENGTH_DIVISOR: u32 = 2;

/// The newest train.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketTrain {
    /// Arrival time of its first ACK, and sending time of the newest packet in that ACK.
    first: Option<(Time, Time)>,
    /// Bytes and ACKs after the first ACK.
    bytes: u64,
    acks: u32,
    rate: Option<u64>,
}

impl PacketTrain {
    /// Returns the rate of the newest train, in bytes per second.
    pub(super) fn rate(&self) -> Option<u64> {
        self.rate
    }

    /// Adds an ACK.
    pub(super) fn update(&mut self, acked: &Acked, mtu: u16) {
        let longest = acked.smoothed_rtt / LENGTH_DIVISOR;
        if let Some((came, left)) = self.first {
            let spread = acked.now.since(came);
            let sending = acked.newest_sent_at.since(left);
            if !spread.is_zero() && spread < longest && sending.mul_f64(SPREAD_MIN) <= spread {
                self.bytes += acked.bytes;
                self.acks += 1;
                if self.acks >= ACKS_MIN && self.bytes >= PACKETS_MIN * u64::from(mtu) {
                    self.rate = Some((self.bytes as f64 / spread.as_secs_f64()) as u64);
                }
                return;
            }
        }
        let first = Some((acked.now, acked.newest_sent_at));
        *self = Self { first, bytes: 0, acks: 0, rate: self.rate };
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PACKET: u64 = 1200;

    fn us(micros: u64) -> Time {
        Time::ZERO + Duration::from_micros(micros)
    }

    /// Returns an ACK of two packets that arrived at `came`; its newest packet left at `left`.
    fn ack(came: u64, left: u64) -> Acked {
        Acked {
            newest_sent_at: us(left),
            ..Acked::new(us(came), 2 * PACKET, Duration::from_millis(50))
        }
    }

    fn rate_of(acks: impl IntoIterator<Item = (u64, u64)>) -> Option<u64> {
        let mut train = PacketTrain::default();
        acks.into_iter().for_each(|(came, left)| train.update(&ack(came, left), PACKET as u16));
        train.rate
    }

    #[test]
    fn packets_that_left_together_show_the_rate_at_which_they_arrived() {
        // Two packets every 24 µs: 100 bytes per microsecond.
        assert_eq!(rate_of((0..5).map(|i| (50_000 + 24 * i, 0))), Some(100_000_000));
    }

    #[test]
    fn packets_that_arrive_as_they_left_show_nothing() {
        assert_eq!(rate_of((0..50).map(|i| (50_000 + 24 * i, 24 * i))), None);
    }

    #[test]
    fn acks_that_come_together_show_nothing() {
        assert_eq!(rate_of((0..50).map(|_| (50_000, 0))), None);
    }

    #[test]
    fn a_pair_of_acks_is_no_train() {
        assert_eq!(rate_of([(50_000, 0), (50_024, 0)]), None);
    }

    #[test]
    fn a_pause_begins_another_train() {
        let two = [(50_000, 0), (50_024, 0), (80_000, 1), (80_012, 1), (80_024, 1)];
        assert_eq!(rate_of(two), Some(200_000_000));
    }
}
