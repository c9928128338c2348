//! Building blocks for a custom carrier: a transport of datagrams between two nodes, besides UDP
//! and relays.
//!
//! A node opens each of its carriers once per socket. The carrier's own [`Way`]s go into tickets,
//! records and calls, beside the IP addresses and relays of the socket. A peer with a carrier of
//! the same kind resolves such a way to an address of its [`MoverFactory`], and dials it. Peers
//! without that carrier keep the way and pass it over.
//!
//! IP addresses and relays are carriers as well, so all ways are dialled alike.
//! [`NodeBuilder::carrier`](crate::NodeBuilder::carrier) adds a custom one.

use std::fmt::Debug;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use thiserror::Error;
pub use wraith_discovery::{
    BoxFuture, CustomWay, MAX_CUSTOM_WAYS, MAX_WAY_LEN, Reach, RelayAddr, Way, WayError,
};
pub use wraith_transport::mover::{
    AddressTable, DatagramMover, MoverFactory, MoverLimits, Readiness, Received, RecvSlots,
    SendBatch, SendResult,
};
pub use wraith_transport::{Addr, Ecn, PathAddr};

/// A carrier of one socket of a node.
pub trait Carrier: Send + Sync + Debug {
    /// Returns the kind of its ways, as listed in SPEC §2.1. Applications use kinds from 256 on. The
    /// kinds of a node's carriers are distinct.
    fn kind(&self) -> u16;

    /// Returns the ways to this socket, all of its kind, the most useful first. `seen` is the IP
    /// address of this machine as the asking side sees it.
    ///
    /// At most [`MAX_CUSTOM_WAYS`] ways of all carriers of the application are sent. A ticket has
    /// 358 bytes for everything, so ways without room are left out of it. A peer dials at most four
    /// ways of one kind in a search.
    fn own_ways(&self, seen: Option<IpAddr>) -> Vec<Way>;

    /// Resolves a peer's way to the address at which the peer is dialled now. The way is of this
    /// carrier's kind and comes from the peer, so it may have any content.
    ///
    /// Each new attempt resolves the way again. The future has no time limit of its own, and is
    /// dropped when the peer is reached or no longer searched.
    ///
    /// # Errors
    /// See [`ResolveError`].
    fn resolve<'a>(&'a self, way: &'a Way) -> BoxFuture<'a, Result<Addr, ResolveError>>;

    /// Returns whether its paths lead straight to the peer. Other paths give these a head start of
    /// 300 ms, and are retried more rarely.
    fn is_direct(&self) -> bool {
        false
    }
}

/// Why a way cannot be dialled. Users see the message.
#[derive(Clone, Debug, Error)]
pub enum ResolveError {
    /// A later attempt gets the same answer. This search does not resolve the way again.
    #[error("{0}")]
    Final(String),
    /// The carrier works, but the peer is not there. It may come at any time, so the way is resolved
    /// again at a steady pace.
    #[error("{0}")]
    NoPeer(String),
    /// The carrier cannot be used at present. Without direct paths, the pauses between attempts grow
    /// to 30 s.
    #[error("{0}")]
    Unavailable(String),
}

/// Opens a carrier for each socket of a node.
pub trait CarrierFactory: Send + Sync + Debug {
    /// Opens the carrier for one more socket. The socket drops it at its end. A node has a socket
    /// for all its operations, and one for each isolated operation. If a port is taken, the node
    /// drops the carrier and opens it again for another port.
    ///
    /// # Errors
    /// The carrier cannot be used. The operation that needs the socket then fails.
    fn open(&self, changed: WaysChanged) -> io::Result<OpenCarrier>;
}

/// An open carrier.
#[derive(Debug)]
pub struct OpenCarrier {
    /// Its ways.
    pub carrier: Arc<dyn Carrier>,
    /// Its transport of datagrams. No other carrier has the same kind.
    pub mover: Arc<dyn MoverFactory>,
}

/// Signals that [`Carrier::own_ways`] has changed, and so updates records and tickets.
pub type WaysChanged = Arc<dyn Fn() + Send + Sync>;
