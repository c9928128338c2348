//! The interface of congestion controllers: their inputs and outputs.
//!
//! The argument structs are `#[non_exhaustive]`, so a later version may add fields. Each has a
//! constructor, for tests of controllers outside this crate. Every field can be set afterwards.

use std::fmt;
use std::time::Duration;

use super::window::send_quantum;
use crate::Time;
use crate::measure::{LostPacket, RateSample, Rtt};

/// Default number of ACKs requested per window.
const ACKS_PER_WINDOW: u64 = 4;

/// A congestion control algorithm for one path.
///
/// Recovery calls the hooks in the order of events, and [`control`](Self::control) after each of
/// them.
///
/// | event | calls, in this order |
/// |---|---|
/// | a packet leaves while none is in flight | `on_restart` |
/// | an ACK arrives | `on_spurious_episode`, `on_lost` and `on_acked` as they apply, then `on_congestion_experienced` |
/// | the loss timer fires | `on_lost` |
/// | the path carries larger or smaller datagrams | `set_mtu` |
///
/// A probe timeout is not an event of congestion control (RFC 9002 §6.2.4).
pub trait Controller: fmt::Debug + Send {
    /// A packet is about to leave while none is in flight. `app_limited`: the application had
    /// nothing to send before.
    fn on_restart(&mut self, now: Time, app_limited: bool) {
        let _ = (now, app_limited);
    }

    /// Packets were acknowledged. Called after [`on_lost`](Self::on_lost) for the losses that the
    /// same ACK revealed.
    fn on_acked(&mut self, acked: &Acked);

    /// Packets were lost.
    fn on_lost(&mut self, lost: &Lost<'_>);

    /// The network marked packets (ECN CE). By default, a mark is treated as a loss of zero bytes:
    /// RFC 9002 §7.1 requires the same response.
    fn on_congestion_experienced(&mut self, marked: &Marked) {
        self.on_lost(&Lost::of_mark(marked));
    }

    /// Every loss of the current episode was reordering, so its reduction must be undone.
    fn on_spurious_episode(&mut self, now: Time) {
        let _ = now;
    }

    /// Full datagrams now carry `mtu` bytes.
    fn set_mtu(&mut self, mtu: u16) {
        let _ = mtu;
    }

    /// Returns the current window, pacing rate and send quantum.
    fn control(&self, rtt: &Rtt) -> Control;

    /// Returns the state of its state machine, by the name in its specification. Empty if it has
    /// none.
    fn state(&self) -> &'static str {
        ""
    }

    /// Returns its estimates of the path, for logs and statistics.
    fn metrics(&self) -> Metrics {
        Metrics::default()
    }
}

/// One acknowledgement that settled packets of the current path.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Acked {
    /// Arrival time of the ACK.
    pub now: Time,
    /// Newly acknowledged in-flight bytes.
    pub bytes: u64,
    /// Bytes in flight before the ACK.
    pub prior_in_flight: u64,
    /// Bytes in flight after the ACK and the losses it revealed.
    pub in_flight: u64,
    /// Round-trip sample of this ACK, including the ACK delay.
    pub rtt: Option<Duration>,
    /// Smoothed round trip.
    pub smoothed_rtt: Duration,
    /// Minimum round trip on this path.
    pub min_rtt: Duration,
    /// Sending time of the newest acknowledged packet.
    pub newest_sent_at: Time,
    /// That packet was sent before the current recovery episode began, so the window must not grow.
    pub in_recovery: bool,
    /// This ACK begins a new round trip: it acknowledges a packet sent after the last one began.
    pub round_start: bool,
    /// Bytes delivered on this path so far, including this ACK.
    pub delivered: u64,
    /// The sender was window-limited, not application-limited, in the last round trip.
    pub window_limited: bool,
    /// Bytes for which the peer may delay an ACK at our request (ACK_FREQUENCY).
    pub ack_batch: u64,
    /// Delivery rate over the flight of the newest acknowledged packet.
    pub rate: RateSample,
}

impl Acked {
    /// Creates an ACK at `now` of all `bytes` in flight, sent one round trip `rtt` ago by a
    /// window-limited sender.
    pub fn new(now: Time, bytes: u64, rtt: Duration) -> Self {
        Self {
            now,
            bytes,
            prior_in_flight: bytes,
            in_flight: 0,
            rtt: Some(rtt),
            smoothed_rtt: rtt,
            min_rtt: rtt,
            newest_sent_at: now - rtt,
            in_recovery: false,
            round_start: false,
            delivered: bytes,
            window_limited: true,
            ack_batch: 0,
            rate: RateSample::default(),
        }
    }
}

/// Packets declared lost together.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Lost<'a> {
    /// Time of the detection.
    pub now: Time,
    /// The lost packets, in sending order.
    pub packets: &'a [LostPacket],
    /// Bytes delivered on this path so far.
    pub delivered: u64,
    /// Lost in-flight bytes.
    pub bytes: u64,
    /// Bytes in flight without the lost ones.
    pub in_flight: u64,
    /// Sending time of the newest lost packet.
    pub newest_sent_at: Time,
    /// Bytes in flight right after the first lost packet of a new episode was sent: more than the
    /// path carried. Zero without a new episode.
    pub in_flight_at_send: u64,
    /// The first loss among packets sent since the last reduction: the controller must respond.
    pub new_episode: bool,
    /// Every packet was lost for several probe timeouts (RFC 9002 §7.6).
    pub persistent_congestion: bool,
}

impl<'a> Lost<'a> {
    /// Creates the first loss of an episode: `packets`, detected at `now`, with nothing left in
    /// flight.
    pub fn new(now: Time, packets: &'a [LostPacket]) -> Self {
        Self {
            now,
            packets,
            delivered: 0,
            bytes: packets.iter().map(|packet| u64::from(packet.size)).sum(),
            in_flight: 0,
            newest_sent_at: now,
            in_flight_at_send: packets.first().map_or(0, |packet| packet.in_flight_at_send),
            new_episode: true,
            persistent_congestion: false,
        }
    }

    /// Creates the loss of zero bytes that represents a mark.
    fn of_mark(marked: &Marked) -> Self {
        Self {
            now: marked.now,
            packets: &[],
            delivered: marked.delivered,
            bytes: 0,
            in_flight: marked.in_flight,
            newest_sent_at: marked.newest_sent_at,
            in_flight_at_send: if marked.new_episode { marked.in_flight } else { 0 },
            new_episode: marked.new_episode,
            persistent_congestion: false,
        }
    }
}

/// Packets that the network marked with ECN CE, as reported by one ACK.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Marked {
    /// Arrival time of the ACK.
    pub now: Time,
    /// Packets marked since the previous ACK.
    pub packets: u64,
    /// Bytes delivered on this path so far, including this ACK.
    pub delivered: u64,
    /// Bytes in flight after the ACK.
    pub in_flight: u64,
    /// Sending time of the newest packet that the ACK acknowledges.
    pub newest_sent_at: Time,
    /// The first mark or loss among packets sent since the last reduction: the controller must
    /// respond.
    pub new_episode: bool,
}

impl Marked {
    /// Creates one mark at `now` that begins an episode, with nothing left in flight.
    pub fn new(now: Time) -> Self {
        Self { now, packets: 1, delivered: 0, in_flight: 0, newest_sent_at: now, new_episode: true }
    }
}

/// A controller's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Control {
    /// Congestion window, in bytes.
    pub window: u64,
    /// Pacing rate, in bytes per second.
    pub pacing_rate: u64,
    /// Bytes to send together.
    pub send_quantum: u64,
    /// The window is small in order to measure an empty path. Rate samples of packets sent now do
    /// not show the path's capacity, and ACKs should be immediate.
    pub measuring_round_trip: bool,
    /// ACKs requested from the peer per window in flight.
    pub acks_per_window: u64,
}

impl Control {
    /// Creates a decision of `window` bytes in flight at `pacing_rate` bytes per second, in
    /// datagrams of `mtu` bytes, with a matching send quantum.
    pub fn new(window: u64, pacing_rate: u64, mtu: u16) -> Self {
        Self {
            window,
            pacing_rate,
            send_quantum: send_quantum(pacing_rate, mtu),
            measuring_round_trip: false,
            acks_per_window: ACKS_PER_WINDOW,
        }
    }
}

/// A controller's estimates of its path. `None`: unknown, or not part of the algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Estimated bandwidth, in bytes per second.
    pub bandwidth: Option<u64>,
    /// Round trip of the path without a queue.
    pub min_rtt: Option<Duration>,
    /// Slow start threshold, in bytes.
    pub slow_start_threshold: Option<u64>,
    /// Upper bound on bytes in flight, derived from loss.
    pub inflight_limit: Option<u64>,
    /// Random loss of the path, independent of the sending rate, in parts per million.
    pub random_loss_ppm: Option<u32>,
}
