//! One cell of the grid: a link, and the amount of data to send over it.
//!
//! # The rules
//!
//! - The *capacity* of a cell is the UDP payload that its bottleneck delivers when it is always
//!   busy: rate × 1472 / 1500, less the random loss behind it. A goodput of 1.0 is therefore out of
//!   reach by the transport's own headers (2–3 %).
//! - A transfer lasts [`TRANSFER_TIME`], but at least [`TRANSFER_ROUND_TRIPS`] round trips, at
//!   capacity: slow start is then a small part. It has at most [`PACKETS_MAX`] packets, so that the
//!   grid stays computable, and at least [`PACKETS_MIN`]. On links with more than some 25,000
//!   packets in flight, the speed of slow start *is* the subject of the measurement.
//! - A transfer is timed from the first handshake datagram to the last byte at the receiving
//!   application. A transfer that takes three times its time at capacity, and [`SLACK_ROUND_TRIPS`]
//!   more, is stopped, and its result is the goodput until then.
//! - Losses, jitter and reordering affect both directions.

use std::fmt;
use std::time::Duration;

use wraith_sim::hops;
use wraith_sim::link::{
    Aggregate, BurstLoss, Delay, Hops, Jitter, Loss, Policer, QueueMeter, Rate, Reorder,
};

/// Duration of a transfer at capacity, unless the limits of round trips or packets apply.
const TRANSFER_TIME: Duration = Duration::from_secs(4);
/// Minimum duration of a transfer in round trips.
const TRANSFER_ROUND_TRIPS: u32 = 20;
/// Packets of the longest transfer: 440 MB.
const PACKETS_MAX: u64 = 300_000;
/// Packets of the shortest transfer.
const PACKETS_MIN: u64 = 300;
/// A transfer is cut off after this many times its time at capacity, and this many more round
/// trips.
const SLACK_TIMES: u32 = 3;
const SLACK_ROUND_TRIPS: u32 = 30;
/// Bytes of full packets, with IP and UDP headers, and of their payload.
const PACKET_BYTES: u64 = 1500;
const PAYLOAD_BYTES: u64 = 1472;
/// Minimum queue as time at its rate, limited to a range of bytes: a sender's batch must fit.
const QUEUE_TIME_MIN: Duration = Duration::from_millis(1);
const QUEUE_BYTES_MIN: (u64, u64) = (10 * PACKET_BYTES, 128 * 1024);
/// Two flows: the second starts after this share of the time, and shares are measured in the last
/// part.
const SECOND_FLOW_STARTS: f64 = 0.1;
const SHARES_FROM: f64 = 0.5;
/// Duration of the competition of two flows.
const COMPETITION_TIME: Duration = Duration::from_secs(30);

/// A link, and a rule for the amount of data; see the module.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Round trip without any queue.
    pub rtt: Duration,
    /// Bits per second of the bottleneck, both ways.
    pub rate: u64,
    /// Losses besides those of a full queue.
    pub loss: LossKind,
    /// Capacity of the bottleneck's queue.
    pub queue: QueueKind,
    /// Special condition.
    pub condition: Condition,
}

/// Loss without congestion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossKind {
    /// Independent, in percent.
    Random(f64),
    /// In bursts: percent, and packets of a burst on average.
    Bursts(f64, f64),
}

/// Size of the bottleneck's queue, in bandwidth-delay products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// A fifth.
    Shallow,
    /// One.
    Bdp,
    /// Four.
    Deep,
}

/// Special condition of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// None.
    Plain,
    /// Two percent of the packets are held back, by up to a quarter of the round trip.
    Reordering,
    /// Each packet is delayed by up to a quarter of the round trip, in order.
    Jitter,
    /// Each packet is delayed by up to a quarter of the round trip, out of order.
    WildJitter,
    /// A token bucket in place of the queue: a burst of a quarter of the bandwidth-delay product.
    Policer,
    /// The way back has a hundredth of the rate.
    NarrowAcks,
    /// ACKs come in batches, every fifth of the round trip.
    Batches,
    /// For a third of the time the rate is a tenth.
    TenTimesUp,
    /// After a third of the time the rate is a tenth.
    TenTimesDown,
    /// A second flow of the same kind joins.
    TwoAlike,
    /// A flow of the model CUBIC joins.
    AgainstCubic,
}

/// The boxes of a link, and the meter of its queue.
#[derive(Debug)]
pub struct Link {
    /// Boxes from the sender to the receiver.
    pub up: Hops,
    /// Boxes from the receiver to the sender.
    pub down: Hops,
    /// The queue of the bottleneck from the sender to the receiver.
    pub queue: QueueMeter,
}

impl Cell {
    /// A plain link without loss and with a queue of one bandwidth-delay product.
    pub const fn new(rtt: Duration, mbit: u64) -> Self {
        Self {
            rtt,
            rate: mbit * 1_000_000,
            loss: LossKind::Random(0.0),
            queue: QueueKind::Bdp,
            condition: Condition::Plain,
        }
    }
    /// Sets the loss.
    #[must_use]
    pub const fn loss(mut self, loss: LossKind) -> Self {
        self.loss = loss;
        self
    }
    /// Sets the queue.
    #[must_use]
    pub const fn queue(mut self, queue: QueueKind) -> Self {
        self.queue = queue;
        self
    }
    /// Sets the special condition.
    #[must_use]
    pub const fn condition(mut self, condition: Condition) -> Self {
        self.condition = condition;
        self
    }

    /// Returns whether two flows compete for a fixed time; else one flow transfers
    /// [`Self::transfer_bytes`].
    pub fn has_two_flows(&self) -> bool {
        matches!(self.condition, Condition::TwoAlike | Condition::AgainstCubic)
    }

    /// Application bytes of the transfer.
    pub fn transfer_bytes(&self) -> u64 {
        let time = TRANSFER_TIME.max(self.rtt * TRANSFER_ROUND_TRIPS);
        let packets = self.wire_bytes(time) / PACKET_BYTES;
        packets.clamp(PACKETS_MIN, PACKETS_MAX) * PAYLOAD_BYTES
    }

    /// Duration of the transfer at the rate of the link.
    fn transfer_time(&self) -> Duration {
        let bits = self.transfer_bytes() * 8;
        Duration::from_secs_f64(bits as f64 / self.payload_rate(self.rate))
    }

    /// Time at which a transfer is cut off, or a competition ends.
    pub fn deadline(&self) -> Duration {
        if self.has_two_flows() {
            return COMPETITION_TIME;
        }
        let slow = if self.condition == Condition::TenTimesDown { 10 } else { 1 };
        self.transfer_time() * SLACK_TIMES * slow + self.rtt * SLACK_ROUND_TRIPS
    }

    /// Start of the second of two flows, and start of the measurement of shares.
    pub fn competition(&self) -> (Duration, Duration) {
        let time = COMPETITION_TIME;
        (time.mul_f64(SECOND_FLOW_STARTS), time.mul_f64(SHARES_FROM))
    }

    /// UDP payload that the bottleneck could have delivered by `end`, in bytes.
    pub fn capacity_bytes(&self, end: Duration) -> f64 {
        let of = |time: Duration, rate: u64| time.as_secs_f64() * self.payload_rate(rate) / 8.0;
        match self.rates() {
            (first, Some((at, then))) if at < end => of(at, first) + of(end - at, then),
            (first, _) => of(end, first),
        }
    }

    /// Bits of UDP payload per second that a bottleneck of `rate` delivers.
    fn payload_rate(&self, rate: u64) -> f64 {
        let kept = match self.loss {
            LossKind::Random(percent) | LossKind::Bursts(percent, _) => 1.0 - percent / 100.0,
        };
        rate as f64 * PAYLOAD_BYTES as f64 / PACKET_BYTES as f64 * kept
    }

    /// The initial rate, and the time and value of its change.
    fn rates(&self) -> (u64, Option<(Duration, u64)>) {
        let at = self.transfer_time() / 3;
        match self.condition {
            Condition::TenTimesUp => (self.rate / 10, Some((at, self.rate))),
            Condition::TenTimesDown => (self.rate, Some((at, self.rate / 10))),
            _ => (self.rate, None),
        }
    }

    /// Bytes on the wire in `time`.
    fn wire_bytes(&self, time: Duration) -> u64 {
        (self.rate as f64 / 8.0 * time.as_secs_f64()) as u64
    }

    fn queue_bytes(&self) -> u64 {
        let bdp = self.wire_bytes(self.rtt);
        let wanted = match self.queue {
            QueueKind::Shallow => bdp / 5,
            QueueKind::Bdp => bdp,
            QueueKind::Deep => 4 * bdp,
        };
        let (least, most) = QUEUE_BYTES_MIN;
        wanted.max(self.wire_bytes(QUEUE_TIME_MIN).clamp(least, most))
    }

    /// Builds the link.
    pub fn link(&self) -> Link {
        let queue = QueueMeter::default();
        let line = || Rate::bits(self.rate).queue(self.queue_bytes());
        let mut up = match (self.condition, self.rates()) {
            (Condition::Policer, _) => {
                let burst = (self.wire_bytes(self.rtt) / 4).max(QUEUE_BYTES_MIN.0);
                hops![Policer::bits(self.rate, burst).measured(&queue)]
            }
            (_, (_, None)) => hops![line().measured(&queue)],
            (_, (first, Some((at, then)))) => {
                let line = Rate::bits(first).then(at, then).queue(self.queue_bytes());
                hops![line.measured(&queue)]
            }
        };
        let mut down = match self.condition {
            Condition::NarrowAcks => hops![Rate::bits(self.rate / 100)],
            _ => hops![line()],
        };
        if self.condition == Condition::Batches {
            down.push(Box::new(Aggregate::every(self.rtt / 5)));
        }
        for way in [&mut up, &mut down] {
            way.push(Box::new(Delay::new(self.rtt / 2)));
            way.extend(self.disturbances());
        }
        Link { up, down, queue }
    }

    fn disturbances(&self) -> Hops {
        let mut hops = match self.loss {
            LossKind::Random(percent) if percent > 0.0 => hops![Loss::percent(percent)],
            LossKind::Random(_) => hops![],
            LossKind::Bursts(percent, packets) => hops![BurstLoss::percent(percent, packets)],
        };
        match self.condition {
            Condition::Reordering => hops.push(Box::new(Reorder::percent(2.0, self.rtt / 4))),
            Condition::Jitter => hops.push(Box::new(Jitter::new(self.rtt / 4))),
            Condition::WildJitter => hops.push(Box::new(Jitter::new(self.rtt / 4).reordering())),
            _ => {}
        }
        hops
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { loss, queue, condition, .. } = self;
        write!(f, "{} Mbit/s {} ms {loss} {queue}", self.rate / 1_000_000, millis(self.rtt))?;
        if *condition == Condition::Plain { Ok(()) } else { write!(f, " {condition}") }
    }
}

/// Returns the time in milliseconds.
pub fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

impl fmt::Display for LossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Random(percent) => write!(f, "{percent}%"),
            Self::Bursts(percent, packets) => write!(f, "{percent}%x{packets}"),
        }
    }
}

impl fmt::Display for QueueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shallow => "shallow",
            Self::Bdp => "bdp",
            Self::Deep => "deep",
        })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Reordering => "reordering",
            Self::Jitter => "jitter",
            Self::WildJitter => "wild-jitter",
            Self::Policer => "policer",
            Self::NarrowAcks => "narrow-acks",
            Self::Batches => "batches",
            Self::TenTimesUp => "ten-times-up",
            Self::TenTimesDown => "ten-times-down",
            Self::TwoAlike => "two-alike",
            Self::AgainstCubic => "against-cubic",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CELL: Cell = Cell::new(Duration::from_millis(50), 100);

    #[test]
    fn a_transfer_lasts_seconds_or_round_trips_but_not_for_ever() {
        let seconds = |cell: Cell| cell.transfer_time().as_secs_f64();
        assert!((3.9..4.1).contains(&seconds(CELL)));
        assert!((11.9..12.1).contains(&seconds(Cell::new(Duration::from_millis(600), 100))));
        let fast = Cell::new(Duration::from_millis(600), 10_000);
        assert_eq!(fast.transfer_bytes(), PACKETS_MAX * PAYLOAD_BYTES);
        let slow = Cell { rate: 1000, ..CELL };
        assert_eq!(slow.transfer_bytes(), PACKETS_MIN * PAYLOAD_BYTES);
    }

    #[test]
    fn capacity_is_payload_after_loss_and_follows_the_rate() {
        let second = Duration::from_secs(1);
        assert!((CELL.capacity_bytes(second) - 12_266_666.7).abs() < 1.0);
        let lossy = CELL.loss(LossKind::Random(10.0));
        assert!((lossy.capacity_bytes(second) - 11_040_000.0).abs() < 1.0);
        let up = CELL.condition(Condition::TenTimesUp);
        let (_, change) = up.rates();
        let (at, _) = change.unwrap();
        let by = |time| up.capacity_bytes(time) / CELL.capacity_bytes(second);
        assert!((by(second) - 0.1).abs() < 1e-6 && (by(at + second) - by(at) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn queues_hold_their_share_of_the_bandwidth_delay_product_and_at_least_a_batch() {
        // 100 Mbit/s × 50 ms are 625,000 bytes.
        assert_eq!(CELL.queue(QueueKind::Shallow).queue_bytes(), 125_000);
        assert_eq!(CELL.queue_bytes(), 625_000);
        assert_eq!(CELL.queue(QueueKind::Deep).queue_bytes(), 2_500_000);
        let micros = Duration::from_micros;
        assert_eq!(Cell::new(micros(200), 1).queue_bytes(), 15_000);
        assert_eq!(Cell::new(micros(200), 1000).queue_bytes(), 125_000);
    }
}
