//! Links without I/O: a datagram enters with its arrival time. It leaves never, once, or several
//! times, each time with a departure time.
//!
//! A [`Path`] is one direction of a link: a list of boxes ([`Hop`]), each with one effect: a rate
//! with its queue, a delay, a kind of loss. Invariants:
//! - A hop never delivers before the arrival.
//! - A hop sees arrivals in order of time.
//! - The same seed and the same arrivals give the same deliveries.
//!
//! This module does not depend on endpoints or simulated time, so the same boxes serve a forwarder
//! between two real interfaces. Such a forwarder calls [`Path::push`] for each packet, sleeps until
//! [`Path::next`], and sends the results of [`Path::pop`].
//!
//! A bottleneck shared by several flows is one [`Path`] for all of them; the addresses identify the
//! flow of a departing datagram. A [`QueueMeter`] measures the delay in the bottleneck's queue.

mod aggregate;
mod blackhole;
mod burst_loss;
mod corrupt;
mod delay;
mod drop_nth;
mod duplicate;
mod ecn_mangle;
mod jitter;
mod loss;
mod mtu;
mod nat;
mod policer;
mod queue_meter;
mod rate;
mod reorder;

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;
use std::net::SocketAddr;

use wraith_core::{Ecn, Time};

pub use self::aggregate::Aggregate;
pub use self::blackhole::Blackhole;
pub use self::burst_loss::BurstLoss;
pub use self::corrupt::Corrupt;
pub use self::delay::Delay;
pub use self::drop_nth::DropNth;
pub use self::duplicate::Duplicate;
pub use self::ecn_mangle::EcnMangle;
pub use self::jitter::Jitter;
pub use self::loss::Loss;
pub use self::mtu::Mtu;
pub use self::nat::{Nat, NatIn, NatOut};
pub use self::policer::Policer;
pub use self::queue_meter::QueueMeter;
pub use self::rate::Rate;
pub use self::reorder::Reorder;
use crate::Rng;

/// A datagram: a UDP payload and its addresses. A forwarder of whole IP packets leaves the
/// addresses unspecified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Source address.
    pub from: SocketAddr,
    /// Destination address.
    pub to: SocketAddr,
    /// The ECN codepoint of its IP header.
    pub ecn: Option<Ecn>,
    /// The payload.
    pub bytes: Vec<u8>,
}

impl Datagram {
    /// Creates a datagram without an ECN codepoint.
    pub fn new(from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) -> Self {
        Self { from, to, ecn: None, bytes }
    }
}

/// Datagrams that leave a hop, each with its departure time.
pub type Departures = Vec<(Time, Datagram)>;

/// The boxes of a path, from first to last.
pub type Hops = Vec<Box<dyn Hop>>;

/// One box of a path.
pub trait Hop: HopClone + fmt::Debug + Send {
    /// Handles `datagram`, which arrives at `now`, not before any earlier arrival. Appends the
    /// departing datagrams to `out`, with times not before `now`.
    fn pass(&mut self, now: Time, datagram: Datagram, rng: &mut Rng, out: &mut Departures);

    /// Returns the initial rate of the box, if it has one.
    fn bits_per_second(&self) -> Option<u64> {
        None
    }
}

/// Allows a list of boxes to be used for several paths; implemented for every `Clone` hop.
pub trait HopClone {
    /// Returns a box with the same parameters and state.
    fn clone_hop(&self) -> Box<dyn Hop>;
}

impl<T: Hop + Clone + 'static> HopClone for T {
    fn clone_hop(&self) -> Box<dyn Hop> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Hop> {
    fn clone(&self) -> Self {
        (**self).clone_hop()
    }
}

/// The list of boxes of one direction: `hops![Rate::mbit(100), Delay::ms(20), Loss::percent(1.0)]`.
#[macro_export]
macro_rules! hops {
    ($($hop:expr),* $(,)?) => {
        vec![$(::std::boxed::Box::new($hop) as ::std::boxed::Box<dyn $crate::link::Hop>),*]
    };
}

/// One direction of a link: a row of boxes, and the datagrams between them.
///
/// Datagrams are processed in order of time, then of their scheduling. Nearly every box keeps their
/// order, so datagrams wait for a box in a queue. Only a datagram that does not belong at the end
/// of the queue goes to a heap. With hundreds of thousands in flight, a heap for all of them would
/// cost more than everything else.
#[derive(Debug)]
pub struct Path {
    /// One for each box, and a last one for delivery.
    stages: Vec<Stage>,
    sequence: u64,
    departures: Departures,
    entered: u64,
    left: u64,
    in_transit: u64,
}

/// A box, or the end of the path, with the datagrams that wait for it.
#[derive(Debug)]
struct Stage {
    hop: Option<(Box<dyn Hop>, Rng)>,
    in_order: VecDeque<InFlight>,
    overtaking: BinaryHeap<InFlight>,
}

#[derive(Debug)]
struct InFlight {
    at: Time,
    sequence: u64,
    datagram: Datagram,
}

impl Path {
    /// Creates a path through `hops`, from first to last. Every box draws from its own stream of
    /// `seed`.
    pub fn new(seed: u64, hops: Hops) -> Self {
        let hops = (0..).zip(hops).map(|(i, hop)| Some((hop, Rng::new(seed, i))));
        let stages = hops.chain([None]).map(Stage::new).collect();
        Self { stages, sequence: 0, departures: Vec::new(), entered: 0, left: 0, in_transit: 0 }
    }

    /// Adds a datagram that arrives at `now`.
    pub fn push(&mut self, now: Time, datagram: Datagram) {
        self.entered += 1;
        self.schedule(now, 0, datagram);
    }

    /// Returns the time at which [`Self::pop`] has work; it may not be a delivery yet.
    pub fn next(&self) -> Option<Time> {
        self.first().map(|(at, ..)| at)
    }

    /// Returns the next datagram that leaves at or before `now`. Call it until it returns `None`.
    pub fn pop(&mut self, now: Time) -> Option<Datagram> {
        while let Some((at, _, index)) = self.first().filter(|(at, ..)| *at <= now) {
            let stage = &mut self.stages[index];
            let datagram = stage.take()?.datagram;
            self.in_transit -= 1;
            let Some((model, rng)) = &mut stage.hop else {
                self.left += 1;
                return Some(datagram);
            };
            let mut departures = std::mem::take(&mut self.departures);
            model.pass(at, datagram, rng, &mut departures);
            for (leaves, datagram) in departures.drain(..) {
                debug_assert!(leaves >= at, "a box delivered before the arrival");
                self.schedule(leaves, index + 1, datagram);
            }
            self.departures = departures;
        }
        None
    }

    /// Returns the number of datagrams that entered and that left, copies included.
    pub fn counts(&self) -> (u64, u64) {
        (self.entered, self.left)
    }

    /// Returns the number of datagrams in flight.
    pub fn in_transit(&self) -> u64 {
        self.in_transit
    }

    fn schedule(&mut self, at: Time, stage: usize, datagram: Datagram) {
        self.sequence += 1;
        self.in_transit += 1;
        self.stages[stage].put(InFlight { at, sequence: self.sequence, datagram });
    }

    /// Returns time, number and stage of the next datagram.
    fn first(&self) -> Option<(Time, u64, usize)> {
        let firsts = (0..).zip(&self.stages);
        firsts.filter_map(|(i, stage)| stage.first().map(|f| (f.at, f.sequence, i))).min()
    }
}

impl Stage {
    fn new(hop: Option<(Box<dyn Hop>, Rng)>) -> Self {
        Self { hop, in_order: VecDeque::new(), overtaking: BinaryHeap::new() }
    }

    fn put(&mut self, datagram: InFlight) {
        if self.in_order.back().is_none_or(|last| last.at <= datagram.at) {
            self.in_order.push_back(datagram);
        } else {
            self.overtaking.push(datagram);
        }
    }

    fn first(&self) -> Option<&InFlight> {
        // In the order of the heap the greater one is the earlier one.
        self.in_order.front().max(self.overtaking.peek())
    }

    fn take(&mut self) -> Option<InFlight> {
        if self.in_order.front() >= self.overtaking.peek() {
            self.in_order.pop_front()
        } else {
            self.overtaking.pop()
        }
    }
}

impl Ord for InFlight {
    /// Reversed, because the heap returns its greatest element: earliest first, then in order of
    /// arrival.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl PartialOrd for InFlight {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for InFlight {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for InFlight {}

#[cfg(test)]
pub(crate) mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use super::*;

    pub(crate) const INSIDE: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 1000);
    pub(crate) const OUTSIDE: SocketAddr =
        SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 2000);

    pub(crate) fn datagram(number: u32, len: usize) -> Datagram {
        let mut bytes = vec![0; len.max(4)];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        Datagram::new(INSIDE, OUTSIDE, bytes)
    }

    pub(crate) fn number(datagram: &Datagram) -> u32 {
        u32::from_be_bytes(datagram.bytes[..4].try_into().unwrap())
    }

    pub(crate) fn micros(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    /// Sends `count` datagrams of `len` bytes, one every `every`. Returns the departures.
    pub(crate) fn run(
        hops: Hops,
        count: u32,
        len: usize,
        every: Duration,
    ) -> Vec<(Time, Datagram)> {
        let mut path = Path::new(7, hops);
        let mut out = Vec::new();
        let mut now = Time::ZERO;
        for i in 0..count {
            drain(&mut path, now, &mut out);
            path.push(now, datagram(i, len));
            now += every;
        }
        drain(&mut path, Time::MAX, &mut out);
        out
    }

    fn drain(path: &mut Path, until: Time, out: &mut Vec<(Time, Datagram)>) {
        while let Some(at) = path.next().filter(|at| *at < until) {
            while let Some(datagram) = path.pop(at) {
                out.push((at, datagram));
            }
        }
    }

    #[test]
    fn a_path_without_boxes_delivers_at_once_and_in_order() {
        let mut path = Path::new(0, hops![]);
        path.push(micros(1), datagram(1, 10));
        path.push(micros(1), datagram(2, 10));
        assert_eq!(path.next(), Some(micros(1)));
        assert_eq!(path.pop(micros(1)).as_ref().map(number), Some(1));
        assert_eq!(path.pop(micros(1)).as_ref().map(number), Some(2));
        assert_eq!((path.pop(micros(1)), path.next(), path.counts()), (None, None, (2, 2)));
    }

    #[test]
    fn boxes_in_a_row_add_up() {
        let out = run(hops![Delay::micros(10), Delay::micros(5)], 1, 10, Duration::ZERO);
        assert_eq!(out[0].0, micros(15));
    }

    #[test]
    fn the_same_seed_gives_the_same_deliveries_and_a_box_more_does_not_change_the_draws_of_the_first()
     {
        let lossy = || {
            run(hops![Loss::percent(30.0), Jitter::micros(90)], 200, 50, Duration::from_micros(1))
        };
        let numbers = |out: Vec<(Time, Datagram)>| {
            let mut numbers: Vec<_> = out.iter().map(|(_, d)| number(d)).collect();
            numbers.sort_unstable();
            numbers
        };
        assert_eq!(lossy(), lossy());
        let plain = run(hops![Loss::percent(30.0)], 200, 50, Duration::from_micros(1));
        assert_eq!(numbers(lossy()), numbers(plain));
    }
}
