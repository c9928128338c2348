//! The interface between a transport and the grid: a sans-IO endpoint with its application.

use std::fmt;

use wraith_core::Time;
use wraith_sim::Pattern;
use wraith_sim::link::Datagram;

/// UDP payload of a full datagram over IPv4 and Ethernet. All transports start with it: the grid
/// compares recovery and congestion control, not path MTU discovery.
pub const FULL_DATAGRAM: u16 = 1472;

/// Windows and send buffers of every transport: only congestion control limits the bytes in flight,
/// up to 10 Gbit/s × 200 ms.
pub const WINDOW_BYTES: u64 = 256 << 20;

/// One end of one flow. After any call, the caller calls [`transmit`](Self::transmit) until it
/// returns no more datagrams, then [`next`](Self::next).
pub trait Host: fmt::Debug {
    /// Starts the sender.
    fn start(&mut self, now: Time);

    /// Handles an arrived datagram.
    fn receive(&mut self, now: Time, datagram: Datagram);

    /// Handles the time that [`next`](Self::next) returned.
    fn wake(&mut self, now: Time);

    /// Lets the application act and appends the datagrams that may leave now.
    fn transmit(&mut self, now: Time, out: &mut Vec<Datagram>);

    /// Latest time at which [`wake`](Self::wake) must be called.
    fn next(&mut self) -> Option<Time>;

    /// Returns whether the receiver has everything, or the transport gave up.
    fn ended(&self) -> bool;

    /// Returns the counters so far.
    fn progress(&mut self) -> Progress;
}

/// Counters of one end of a flow. Each end fills those it has.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Receiver: bytes handed to the application, in order and verified.
    pub delivered: u64,
    /// Sender: packets sent.
    pub packets_sent: u64,
    /// Sender: packets it declared lost.
    pub packets_lost: u64,
    /// Reason why the transport gave up, if it did.
    pub aborted: Option<String>,
}

/// The content that a sender sends: `bytes` of a pattern that the receiver can compute too.
#[derive(Clone, Copy, Debug)]
pub struct Content {
    /// The bytes.
    pub pattern: Pattern,
    /// Number of bytes.
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

    /// Compares the next bytes in order. Panics if they differ from those sent, as no figure would
    /// then be valid.
    pub fn take(&mut self, bytes: &[u8]) {
        assert!(self.content.pattern.is_at(self.delivered, bytes), "wrong bytes arrived");
        self.delivered += bytes.len() as u64;
        assert!(self.delivered <= self.content.bytes, "more arrived than was sent");
    }

    /// Bytes taken.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Returns whether everything arrived.
    pub fn is_complete(&self) -> bool {
        self.delivered == self.content.bytes
    }
}
