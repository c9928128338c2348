//! What a controller is told and what it answers.
//!
//! The argument structs are `#[non_exhaustive]`: a later version may tell more. Each has a constructor for tests of a
//! controller outside this crate; every field can be set afterwards.

use std::fmt;
use std::time::Duration;

use super::window::send_quantum;
use crate::Time;
use crate::measure::{LostPacket, RateSample, Rtt};

/// ACKs asked for in one window unless a controller wants another number.
const ACKS_PER_WINDOW: u64 = 4;

/// A congestion control algorithm for one path.
///
/// Recovery calls the hooks in the order of events and asks for [`control`](Self::control) after each of them.
///
/// | event | calls, in this order |
/// |---|---|
/// | a packet leaves while none is in flight | `on_restart` |
/// | an ACK arrives | `on_spurious_episode`, `on_lost` and `on_acked` as they apply, then `on_congestion_experienced` |
/// | the loss timer fires | `on_lost` |
/// | the path carries larger or smaller datagrams | `set_mtu` |
///
/// A probe timeout is no event of congestion control (RFC 9002 §6.2.4).
pub trait Controller: fmt::Debug + Send {
    /// A packet is about to leave while none is in flight. `app_limited` means that the application had nothing to send
    /// before.
    fn on_restart(&mut self, now: Time, app_limited: bool) {
        let _ = (now, app_limited);
    }

    /// Packets were acknowledged. Called after [`on_lost`](Self::on_lost) for the losses that the same ACK revealed.
    fn on_acked(&mut self, acked: &Acked);

    /// Packets were lost.
    fn on_lost(&mut self, lost: &Lost<'_>);

    /// The network marked packets (ECN CE). By default a mark is a loss of nothing: RFC 9002 §7.1 wants the same response.
    fn on_congestion_experienced(&mut self, marked: &Marked) {
        self.on_lost(&Lost::of_mark(marked));
    }

    /// Every loss of the current episode turned out to be reordering: take its reduction back.
    fn on_spurious_episode(&mut self, now: Time) {
        let _ = now;
    }

    /// Full datagrams now carry `mtu` bytes.
    fn set_mtu(&mut self, mtu: u16) {
        let _ = mtu;
    }

    /// What it allows now.
    fn control(&self, rtt: &Rtt) -> Control;

    /// Which state of its state machine it is in, by the name that its specification uses; empty if it has none.
    fn state(&self) -> &'static str {
        ""
    }

    /// What it knows of the path, for logs and statistics.
    fn metrics(&self) -> Metrics {
        Metrics::default()
    }
}

/// One acknowledgement that settled packets of the current path.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Acked {
    /// When the ACK arrived.
    pub now: Time,
    /// In-flight bytes it newly acknowledged.
    pub bytes: u64,
    /// Bytes in flight before it.
    pub prior_in_flight: u64,
    /// Bytes in flight after it and the losses it revealed.
    pub in_flight: u64,
    /// Round-trip sample of this ACK, acknowledgement delay included.
    pub rtt: Option<Duration>,
    /// Smoothed round trip.
    pub smoothed_rtt: Duration,
    /// Smallest round trip seen on this path.
    pub min_rtt: Duration,
    /// When the newest packet it acknowledged was sent.
    pub newest_sent_at: Time,
    /// That packet was sent before the current recovery episode began: no growth.
    pub in_recovery: bool,
    /// This ACK begins a new round trip (a packet sent after the last beginning was acknowledged).
    pub round_start: bool,
    /// Bytes delivered on this path so far, this ACK included.
    pub delivered: u64,
    /// In the last round trip the window, not the application, kept something back.
    pub window_limited: bool,
    /// Bytes that the peer may be holding back an ACK for, as we asked it to (ACK_FREQUENCY).
    pub ack_batch: u64,
    /// Delivery rate over the newest acknowledged packet's flight.
    pub rate: RateSample,
}

impl Acked {
    /// An ACK at `now` of `bytes` that were all in flight, sent one round trip `rtt` ago by a sender that its window
    /// limits.
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
    /// When that was noticed.
    pub now: Time,
    /// Each of them, in the order they were sent.
    pub packets: &'a [LostPacket],
    /// Bytes delivered on this path so far.
    pub delivered: u64,
    /// In-flight bytes lost.
    pub bytes: u64,
    /// Bytes in flight without them.
    pub in_flight: u64,
    /// When the newest of them was sent.
    pub newest_sent_at: Time,
    /// Bytes in flight when the packet that begins the new episode was sent, itself included: what the path did not
    /// carry any more. Zero without a new episode.
    pub in_flight_at_send: u64,
    /// The first loss among packets sent since the last reduction: the one to react to.
    pub new_episode: bool,
    /// Nothing got through for several probe timeouts (RFC 9002 §7.6).
    pub persistent_congestion: bool,
}

impl<'a> Lost<'a> {
    /// The first loss of an episode: `packets`, noticed at `now`, with nothing left in flight.
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

    /// The loss of nothing that a mark stands for.
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

/// Packets that the network marked with ECN CE, as one ACK reports them.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Marked {
    /// When the ACK arrived.
    pub now: Time,
    /// Packets that were marked since the ACK before it.
    pub packets: u64,
    /// Bytes delivered on this path so far, this ACK included.
    pub delivered: u64,
    /// Bytes in flight after the ACK.
    pub in_flight: u64,
    /// When the newest packet that the ACK acknowledges was sent.
    pub newest_sent_at: Time,
    /// The first mark or loss among packets sent since the last reduction: the one to react to.
    pub new_episode: bool,
}

impl Marked {
    /// One mark at `now` that begins an episode, with nothing left in flight.
    pub fn new(now: Time) -> Self {
        Self { now, packets: 1, delivered: 0, in_flight: 0, newest_sent_at: now, new_episode: true }
    }
}

/// What a controller allows now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Control {
    /// Bytes that may be in flight.
    pub window: u64,
    /// Bytes per second that may leave.
    pub pacing_rate: u64,
    /// Bytes best sent together.
    pub send_quantum: u64,
    /// The window is small on purpose, to measure an empty path: rate samples of what is sent now say nothing about
    /// what the path carries, and ACKs should come at once.
    pub measuring_round_trip: bool,
    /// ACKs the peer is asked for while one window is in flight.
    pub acks_per_window: u64,
}

impl Control {
    /// `window` bytes in flight at `pacing_rate` bytes per second in datagrams of `mtu` bytes, with the send quantum that
    /// suits them.
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

/// What a controller knows of its path. `None` is what it does not know or has no notion of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Bytes per second that the path is believed to carry.
    pub bandwidth: Option<u64>,
    /// Round trip of the path without a queue.
    pub min_rtt: Option<Duration>,
    /// Window in bytes at which slow start ends.
    pub slow_start_threshold: Option<u64>,
    /// Bytes that may be in flight at most, as loss has shown.
    pub inflight_limit: Option<u64>,
    /// Loss that the path has whatever is sent, in parts of a million.
    pub random_loss_ppm: Option<u32>,
}
