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
pub use wraith_discovery::{BoxFuture, CustomWay, MAX_WAY_LEN, Reach, Way, WayError};
pub use wraith_transport::mover::{
    AddressTable, DatagramMover, MoverFactory, MoverLimits, Readiness, Received, RecvSlots,
    SendBatch, SendResult,
};
pub use wraith_transport::{Addr, Ecn, PathAddr};

/// A carrier of one socket of a node.
pub trait Carrier: Send + Sync + Debug {
    /// Returns the kind of its ways, as listed in SPEC §2.1. Applications use kinds from 256 on.
    fn kind(&self) -> u16;

    /// Returns the ways to this socket, the most useful first. `seen` is the IP address of this
    /// machine as the asking side sees it.
    fn own_ways(&self, seen: Option<IpAddr>) -> Vec<Way>;

    /// Resolves a peer's way to the address at which the peer is dialled now. The way is of this
    /// carrier's kind and comes from the peer, so it may have any content.
    ///
    /// # Errors
    /// See [`ResolveError`].
    fn resolve<'a>(&'a self, way: &'a Way) -> BoxFuture<'a, Result<Addr, ResolveError>>;

    /// Returns whether its paths lead straight to the peer. Other paths give these a head start.
    fn is_direct(&self) -> bool {
        false
    }
}

/// Why a way cannot be dialled. Users see the message.
#[derive(Clone, Debug, Error)]
pub enum ResolveError {
    /// A later attempt gets the same answer.
    #[error("{0}")]
    Final(String),
    /// The carrier works, but the peer is not there. It may come at any time.
    #[error("{0}")]
    NoPeer(String),
    /// The carrier cannot be used at present.
    #[error("{0}")]
    Unavailable(String),
}

/// Opens a carrier for each socket of a node.
pub trait CarrierFactory: Send + Sync + Debug {
    /// Opens the carrier for one more socket. The socket drops it at its end.
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
    /// Its transport of datagrams, whose kind no other carrier has.
    pub mover: Arc<dyn MoverFactory>,
}

/// Signals that [`Carrier::own_ways`] has changed, and so updates records and tickets.
pub type WaysChanged = Arc<dyn Fn() + Send + Sync>;
