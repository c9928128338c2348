//! Transports of datagrams under the I/O thread.
//!
//! ```text
//!            core: Transmit { to: PathAddr, .. }         handle_datagram(from: PathAddr, ..)
//!                          │                                        ▲
//!  I/O thread   Ip ────────┼──── Via(number) ───┐                   │ RecvSlots
//!                          ▼                    ▼                   │
//!                     UDP socket         Box<dyn DatagramMover> ────┘
//! ```
//!
//! A mover is owned by one thread and never blocks. The mover sends a batch, or reports how much of
//! the batch did not fit. It names a descriptor by which the thread's single `ppoll` detects that
//! the mover is ready again. Slow or asynchronous transports (TCP, TLS, radio) run elsewhere,
//! behind bounded ring buffers, with the mover at the I/O thread's end. When its buffers are full,
//! such a transport should drop datagrams instead of queueing them for long: congestion control
//! treats a long queue as a longer path.
//!
//! Invariant: a batch that a mover reports as blocked is offered to it again, in order and before
//! anything newer, and does not block any other mover.

mod address_table;
mod slots;
mod socket_pool;
mod source;
mod udp;

use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;

use wraith_core::{Ecn, PathAddr};

pub use address_table::AddressTable;
pub(crate) use address_table::mover_of;
pub use slots::{RECV_BUFFER_BYTES, Received, RecvSlots};
pub use socket_pool::SocketPool;
pub use udp::Udp;
pub(crate) use udp::{KERNEL_BUFFER, SEND_MAX};

/// Sends and receives datagrams.
pub trait DatagramMover: Send + Debug {
    /// Returns the limits of this mover.
    fn caps(&self) -> MoverLimits;

    /// Returns how the I/O thread detects received datagrams, or room to send again. The
    /// descriptor is the same at every call: the thread sleeps on a duplicate.
    fn readiness(&self) -> Readiness<'_>;

    /// Sends these datagrams. Never blocks. A datagram may be lost, as in any network, but not if
    /// it is reported as blocked.
    fn send(&mut self, batch: SendBatch<'_>) -> SendResult;

    /// Fills `slots` with the available datagrams. Returns the number of filled slots, zero if
    /// nothing is available. Never blocks.
    ///
    /// # Errors
    /// Receiving fails at present. The I/O thread retries a little later.
    fn receive(&mut self, slots: &mut RecvSlots) -> io::Result<usize>;
}

/// Creates a mover for an endpoint; applications list them in
/// [`Config::movers`](crate::Config::movers).
pub trait MoverFactory: Send + Sync + Debug {
    /// Returns the kind of [`Addr::Custom`](crate::Addr::Custom) that this mover serves. The kinds
    /// of an endpoint are distinct.
    fn kind(&self) -> u64;

    /// Creates a mover that translates its addresses with `names`.
    ///
    /// # Errors
    /// The mover cannot be created; binding the endpoint then fails.
    fn bind(&self, names: AddressTable) -> io::Result<Box<dyn DatagramMover>>;
}

/// Limits of a mover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoverLimits {
    /// Largest datagram, in bytes. Larger ones (path MTU probes) are dropped before they reach the
    /// mover.
    pub mtu_max: u16,
    /// Maximum number of datagrams in one [`DatagramMover::send`], at least 1.
    pub segments_max: usize,
}

/// Readiness notification of a mover.
#[derive(Clone, Copy, Debug)]
pub struct Readiness<'a> {
    /// Readable when there is something to receive, or, after a blocked send, room.
    pub fd: BorrowedFd<'a>,
    /// Whether room after a blocked send shows as writability of `fd` instead (a socket).
    pub room_is_writable: bool,
}

/// Datagrams for one destination.
#[derive(Clone, Copy, Debug)]
pub struct SendBatch<'a> {
    /// Destination, of the mover's [`AddressTable`].
    pub to: PathAddr,
    /// ECN codepoint to set, if any.
    pub ecn: Option<Ecn>,
    /// The datagrams, one after the other.
    pub datagrams: &'a [u8],
    /// Size of every datagram but the last, which may be shorter.
    pub segment: usize,
}

/// Result of a send.
#[derive(Debug)]
pub enum SendResult {
    /// All datagrams were sent, or lost as in any network.
    All,
    /// No room: the bytes from this offset on, a multiple of the segment, are still to be sent.
    Blocked(usize),
    /// The destination is unreachable. The rest was dropped.
    Unreachable(io::Error),
}
