//! A node: an identity (a key pair), its state, and its meeting places, at which it finds peers.
//! Every operation of this crate starts from a node.

mod builder;
mod pool;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use jiff::Timestamp;
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_discovery::Places;
use wraith_discovery::contact::usual_port;
use wraith_transfer::ParallelConnections;
use wraith_transfer::limits::PARALLEL_MAX;
use wraith_transport::{Addr, Door};

pub use self::builder::{NodeBuilder, rendezvous_address};
use self::pool::Pool;
pub(crate) use self::pool::PoolKey;
pub use self::pool::SharedConnection;
use crate::error::{Error, ErrorKind};
use crate::node_core::{ANY_ADDRESS, KeyHistory, NodeCore, NodeTasks};
use crate::paths::{Binding, SharedSockets, SocketPaths};
use crate::route::Route;
use crate::state::{
    Contact, ContactNameError, ContactStore, DhtNodes, LastSeen, SpentCodes, StateDir,
};

/// CPU cores per connection: one for packets, one for files.
const CORES: usize = 2;
/// Maximum number of connections that carry one transfer.
pub const CONNECTIONS_MAX: u8 = PARALLEL_MAX as u8 + 1;

/// Congestion control algorithm of a sender.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// BBRv3: also fills a path with random loss.
    #[default]
    Bbr,
    /// CUBIC with HyStart++: shares a path fairly with most TCP traffic.
    Cubic,
}

/// Several nodes that are closed together, for example all nodes of a program. Clones are handles
/// of the same group. See [`NodeBuilder::group`].
#[derive(Clone, Debug, Default)]
pub struct NodeGroup(NodeTasks);

impl NodeGroup {
    /// Closes all nodes of the group, as [`Node::close`] does, and waits at most 5 s. Nodes that
    /// join later are closed from the beginning.
    pub async fn close(&self) {
        self.0.close().await;
    }
}

/// An identity, its state and its meeting places. Clones are handles of the same node.
#[derive(Clone, Debug)]
pub struct Node(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    core: Arc<NodeCore>,
    spent_codes: Arc<SpentCodes>,
    tasks: NodeTasks,
    sockets: SharedSockets,
    pool: Pool,
}

impl Node {
    /// Returns a builder with the default configuration.
    pub fn builder() -> NodeBuilder {
        NodeBuilder::default()
    }

    /// Returns the NodeId of this node.
    pub fn id(&self) -> NodeId {
        self.0.core.identity.node_id()
    }

    /// Cancels all offers, fetches and listeners of this node, and waits until their peers are
    /// notified and received data is stored, at most 5 s. Services accept no more callers; raw
    /// connections stay open. Operations that start later fail with [`ErrorKind::Cancelled`], and so
    /// does an offer that was being started.
    ///
    /// A program calls this before it ends. Drop of the last handle cancels nothing that was
    /// detached.
    pub async fn close(&self) {
        self.0.pool.clear();
        self.0.tasks.close().await;
    }

    /// Returns the part of this node below its sockets.
    pub(crate) fn core(&self) -> &NodeCore {
        &self.0.core
    }

    /// Returns the connections that callers share.
    pub(crate) fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// Fails if the node was closed.
    pub(crate) fn check_open(&self) -> Result<(), Error> {
        match self.0.tasks.token().is_cancelled() {
            true => Err(Error::new(ErrorKind::Cancelled, "the node was closed")),
            false => Ok(()),
        }
    }

    pub(crate) fn tasks(&self) -> &NodeTasks {
        &self.0.tasks
    }

    /// Returns the configured meeting places.
    pub fn places(&self) -> &Places {
        &self.0.core.places
    }

    /// Stores the good DHT nodes for the next run.
    pub(crate) fn store_dht_nodes(&self) {
        if let Some(dht) = &self.0.core.dht {
            DhtNodes::of(&self.0.core.state).write(&dht.good_nodes());
        }
    }

    /// Returns the store of contacts.
    pub fn contacts(&self) -> ContactStore {
        self.0.core.state.contacts()
    }

    /// Returns the contact of this name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if no contact can have this name; [`ErrorKind::NotFound`] if none
    /// has it; the contacts cannot be read.
    pub fn contact(&self, name: &str) -> Result<Contact, Error> {
        let invalid =
            |error: ContactNameError| Error::new(ErrorKind::InvalidInput, error.to_string());
        let parsed = name.parse().map_err(invalid)?;
        let missing =
            || Error::new(ErrorKind::NotFound, format!("there is no contact named {name}"));
        self.contacts().load()?.named(&parsed).cloned().ok_or_else(missing)
    }

    /// Returns the persistent state of this node.
    pub fn state(&self) -> &StateDir {
        &self.0.core.state
    }

    /// Returns the secret key behind [`Self::id`]. It signs the receipts of this node.
    pub fn identity(&self) -> &SecretIdentity {
        &self.0.core.identity
    }

    /// Returns the kind of path that leads to a peer of this node.
    pub fn route(&self, remote: &Addr) -> Route {
        self.0.core.routes.route(remote)
    }

    /// Formats a peer's address for people and scripts: an IP address and port, or those of the
    /// relay in between.
    pub fn shown(&self, remote: &Addr) -> String {
        self.0.core.routes.shown(remote)
    }

    /// Returns the record of codes that this node has tried.
    pub(crate) fn spent_codes(&self) -> &Arc<SpentCodes> {
        &self.0.spent_codes
    }

    /// Returns the settings for a sender's parallel connections, which the receiver dials at
    /// `address`.
    pub(crate) fn parallel_to_send(
        &self,
        wanted: Option<u8>,
        address: IpAddr,
    ) -> ParallelConnections {
        let core = Arc::clone(&self.0.core);
        let address = SocketAddr::new(address, 0);
        let parallel = ParallelConnections::new(further(wanted), move || {
            // The transfer sets the access key, which it derives from the connection's secrets.
            let door = core.door(Vec::new(), KeyHistory::OfThisProcess);
            let bound = core.bind(address, door, Vec::new()).map(|socket| socket.endpoint);
            bound.map_err(std::io::Error::other)
        });
        if wanted.is_some() { parallel.at_once() } else { parallel }
    }

    /// Returns the settings for the parallel connections that a receiver dials.
    pub(crate) fn parallel_to_receive(&self, wanted: Option<u8>) -> ParallelConnections {
        let core = Arc::clone(&self.0.core);
        ParallelConnections::new(further(wanted), move || {
            let bound =
                core.bind(ANY_ADDRESS, Door::default(), Vec::new()).map(|socket| socket.endpoint);
            bound.map_err(std::io::Error::other)
        })
    }

    /// Opens a socket, or a door of a shared one, for a new role.
    ///
    /// # Errors
    /// The address is in use, or the system provides no socket.
    pub(crate) fn open_paths(&self, binding: Binding, door: Door) -> Result<SocketPaths, Error> {
        self.0.sockets.open(&self.0.core, binding, door)
    }

    /// Records that a contact was met at `remote`. A listening contact can be reached there again,
    /// at its usual port.
    pub(crate) fn store_last_seen(&self, peer: NodeId, remote: &Addr) {
        self.store_contact_seen(peer, &self.last_seen(peer, remote));
    }

    /// Records where a contact was seen. Does nothing if the peer is not a contact.
    pub(crate) fn store_contact_seen(&self, peer: NodeId, last_seen: &LastSeen) {
        let contacts = self.contacts();
        if !contacts.load().is_ok_and(|book| book.with(peer).is_some()) {
            return;
        }
        let met = contacts.change::<_, Error>(|book| {
            book.record_seen(peer, last_seen, Timestamp::now());
            Ok(())
        });
        // The transfer is complete. A failure to record the peer's address must not fail it.
        if let Err(error) = met {
            tracing::warn!(%error, "cannot store the address of a contact");
        }
    }

    /// Returns where a peer seen at `remote` can be met again.
    pub fn last_seen(&self, peer: NodeId, remote: &Addr) -> LastSeen {
        let at = remote.ip().map(|at| SocketAddr::new(at.ip().to_canonical(), usual_port(peer)));
        LastSeen { at, rendezvous: self.0.core.places.rendezvous.clone() }
    }
}

/// Returns the number of connections beyond the first.
fn further(wanted: Option<u8>) -> usize {
    let by_cores = || std::thread::available_parallelism().map_or(1, usize::from) / CORES;
    wanted.map_or_else(by_cores, usize::from).saturating_sub(1)
}
