//! A node: an identity (a key pair), its state, and its meeting places, at which it finds peers.
//! Every operation of this crate starts from a node.

mod builder;

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::Handle;
use wraith_crypto::{NodeId, Policy, SecretIdentity};
use wraith_dht::Dht;
use wraith_discovery::contact::usual_port;
use wraith_discovery::{Lan, Places};
use wraith_relay::Relays;
use wraith_transfer::ParallelConnections;
use wraith_transfer::limits::PARALLEL_MAX;
use wraith_transport::congestion::ControllerFactory;
use wraith_transport::mover::SocketPool;
use wraith_transport::qlog::SinkFactory;
use wraith_transport::{
    AccessKey, Addr, Config, Door, Endpoint, EndpointConfig, SharedHandshakeLog,
};

pub use self::builder::{NodeBuilder, rendezvous_address};
use crate::engine::task::NodeTasks;
use crate::error::{Cause, Error, ErrorKind, plain};
use crate::paths::{PathSettings, SharedSockets};
use crate::route::{Route, Routes};
use crate::service::Pool;
use crate::state::{
    Contact, ContactNameError, ContactStore, DhtNodes, HandshakeLogFile, LastSeen, SpentCodes,
    StateDir,
};

/// All local addresses, IPv4 and IPv6, on a port chosen by the system.
pub(crate) const ANY_ADDRESS: SocketAddr =
    SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0));
/// Idle timeout: a connection counts as lost after this much silence. A peer sends keep-alives at a
/// third of it, so three in a row must be lost. It is also the longest time that a user should wait
/// before the transfer reconnects.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of connections of a socket, for all roles together. Each role has a limit of its
/// own, so a full one does not lock out the peers of the others.
const CONNECTIONS_OF_SOCKET_MAX: usize = 4096;
/// Maximum number of connections of an offer or a service: 16 of them fill a socket. An offer serves
/// 64 receivers at a time.
const CONNECTIONS_OF_ROLE_MAX: usize = CONNECTIONS_OF_SOCKET_MAX / 16;
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
    identity: SecretIdentity,
    state: StateDir,
    spent_codes: Arc<SpentCodes>,
    places: Places,
    dht: Option<Dht>,
    paths: PathSettings,
    routes: Routes,
    congestion: Arc<dyn ControllerFactory>,
    policy: Policy,
    qlog: Option<Arc<dyn SinkFactory>>,
    runtime: Handle,
    tasks: NodeTasks,
    shared_sockets: SharedSockets,
    pool: Pool,
}

impl Node {
    /// Returns a builder with the default configuration.
    pub fn builder() -> NodeBuilder {
        NodeBuilder::default()
    }

    /// Returns the NodeId of this node.
    pub fn id(&self) -> NodeId {
        self.0.identity.node_id()
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
        &self.0.places
    }

    /// Stores the good DHT nodes for the next run.
    pub(crate) fn store_dht_nodes(&self) {
        if let Some(dht) = &self.0.dht {
            DhtNodes::of(&self.0.state).write(&dht.good_nodes());
        }
    }

    pub(crate) fn path_settings(&self) -> &PathSettings {
        &self.0.paths
    }

    /// Returns the store of contacts.
    pub fn contacts(&self) -> ContactStore {
        self.0.state.contacts()
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
        &self.0.state
    }

    /// Returns the secret key behind [`Self::id`]. It signs the receipts of this node.
    pub fn identity(&self) -> &SecretIdentity {
        &self.0.identity
    }

    /// Returns the kind of path that leads to a peer of this node.
    pub fn route(&self, remote: &Addr) -> Route {
        self.0.routes.route(remote)
    }

    /// Formats a peer's address for people and scripts: an IP address and port, or those of the
    /// relay in between.
    pub fn shown(&self, remote: &Addr) -> String {
        self.0.routes.shown(remote)
    }

    pub(crate) fn routes(&self) -> &Routes {
        &self.0.routes
    }

    /// Returns up to `count` DHT nodes for a single query.
    pub(crate) async fn dht_nodes(&self, count: usize) -> Vec<SocketAddrV4> {
        match &self.0.dht {
            Some(dht) => dht.nodes_to_query(count).await,
            None => Vec::new(),
        }
    }

    /// Returns the record of codes that this node has tried.
    pub(crate) fn spent_codes(&self) -> &Arc<SpentCodes> {
        &self.0.spent_codes
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    /// Returns the sockets that the roles of this node share.
    pub(crate) fn shared_sockets(&self) -> &SharedSockets {
        &self.0.shared_sockets
    }

    /// Returns a door that admits the holders of these access keys.
    pub(crate) fn door(&self, access_keys: Vec<AccessKey>, history: KeyHistory) -> Door {
        let handshake_log = match history {
            KeyHistory::OfThisProcess => SharedHandshakeLog::default(),
            KeyHistory::New | KeyHistory::Used => self.handshake_log(),
        };
        let access_keys_are_new = history != KeyHistory::Used;
        let connections_max = CONNECTIONS_OF_ROLE_MAX;
        Door { access_keys, access_keys_are_new, handshake_log, connections_max, ..Door::default() }
    }

    /// Binds a socket. `first` are the rules of its first door.
    pub(crate) fn bind(&self, address: SocketAddr, first: Door) -> Result<Socket, Error> {
        let mut core = self.config();
        core.door = first;
        bind(core, address)
    }

    /// Returns the log of handshakes of this identity.
    pub(crate) fn handshake_log(&self) -> SharedHandshakeLog {
        match self.0.state.folder() {
            Some(folder) => {
                SharedHandshakeLog::new(Arc::new(HandshakeLogFile::of(folder, self.id())))
            }
            None => SharedHandshakeLog::default(),
        }
    }

    /// Returns the packet suites that the policy permits, as bits.
    pub(crate) fn packet_suites(&self) -> u8 {
        self.0.policy.packet_suites()
    }

    fn config(&self) -> EndpointConfig {
        let mut core = EndpointConfig::new(self.0.identity.clone());
        core.connections_max = CONNECTIONS_OF_SOCKET_MAX;
        core.transport.idle_timeout = IDLE_TIMEOUT;
        core.transport.keep_alive = true;
        core.transport.congestion = Arc::clone(&self.0.congestion);
        core.transport.qlog = self.0.qlog.clone();
        core.transport.suites = self.packet_suites();
        core
    }

    /// Returns the settings for a sender's parallel connections, which the receiver dials at
    /// `address`.
    pub(crate) fn parallel_to_send(
        &self,
        wanted: Option<u8>,
        address: IpAddr,
    ) -> ParallelConnections {
        let node = self.clone();
        let address = SocketAddr::new(address, 0);
        let parallel = ParallelConnections::new(further(wanted), move || {
            // The transfer sets the access key, which it derives from the connection's secrets.
            let door = node.door(Vec::new(), KeyHistory::OfThisProcess);
            let bound = node.bind(address, door).map(|socket| socket.endpoint);
            bound.map_err(std::io::Error::other)
        });
        if wanted.is_some() { parallel.at_once() } else { parallel }
    }

    /// Returns the settings for the parallel connections that a receiver dials.
    pub(crate) fn parallel_to_receive(&self, wanted: Option<u8>) -> ParallelConnections {
        let node = self.clone();
        ParallelConnections::new(further(wanted), move || {
            let bound = node.bind(ANY_ADDRESS, Door::default()).map(|socket| socket.endpoint);
            bound.map_err(std::io::Error::other)
        })
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
        LastSeen { at, rendezvous: self.0.places.rendezvous.clone() }
    }
}

/// Which processes accept handshakes under an access key. If no earlier one did, the clocks of the
/// two sides may differ, even without a complete log of handshakes (SPEC §3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyHistory {
    /// Only this process, now or later. Nothing is logged.
    OfThisProcess,
    /// This process and perhaps later ones.
    New,
    /// Earlier processes too.
    Used,
}

/// A socket and its alternative paths: relays, and sockets that are opened on demand.
#[derive(Debug)]
pub(crate) struct Socket {
    pub endpoint: Endpoint,
    pub relays: Relays,
    pub further: SocketPool,
}

fn bind(core: EndpointConfig, address: SocketAddr) -> Result<Socket, Error> {
    let bound = Relays::new().and_then(|relays| {
        let further = SocketPool::new()?;
        let mut config = Config::new(core).bind(address);
        config.movers.push(Arc::new(relays.clone()));
        config.movers.push(Arc::new(further.clone()));
        Ok(Socket { endpoint: Endpoint::bind(config)?, relays, further })
    });
    bound.map_err(|error| {
        let message = match address == ANY_ADDRESS {
            true => format!("cannot open a socket: {}", plain(&error)),
            false => format!("cannot listen on {address}: {}", plain(&error)),
        };
        Error::because(ErrorKind::Other, message, Cause::CannotBind(address))
    })
}

/// Returns the number of connections beyond the first.
fn further(wanted: Option<u8>) -> usize {
    let by_cores = || std::thread::available_parallelism().map_or(1, usize::from) / CORES;
    wanted.map_or_else(by_cores, usize::from).saturating_sub(1)
}

/// Returns the meeting places for a socket bound to `bound`. Places whose users cannot reach that
/// address are left out.
pub(crate) fn reachable_places(places: &Places, bound: SocketAddr) -> Places {
    let mut places = places.clone();
    if let (false, Lan::All) = (bound.ip().is_unspecified(), &places.lan) {
        places.lan = Lan::With(bound.ip());
    }
    if bound.ip().is_loopback() {
        places.stores.clear();
    }
    places
}
