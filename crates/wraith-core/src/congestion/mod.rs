//! Congestion control: how much may be in flight, and how fast it may leave.
//!
//! A [`Controller`] is told what each acknowledgement and each detected loss meant (delivery-rate sample, round
//! trips, recovery episodes) and answers with a window and a pacing rate. It never sees single packets, so it costs
//! one virtual call per ACK. What is measured, and when a recovery episode begins and ends, is decided once, in
//! [`crate::recovery`], for every algorithm alike.
//!
//! Invariant of every controller: `window() >= minimum_window(mtu)` and `pacing_rate() > 0`, always.

mod cubic;
mod hystart;

use std::fmt;
use std::time::Duration;

use crate::Time;
use crate::recovery::{RateSample, Rtt};

pub use cubic::Cubic;

/// Fewest full packets a window may hold (RFC 9002 §7.2).
const MINIMUM_WINDOW_PACKETS: u64 = 2;
/// Full packets in the first window: what large senders use on today's Internet, three times RFC 9002's ten.
/// It is paced after a first burst of ten.
const INITIAL_WINDOW_PACKETS: u64 = 32;
/// Bytes in the first window when packets are large, unless four packets are more.
const INITIAL_WINDOW_BYTES_MAX: u64 = 64 * 1024;
/// No window grows beyond this: more than any path's bandwidth-delay product that we know (10 Gbit/s × 800 ms).
pub(crate) const WINDOW_BYTES_MAX: u64 = 1 << 30;
/// Bytes the kernel takes in one segmented send.
const SEND_QUANTUM_BYTES_MAX: u64 = 64 * 1024;
/// A send quantum is what the pacing rate releases in this part of a second (draft-ietf-ccwg-bbr §4.6.3: 1 ms).
const SEND_QUANTA_PER_SECOND: u64 = 1000;

/// Which controller a connection uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// CUBIC (RFC 9438) with HyStart++ (RFC 9406).
    #[default]
    Cubic,
}

impl Algorithm {
    /// A fresh controller for a path whose datagrams carry `mtu` bytes.
    pub(crate) fn start(self, mtu: u16) -> Box<dyn Controller> {
        match self {
            Self::Cubic => Box::new(Cubic::new(mtu)),
        }
    }
}

/// One acknowledgement that settled packets of the current path.
#[derive(Clone, Copy, Debug)]
pub struct Acked {
    /// When the ACK arrived.
    pub now: Time,
    /// In-flight bytes it newly acknowledged.
    pub bytes: u64,
    /// Bytes in flight before it, and after it and the losses it revealed.
    pub prior_in_flight: u64,
    /// See `prior_in_flight`.
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
    /// Delivery rate over the newest acknowledged packet's flight.
    pub rate: RateSample,
}

/// Packets declared lost together.
#[derive(Clone, Copy, Debug)]
pub struct Lost {
    /// When that was noticed.
    pub now: Time,
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

/// A congestion control algorithm for one path.
pub trait Controller: fmt::Debug + Send {
    /// Packets were acknowledged. Called after `on_lost` for the losses the same ACK revealed.
    fn on_acked(&mut self, acked: &Acked);

    /// Packets were lost.
    fn on_lost(&mut self, lost: &Lost);

    /// The network marked packets (ECN CE); `new_episode` as in [`Lost`].
    fn on_congestion_experienced(&mut self, now: Time, new_episode: bool);

    /// Every loss of the current episode turned out to be reordering: take its reduction back.
    fn on_spurious_episode(&mut self, now: Time);

    /// Datagrams now carry `mtu` bytes.
    fn set_mtu(&mut self, mtu: u16);

    /// Bytes that may be in flight.
    fn window(&self) -> u64;

    /// Bytes per second that may leave.
    fn pacing_rate(&self, rtt: &Rtt) -> u64;
}

/// Fewest bytes a window may have.
pub(crate) fn minimum_window(mtu: u16) -> u64 {
    MINIMUM_WINDOW_PACKETS * u64::from(mtu)
}

/// Bytes of the first window.
pub(crate) fn initial_window(mtu: u16) -> u64 {
    let mtu = u64::from(mtu);
    (INITIAL_WINDOW_PACKETS * mtu).min(INITIAL_WINDOW_BYTES_MAX.max(4 * mtu))
}

/// Bytes to send together: enough to fill one segmented send where the rate allows, so that pacing does not cost
/// a system call per packet; never less than two packets where two fit.
pub(crate) fn send_quantum(pacing_rate: u64, mtu: u16) -> u64 {
    let mtu = u64::from(mtu);
    let least = (2 * mtu).min(SEND_QUANTUM_BYTES_MAX.max(mtu));
    (pacing_rate / SEND_QUANTA_PER_SECOND).min(SEND_QUANTUM_BYTES_MAX).max(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_send_quantum_is_a_millisecond_between_two_packets_and_one_segmented_send() {
        assert_eq!(send_quantum(100_000, 1200), 2400);
        assert_eq!(send_quantum(20_000_000, 1200), 20_000);
        assert_eq!(send_quantum(u64::MAX, 1200), 65_536);
        assert_eq!(send_quantum(u64::MAX, 65_000), 65_536);
        assert_eq!(send_quantum(0, 65_535), 65_536);
    }

    #[test]
    fn the_first_window_is_bounded_in_packets_and_bytes_and_never_below_the_minimum() {
        assert_eq!(initial_window(1200), 38_400);
        assert_eq!(initial_window(8952), 65_536);
        assert_eq!(initial_window(65_000), 260_000);
        for mtu in [1200, 1452, 1472, 8952, 65_000] {
            assert!(initial_window(mtu) >= minimum_window(mtu));
        }
    }
}
