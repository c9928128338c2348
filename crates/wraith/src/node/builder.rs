//! Configures a node.

use std::net::Ipv6Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use wraith_crypto::{Backends, Policy, SecretIdentity};
use wraith_dht::{Dht, DhtConfig};
use wraith_discovery::{Lan, MeetingPlace, Places, rendezvous};
use wraith_transport::Algorithm;
use wraith_transport::congestion::ControllerFactory;
use wraith_transport::qlog::SinkFactory;

use super::pool::{IDLE, Pool};
use super::{Congestion, Inner, Node, NodeGroup};
use crate::carrier::CarrierFactory;
use crate::error::{Error, ErrorKind};
use crate::node_core::{NodeCore, PathSettings, PeerRelays, Proxies, RelayServer};
use crate::paths::SharedSockets;
use crate::route::Routes;
use crate::state::{DhtNodes, SpentCodes, StateDir};

/// Configures a [`Node`].
#[must_use = "nothing is made before build()"]
#[derive(Debug, Default)]
pub struct NodeBuilder {
    identity: Option<SecretIdentity>,
    state: Option<StateDir>,
    places: Places,
    dht_bootstrap: Option<Vec<String>>,
    carriers: Vec<Arc<dyn CarrierFactory>>,
    paths: PathSettings,
    congestion: Option<Arc<dyn ControllerFactory>>,
    policy: Policy,
    qlog: Option<Arc<dyn SinkFactory>>,
    runtime: Option<Handle>,
    group: NodeGroup,
    idle_connections: Option<Duration>,
}

impl NodeBuilder {
    /// Sets the long-term identity of this node. Default: the identity stored in its state, or a
    /// new one.
    pub fn identity(mut self, identity: SecretIdentity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets where the node stores contacts and unfinished transfers. Default: in memory only.
    pub fn state(mut self, state: StateDir) -> Self {
        self.state = Some(state);
        self
    }

    /// Selects the local interfaces for discovery on the local network. Default: all.
    pub fn lan(mut self, lan: Lan) -> Self {
        self.places.lan = lan;
        self
    }

    /// Also meets peers at this rendezvous server, given as `HOST` or `HOST:PORT`.
    pub fn rendezvous(mut self, server: &str) -> Self {
        self.places.rendezvous = Some(rendezvous_address(server));
        self
    }

    /// Also meets peers at this meeting place.
    pub fn place(mut self, place: Arc<dyn MeetingPlace>) -> Self {
        self.places.others.push(place);
        self
    }

    /// Replaces all meeting places configured so far.
    pub fn places(mut self, places: Places) -> Self {
        self.places = places;
        self
    }

    /// Discovers peers over the Mainline DHT, and is discoverable there by contacts and by peers
    /// that have a ticket or a code.
    ///
    /// The node is a DHT client only: it answers no queries, and it is silent while no lookup runs.
    /// `bootstrap` lists the first nodes as `HOST:PORT`; if it is empty, the usual public nodes are
    /// used.
    pub fn dht(mut self, bootstrap: Vec<String>) -> Self {
        self.dht_bootstrap = Some(bootstrap);
        self
    }

    /// Enables port mapping (PCP, NAT-PMP, UPnP) for sockets that accept connections. Default: off.
    pub fn port_mapping(mut self, ask: bool) -> Self {
        self.paths.port_mapping = ask;
        self
    }

    /// Also waits at this relay, and uses it if no direct path works.
    pub fn relay(mut self, relay: RelayServer) -> Self {
        self.paths.relays.push(relay);
        self
    }

    /// Also reaches peers, and is reachable, over this carrier: a transport besides UDP and relays.
    /// Also sockets that are bound to one address use it. [`relay_only`](Self::relay_only) turns it
    /// off. A node has at most five carriers.
    pub fn carrier(mut self, carrier: Arc<dyn CarrierFactory>) -> Self {
        self.carriers.push(carrier);
        self
    }

    /// Connects to relays and rendezvous servers through these proxies. Direct traffic to a peer
    /// bypasses them; use [`relay_only`](Self::relay_only) to prevent that.
    pub fn proxies(mut self, proxies: Proxies) -> Self {
        self.paths.proxies = Arc::new(proxies);
        self
    }

    /// Shows the NodeId to a relay of [`relay`](Self::relay) that admits only certain identities.
    /// By default no relay sees it.
    pub fn relay_identity(mut self) -> Self {
        self.paths.relay_identity = true;
        self
    }

    /// Selects which relays a peer may choose for this node. Default: [`PeerRelays::Public`], and
    /// [`PeerRelays::Own`] after [`relay_only`](Self::relay_only) without a proxy, because this
    /// machine connects to the relay itself.
    pub fn peer_relays(mut self, peer_relays: PeerRelays) -> Self {
        self.paths.peer_relays = Some(peer_relays);
        self
    }

    /// Uses no relay, even if a peer names one.
    pub fn direct_only(mut self) -> Self {
        self.paths.direct_only = true;
        self
    }

    /// Uses relays only, and sends no address of this machine to any peer.
    pub fn relay_only(mut self) -> Self {
        self.paths.relay_only = true;
        self
    }

    /// Selects the congestion control algorithm for data that this node sends.
    pub fn congestion(self, congestion: Congestion) -> Self {
        let algorithm = match congestion {
            Congestion::Bbr => Algorithm::Bbr,
            Congestion::Cubic => Algorithm::Cubic,
        };
        self.controller(algorithm.into())
    }

    /// Like [`congestion`](Self::congestion), with a custom controller.
    pub fn controller(mut self, factory: Arc<dyn ControllerFactory>) -> Self {
        self.congestion = Some(factory);
        self
    }

    /// Restricts the cipher suites for packets. The node does not answer peers that require a suite
    /// outside of the policy. [`Policy::Sm`] needs the cargo feature `sm4`.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Requests the implementations of the cryptography for the whole process, at this call.
    /// [`Backends::Conservative`] excludes wraith's vector kernels; [`Backends::Fast`] also uses
    /// them for work on keys. Without a request, kernels compute packets, hashes and bulk encryption
    /// only. The most conservative of all requests and `WRAITH_BACKENDS` wins;
    /// [`Backends::chosen`] returns the result. Existing keys keep their implementation.
    pub fn backends(self, backends: Backends) -> Self {
        backends.request();
        self
    }

    /// Logs packet events of each connection, for example with a [`QlogWriter`](crate::QlogWriter).
    pub fn qlog(mut self, sinks: Arc<dyn SinkFactory>) -> Self {
        self.qlog = Some(sinks);
        self
    }

    /// Runs on this runtime. Default: the current runtime at the time of [`build`](Self::build).
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Sets how long a [shared connection](crate::ConnectBuilder::shared) is kept after its last
    /// caller has dropped it. Default: one minute.
    pub fn idle_connections(mut self, idle: Duration) -> Self {
        self.idle_connections = Some(idle);
        self
    }

    /// Makes the node a member of this group, which can be closed as a whole.
    pub fn group(mut self, group: &NodeGroup) -> Self {
        self.group = group.clone();
        self
    }

    /// Builds the node.
    ///
    /// # Errors
    /// The state cannot be read or created, there is no tokio runtime, or the program was built
    /// without the ciphers of the policy.
    pub fn build(self) -> Result<Node, Error> {
        self.policy.check_built()?;
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
        let Self { mut places, paths, carriers, congestion, policy, qlog, group, .. } = self;
        places.connect.get_or_insert_with(|| paths.proxies.clone());
        let dht = self.dht_bootstrap.map(|bootstrap| dht(bootstrap, &state));
        places.stores.extend(dht.iter().map(|dht| Arc::new(dht.clone()) as Arc<_>));
        let congestion = congestion.unwrap_or_else(|| Algorithm::Bbr.into());
        let spent_codes = Arc::new(SpentCodes::of(&state, &identity));
        let core = NodeCore {
            identity,
            state,
            places,
            dht,
            carriers,
            paths,
            routes: Routes::default(),
            congestion,
            policy,
            qlog,
            runtime,
        };
        Ok(Node(Arc::new(Inner {
            core: Arc::new(core),
            spent_codes,
            tasks: group.0.new_member(),
            sockets: SharedSockets::default(),
            pool: Pool::new(self.idle_connections.unwrap_or(IDLE)),
        })))
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

/// Formats a rendezvous server as `HOST:PORT`; adds the default port if none is given.
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
