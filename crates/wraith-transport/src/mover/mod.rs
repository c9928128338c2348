//! What moves datagrams under the I/O thread.
//!
//! ```text
//!            core: Transmit { to: PathAddr, .. }         handle_datagram(from: PathAddr, ..)
//!                          │                                        ▲
//!  I/O thread   Ip ────────┼──── Via(number) ───┐                   │ RecvSlots
//!                          ▼                    ▼                   │
//!                     UDP socket         Box<dyn DatagramMover> ────┘
//! ```
//!
//! A mover is owned by one thread and is never asked to wait: it takes a batch, or says how much of it did not fit, and
//! names a descriptor by which the thread's one `ppoll` learns that it goes on. What is slow or asynchronous (TCP, TLS, a
//! radio) runs elsewhere, behind bounded rings of which the mover is the near end; full, such a carrier should lose
//! datagrams rather than queue them for long, because congestion control takes a queue for a longer path.
//!
//! Invariant: what a mover reports as blocked is offered to it again, in order and before anything newer, and holds up no
//! other mover.

mod names;
mod slots;
mod sockets;
mod source;
mod udp;

use std::fmt::Debug;
use std::io;
use std::os::fd::BorrowedFd;

use wraith_core::{Ecn, PathAddr};

pub use names::Names;
pub(crate) use names::mover_of;
pub use slots::{RECV_BUFFER_BYTES, Received, RecvSlots};
pub use sockets::Sockets;
pub use udp::Udp;
pub(crate) use udp::{KERNEL_BUFFER, SEND_MAX};

/// Moves datagrams to and from peers.
pub trait DatagramMover: Send + Debug {
    /// What it can carry.
    fn caps(&self) -> Caps;

    /// How the I/O thread learns that there is something to receive, or room again.
    fn readiness(&self) -> Readiness<'_>;

    /// Takes `datagrams`, cut every `segment` bytes, to `to`, a number of its [`Names`]. Never waits. A datagram may be
    /// lost, as networks lose things; one that is reported as blocked is not.
    fn send(&mut self, to: PathAddr, ecn: Option<Ecn>, datagrams: &[u8], segment: usize) -> Sent;

    /// Fills `slots` with what is there; the number filled, zero if nothing is there. Never waits.
    ///
    /// # Errors
    /// It cannot receive now. It is asked again a little later.
    fn receive(&mut self, slots: &mut RecvSlots) -> io::Result<usize>;
}

/// Makes a mover for an endpoint: what an application names in [`Config::movers`](crate::Config::movers).
pub trait Bind: Send + Sync + Debug {
    /// Which [`Addr::Custom`](crate::Addr::Custom) it serves. No two of an endpoint serve the same.
    fn kind(&self) -> u64;

    /// A mover that knows its addresses by `names`.
    ///
    /// # Errors
    /// There is none to be had; then neither is the endpoint.
    fn bind(&self, names: Names) -> io::Result<Box<dyn DatagramMover>>;
}

/// What a mover can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    /// Largest datagram, in bytes; larger ones (searches for the path's MTU) are dropped before they reach it.
    pub mtu_max: u16,
    /// Datagrams that one [`DatagramMover::send`] takes, at least 1.
    pub segments_max: usize,
}

/// How a mover reports that something can be done.
#[derive(Clone, Copy, Debug)]
pub struct Readiness<'a> {
    /// Readable when there is something to receive, or, after a blocked send, room.
    pub fd: BorrowedFd<'a>,
    /// After a blocked send, room shows as writability of `fd` instead (a socket).
    pub room_is_writable: bool,
}

/// How a send ended.
#[derive(Debug)]
pub enum Sent {
    /// Everything was handed over, or lost as the network loses things.
    All,
    /// There is no room; the bytes from this offset on, a multiple of the segment, are still to be sent.
    Blocked(usize),
    /// The destination cannot be reached from here. The rest was dropped.
    Unreachable(io::Error),
}
