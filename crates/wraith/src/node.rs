//! A node: an identity with the places where it meets others, from which everything else is made.

use std::collections::HashSet;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::runtime::Handle;
use wraith_crypto::{NodeId, Policy, SecretIdentity};
use wraith_dht::{Dht, DhtConfig};
use wraith_discovery::contact::usual_port;
use wraith_discovery::{Lan, MeetingPlace, Places, rendezvous};
use wraith_relay::Relays;
use wraith_transfer::ParallelConnections;
use wraith_transfer::limits::PARALLEL_MAX;
use wraith_transport::congestion::ControllerFactory;
use wraith_transport::mover::Sockets;
use wraith_transport::qlog::SinkFactory;
use wraith_transport::{Addr, Algorithm, Config, DoorKey, Endpoint, EndpointConfig};

use crate::error::{Cause, Error, ErrorKind, plain};
use crate::route::{Route, Routes};
use crate::state::{ContactStore, DhtNodes, Meeting, SpentCodes, StateDir};
use crate::ways::{Proxies, RelayServer, WaySettings};

/// Every address of this machine, IPv4 and IPv6, on a free port.
pub(crate) const ANY_ADDRESS: SocketAddr =
    SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0));
/// Silence after which a connection counts as lost. A peer sends keep-alives at a third of it, so three in a row must be
/// lost; a person who waits for a transfer to move on should not wait longer than this before it is made anew.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections of a listener at once. It attends to a few; the others may be losers of a race of addresses, or strangers.
const LISTENER_CONNECTIONS_MAX: usize = 64;
/// Cores for one connection: one for packets, one for files.
const CORES: usize = 2;
/// Most connections that can carry one transfer.
pub const CONNECTIONS_MAX: u8 = PARALLEL_MAX as u8 + 1;

/// How a sender adapts to the path.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// BBRv3: also fills a path that loses packets by itself.
    #[default]
    Bbr,
    /// CUBIC with HyStart++: shares a path as most of TCP does.
    Cubic,
}

/// An identity, what it remembers, and where it meets others. Clones are handles of the same node.
#[derive(Clone, Debug)]
pub struct Node(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    identity: SecretIdentity,
    state: StateDir,
    spent_codes: Arc<SpentCodes>,
    places: Places,
    dht: Option<Dht>,
    ways: WaySettings,
    routes: Routes,
    congestion: Arc<dyn ControllerFactory>,
    policy: Policy,
    qlog: Option<Arc<dyn SinkFactory>>,
    runtime: Handle,
}

/// A node that is being set up.
#[must_use = "nothing is made before build()"]
#[derive(Debug, Default)]
pub struct NodeBuilder {
    identity: Option<SecretIdentity>,
    state: Option<StateDir>,
    places: Places,
    dht_bootstrap: Option<Vec<String>>,
    ways: WaySettings,
    congestion: Option<Arc<dyn ControllerFactory>>,
    policy: Policy,
    qlog: Option<Arc<dyn SinkFactory>>,
    runtime: Option<Handle>,
}

impl NodeBuilder {
    /// Who this node is. By default the identity of its state, or a new one.
    pub fn identity(mut self, identity: SecretIdentity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Where it remembers contacts and unfinished transfers. Without this, in memory only.
    pub fn state(mut self, state: StateDir) -> Self {
        self.state = Some(state);
        self
    }

    /// Meets others on this local network: on all interfaces, unless this says something else.
    pub fn lan(mut self, lan: Lan) -> Self {
        self.places.lan = lan;
        self
    }

    /// Meets others at this rendezvous server too, `HOST` or `HOST:PORT`.
    pub fn rendezvous(mut self, server: &str) -> Self {
        self.places.rendezvous = Some(rendezvous_address(server));
        self
    }

    /// Meets others at this place too.
    pub fn place(mut self, place: Arc<dyn MeetingPlace>) -> Self {
        self.places.others.push(place);
        self
    }

    /// Meets others at these places only, in place of everything that was named before.
    pub fn places(mut self, places: Places) -> Self {
        self.places = places;
        self
    }

    /// Finds others, and is found by who has a ticket, a code or is a contact, over the Mainline DHT: as a client, which answers nobody and
    /// is silent while nothing is looked for. It begins at `bootstrap`, nodes as `HOST:PORT`; at the usual public ones if there are none.
    pub fn dht(mut self, bootstrap: Vec<String>) -> Self {
        self.dht_bootstrap = Some(bootstrap);
        self
    }

    /// Whether the router is asked to lead others to a socket that is dialled (PCP, NAT-PMP, UPnP). It is not, by default.
    pub fn port_mapping(mut self, ask: bool) -> Self {
        self.ways.port_mapping = ask;
        self
    }

    /// Waits at this relay too, and goes through it where nothing else gets through.
    pub fn relay(mut self, relay: RelayServer) -> Self {
        self.ways.relays.push(relay);
        self
    }

    /// Reaches relays and rendezvous servers through these. What goes straight to the other machine does not: who does not want that
    /// says [`relay_only`](Self::relay_only).
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.ways.connect = Arc::new(proxies);
        self
    }

    /// Uses no relay, whoever names one.
    pub fn direct_only(mut self) -> Self {
        self.ways.direct_only = true;
        self
    }

    /// Uses nothing but relays, and tells nobody an address of this machine.
    pub fn relay_only(mut self) -> Self {
        self.ways.relay_only = true;
        self
    }

    /// How what this node sends adapts to the path.
    pub fn congestion(self, congestion: Congestion) -> Self {
        let algorithm = match congestion {
            Congestion::Bbr => Algorithm::Bbr,
            Congestion::Cubic => Algorithm::Cubic,
        };
        self.controller(algorithm.into())
    }

    /// The same with a controller of one's own.
    pub fn controller(mut self, factory: Arc<dyn ControllerFactory>) -> Self {
        self.congestion = Some(factory);
        self
    }

    /// Packets are sealed only with what this policy allows, and nobody is answered who wants something else.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Writes down what happens to the packets of each connection, such as with a [`QlogWriter`](crate::QlogWriter).
    pub fn qlog(mut self, sinks: Arc<dyn SinkFactory>) -> Self {
        self.qlog = Some(sinks);
        self
    }

    /// Works on this runtime. By default on the one it is built in.
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// # Errors
    /// The state cannot be read or made, or there is no tokio runtime.
    pub fn build(self) -> Result<Node, Error> {
        let runtime = match self.runtime {
            Some(runtime) => runtime,
            None => Handle::try_current()
                .map_err(|error| Error::new(ErrorKind::Other, error.to_string()))?,
        };
        let state = match self.state {
            Some(state) => state,
            None => StateDir::in_memory()?,
        };
        let identity = match self.identity {
            Some(identity) => identity,
            None => state.identity()?,
        };
        let Self { mut places, ways, congestion, policy, qlog, .. } = self;
        places.connect.get_or_insert_with(|| ways.connect.clone());
        let dht = self.dht_bootstrap.map(|bootstrap| dht(bootstrap, &state));
        places.stores.extend(dht.iter().map(|dht| Arc::new(dht.clone()) as Arc<_>));
        let congestion = congestion.unwrap_or_else(|| Algorithm::Bbr.into());
        let spent_codes = Arc::new(SpentCodes::of(&state, &identity));
        let routes = Routes::default();
        Ok(Node(Arc::new(Inner {
            identity,
            state,
            spent_codes,
            places,
            dht,
            ways,
            routes,
            congestion,
            policy,
            qlog,
            runtime,
        })))
    }
}

impl Node {
    /// A node that is being set up.
    pub fn builder() -> NodeBuilder {
        NodeBuilder::default()
    }

    /// Who this node is.
    pub fn id(&self) -> NodeId {
        self.0.identity.node_id()
    }

    /// Where it meets others.
    pub fn places(&self) -> &Places {
        &self.0.places
    }

    /// Keeps what it learned of the DHT for the next run.
    pub(crate) fn remember_dht(&self) {
        if let Some(dht) = &self.0.dht {
            DhtNodes::of(&self.0.state).write(&dht.good_nodes());
        }
    }

    pub(crate) fn way_settings(&self) -> &WaySettings {
        &self.0.ways
    }

    /// Whom it knows.
    pub fn contacts(&self) -> ContactStore {
        self.0.state.contacts()
    }

    /// What it remembers.
    pub fn state(&self) -> &StateDir {
        &self.0.state
    }

    /// The secret key behind [`Self::id`]: it signs what this node confirms.
    pub fn identity(&self) -> &SecretIdentity {
        &self.0.identity
    }

    /// Which way leads to a peer of this node.
    pub fn route(&self, remote: &Addr) -> Route {
        self.0.routes.route(remote)
    }

    /// A peer's address for people and scripts: an IP address and port, or those of the relay that leads there.
    pub fn shown(&self, remote: &Addr) -> String {
        self.0.routes.shown(remote)
    }

    pub(crate) fn routes(&self) -> &Routes {
        &self.0.routes
    }

    /// Some nodes of the DHT, to be asked one question.
    pub(crate) async fn dht_nodes(&self, count: usize) -> Vec<SocketAddrV4> {
        match &self.0.dht {
            Some(dht) => dht.nodes_to_ask(count).await,
            None => Vec::new(),
        }
    }

    /// The codes that it has tried.
    pub(crate) fn spent_codes(&self) -> &Arc<SpentCodes> {
        &self.0.spent_codes
    }

    pub(crate) fn runtime(&self) -> &Handle {
        &self.0.runtime
    }

    /// The socket of a side that is dialled.
    pub(crate) fn bind_accepting(
        &self,
        address: SocketAddr,
        doors: Vec<DoorKey>,
    ) -> Result<Socket, Error> {
        let mut core = self.config();
        core.doors = doors;
        bind(core, address)
    }

    /// The socket of a side that only dials.
    pub(crate) fn bind_dialling(&self) -> Result<Socket, Error> {
        self.bind_dialling_at(ANY_ADDRESS)
    }

    pub(crate) fn bind_dialling_at(&self, address: SocketAddr) -> Result<Socket, Error> {
        bind(self.config(), address)
    }

    /// The socket of a listener. `admitted`: of those who have a door, only who is in it gets an answer.
    pub(crate) fn bind_listening(
        &self,
        address: SocketAddr,
        doors: Vec<DoorKey>,
        admitted: Option<HashSet<NodeId>>,
    ) -> Result<Socket, Error> {
        let mut core = self.config();
        core.doors = doors;
        core.admitted = admitted;
        core.connections_max = LISTENER_CONNECTIONS_MAX;
        bind(core, address)
    }

    fn config(&self) -> EndpointConfig {
        let mut core = EndpointConfig::new(self.0.identity.clone());
        core.transport.idle_timeout = IDLE_TIMEOUT;
        core.transport.keep_alive = true;
        core.transport.congestion = Arc::clone(&self.0.congestion);
        core.transport.qlog = self.0.qlog.clone();
        core.transport.suites = self.0.policy.packet_suites();
        core
    }

    /// The further connections of a sender, which the receiver makes to `address`.
    pub(crate) fn parallel_to_send(
        &self,
        wanted: Option<u8>,
        address: IpAddr,
    ) -> ParallelConnections {
        let node = self.clone();
        let address = SocketAddr::new(address, 0);
        let parallel = ParallelConnections::new(further(wanted), move || {
            // The transfer makes the door.
            node.bind_accepting(address, Vec::new())
                .map(|socket| socket.endpoint)
                .map_err(std::io::Error::other)
        });
        if wanted.is_some() { parallel.at_once() } else { parallel }
    }

    /// The further connections that a receiver makes.
    pub(crate) fn parallel_to_receive(&self, wanted: Option<u8>) -> ParallelConnections {
        let node = self.clone();
        ParallelConnections::new(further(wanted), move || {
            node.bind_dialling().map(|socket| socket.endpoint).map_err(std::io::Error::other)
        })
    }

    /// A contact was met at `remote`; if it listens, then there, at its usual port.
    pub(crate) fn remember_meeting(&self, peer: NodeId, remote: &Addr) {
        self.remember(peer, &self.meeting(peer, remote));
    }

    /// A contact was met. Who is none is not remembered.
    pub(crate) fn remember(&self, peer: NodeId, meeting: &Meeting) {
        let contacts = self.contacts();
        if !contacts.load().is_ok_and(|book| book.with(peer).is_some()) {
            return;
        }
        let met = contacts.change::<_, Error>(|book| {
            book.met(peer, meeting, Timestamp::now());
            Ok(())
        });
        // The transfer is done; that it is not remembered where somebody was is no reason to call it failed.
        if let Err(error) = met {
            tracing::warn!(%error, "a meeting is not remembered");
        }
    }

    /// Where a peer that was seen at `remote` can be met another time.
    pub fn meeting(&self, peer: NodeId, remote: &Addr) -> Meeting {
        let at = remote.ip().map(|at| SocketAddr::new(at.ip().to_canonical(), usual_port(peer)));
        Meeting { at, rendezvous: self.0.places.rendezvous.clone() }
    }
}

fn dht(bootstrap: Vec<String>, state: &StateDir) -> Dht {
    let remembered = DhtNodes::of(state).read();
    let mut config = DhtConfig { remembered, ..DhtConfig::default() };
    if !bootstrap.is_empty() {
        config.bootstrap = bootstrap;
    }
    Dht::new(config)
}

/// A socket, and by what else connections of it may go: relays, and sockets that are opened when they are needed.
#[derive(Debug)]
pub(crate) struct Socket {
    pub endpoint: Endpoint,
    pub relays: Relays,
    pub further: Sockets,
}

fn bind(core: EndpointConfig, address: SocketAddr) -> Result<Socket, Error> {
    let bound = Relays::new().and_then(|relays| {
        let further = Sockets::new()?;
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

/// Connections beyond the first.
fn further(wanted: Option<u8>) -> usize {
    let by_cores = || std::thread::available_parallelism().map_or(1, usize::from) / CORES;
    wanted.map_or_else(by_cores, usize::from).saturating_sub(1)
}

/// The places where somebody bound to `address` can be met: who cannot reach it there need not hear of it.
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

/// A rendezvous server as `HOST:PORT`, with the usual port where none is given.
pub fn rendezvous_address(server: &str) -> String {
    let bare_ipv6 = server.parse::<Ipv6Addr>().is_ok();
    let port = rendezvous::DEFAULT_PORT;
    if bare_ipv6 {
        format!("[{server}]:{port}")
    } else if server.contains(':') && !server.ends_with(']') {
        server.to_owned()
    } else {
        format!("{server}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_without_a_port_gets_the_usual_one() {
        for (given, meant) in [
            ("example.org", "example.org:49737"),
            ("example.org:1", "example.org:1"),
            ("192.0.2.1", "192.0.2.1:49737"),
            ("2001:db8::1", "[2001:db8::1]:49737"),
            ("[2001:db8::1]", "[2001:db8::1]:49737"),
            ("[2001:db8::1]:1", "[2001:db8::1]:1"),
        ] {
            assert_eq!(rendezvous_address(given), meant);
        }
    }

    #[test]
    fn without_a_runtime_a_node_says_so_instead_of_panicking() {
        let error = Node::builder().build().unwrap_err();
        assert!(error.to_string().contains("runtime"), "{error}");
    }
}
