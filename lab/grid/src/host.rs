//! A transport as the grid sees it: a sans-IO endpoint with the application that uses it.

use std::fmt;

use wraith_core::Time;
use wraith_sim::Pattern;
use wraith_sim::link::Datagram;

/// UDP payload of a full datagram over IPv4 and Ethernet. All transports know it: the grid compares recovery and
/// congestion control, not the search for the largest datagram.
pub const FULL_DATAGRAM: u16 = 1472;

/// Windows and send buffers of every transport: nothing but congestion control limits what is in flight, up to
/// 10 Gbit/s × 200 ms.
pub const WINDOW_BYTES: u64 = 256 << 20;

/// One end of one flow. After any call, [`transmit`](Self::transmit) until it has nothing more, then
/// [`next`](Self::next).
pub trait Host: fmt::Debug {
    /// The sender begins.
    fn start(&mut self, now: Time);

    /// A datagram arrived.
    fn receive(&mut self, now: Time, datagram: Datagram);

    /// The time that [`next`](Self::next) named has come.
    fn wake(&mut self, now: Time);

    /// Lets the application act and appends the datagrams that may leave now.
    fn transmit(&mut self, now: Time, out: &mut Vec<Datagram>);

    /// When [`wake`](Self::wake) must be called at the latest.
    fn next(&mut self) -> Option<Time>;

    /// The receiver has everything, or the transport gave up.
    fn ended(&self) -> bool;

    /// What was achieved so far.
    fn progress(&mut self) -> Progress;
}

/// Counters of one end of a flow. Each end fills what it knows.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Receiver: bytes handed to the application, in order and verified.
    pub delivered: u64,
    /// Sender: packets sent.
    pub packets_sent: u64,
    /// Sender: packets it declared lost.
    pub packets_lost: u64,
    /// The transport gave up, and why.
    pub aborted: Option<String>,
}

/// What a sender sends: `bytes` of a pattern that the receiver knows too.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    /// The bytes.
    pub pattern: Pattern,
    /// How many of them.
    pub bytes: u64,
}

impl Content {
    /// `bytes` bytes that follow from `seed` and the number of the flow.
    pub fn new(seed: u64, flow: u64, bytes: u64) -> Self {
        Self { pattern: Pattern::new(seed, flow), bytes }
    }
}

/// The receiver's side of [`Content`]: compares and counts.
#[derive(Clone, Copy, Debug)]
pub struct Verifier {
    content: Content,
    delivered: u64,
}

impl Verifier {
    /// Expects `content` from its beginning.
    pub fn new(content: Content) -> Self {
        Self { content, delivered: 0 }
    }

    /// The next bytes in order. Panics if they are not what was sent: then no figure means anything.
    pub fn take(&mut self, bytes: &[u8]) {
        assert!(self.content.pattern.is_at(self.delivered, bytes), "wrong bytes arrived");
        self.delivered += bytes.len() as u64;
        assert!(self.delivered <= self.content.bytes, "more arrived than was sent");
    }

    /// Bytes taken.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Everything arrived.
    pub fn is_complete(&self) -> bool {
        self.delivered == self.content.bytes
    }
}
