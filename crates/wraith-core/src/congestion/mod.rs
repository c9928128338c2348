//! Congestion control: how much may be in flight, and how fast it may leave.
//!
//! A [`Controller`] is told what each acknowledgement and each batch of losses meant (delivery-rate sample, round
//! trips, recovery episodes) and answers with a window, a pacing rate and a send quantum. It never sees single
//! packets, but for the lost ones of a batch, so it costs two virtual calls per ACK. What is measured, and when a
//! recovery episode begins and ends, is decided once, in [`crate::recovery`], for every algorithm alike.
//!
//! Invariant of every controller: its [`Control`] has `window >= minimum_window(mtu)` and `pacing_rate > 0`, always.

mod bbr;
mod cubic;
mod hystart;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::Time;
pub use crate::measure::{LostPacket, RateSample, Rtt};

pub use bbr::Bbr;
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
    Cubic,
    /// BBRv3 (draft-ietf-ccwg-bbr).
    #[default]
    Bbr,
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        match name {
            "cubic" => Ok(Self::Cubic),
            "bbr" => Ok(Self::Bbr),
            _ => Err(UnknownAlgorithm),
        }
    }
}

/// The name is neither `cubic` nor `bbr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm;

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("congestion control is `cubic` or `bbr`")
    }
}

impl std::error::Error for UnknownAlgorithm {}

impl Algorithm {
    /// A fresh controller for a path whose datagrams carry `mtu` bytes; what it does by chance follows from `seed`.
    pub(crate) fn start(self, now: Time, mtu: u16, seed: u64) -> Box<dyn Controller> {
        match self {
            Self::Cubic => Box::new(Cubic::new(mtu)),
            Self::Bbr => Box::new(Bbr::new(now, mtu, seed)),
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
    /// In the last round trip the window, not the application, kept something back.
    pub window_limited: bool,
    /// Bytes that the peer may be holding back an ACK for, as we asked it to (ACK_FREQUENCY).
    pub ack_batch: u64,
    /// Delivery rate over the newest acknowledged packet's flight.
    pub rate: RateSample,
}

/// Packets declared lost together.
#[derive(Clone, Copy, Debug)]
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

/// What a controller allows now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A congestion control algorithm for one path.
pub trait Controller: fmt::Debug + Send {
    /// A packet is about to leave while none is in flight; `app_limited` if the application had nothing to send before.
    fn on_restart(&mut self, now: Time, app_limited: bool) {
        let _ = (now, app_limited);
    }

    /// Packets were acknowledged. Called after `on_lost` for the losses the same ACK revealed.
    fn on_acked(&mut self, acked: &Acked);

    /// Packets were lost.
    fn on_lost(&mut self, lost: &Lost<'_>);

    /// The network marked packets (ECN CE); `new_episode` as in [`Lost`].
    fn on_congestion_experienced(&mut self, now: Time, new_episode: bool);

    /// Every loss of the current episode turned out to be reordering: take its reduction back.
    fn on_spurious_episode(&mut self, now: Time);

    /// Datagrams now carry `mtu` bytes.
    fn set_mtu(&mut self, mtu: u16);

    /// What it allows now.
    fn control(&self, rtt: &Rtt) -> Control;

    /// For tests that look at the inside.
    #[cfg(test)]
    fn as_bbr(&self) -> Option<&Bbr> {
        None
    }
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
