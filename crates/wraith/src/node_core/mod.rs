//! The part of a node below its sockets: its identity, its state, its meeting places and its
//! settings, and how they make a socket. The paths of a socket and the node itself share it.

mod path_settings;
mod proxies;
mod tasks;

use std::net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use wraith_crypto::{NodeId, Policy, SecretIdentity};
use wraith_dht::Dht;
use wraith_discovery::{Lan, Places};
use wraith_relay::Relays;
use wraith_transport::congestion::ControllerFactory;
use wraith_transport::mover::{MoverFactory, SocketPool};
use wraith_transport::qlog::SinkFactory;
use wraith_transport::{AccessKey, Config, Door, Endpoint, EndpointConfig, SharedHandshakeLog};

pub(crate) use self::path_settings::{PathSettings, host_and_port};
pub use self::path_settings::{PeerRelays, RelayServer, UnknownPeerRelays};
pub use self::proxies::Proxies;
pub(crate) use self::tasks::{CANCEL_WAIT, NodeTasks};
use crate::carrier::CarrierFactory;
use crate::error::{Cause, Error, ErrorKind, plain};
use crate::route::Routes;
use crate::state::{HandshakeLogFile, StateDir};

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

/// The shared part of a node (see the module docs).
#[derive(Debug)]
pub(crate) struct NodeCore {
    pub identity: SecretIdentity,
    pub state: StateDir,
    /// The configured meeting places.
    pub places: Places,
    pub dht: Option<Dht>,
    /// Carriers of the application.
    pub carriers: Vec<Arc<dyn CarrierFactory>>,
    pub paths: PathSettings,
    pub routes: Routes,
    pub congestion: Arc<dyn ControllerFactory>,
    pub policy: Policy,
    pub qlog: Option<Arc<dyn SinkFactory>>,
    pub runtime: Handle,
}

impl NodeCore {
    pub fn id(&self) -> NodeId {
        self.identity.node_id()
    }

    /// Returns up to `count` DHT nodes for a single query.
    pub async fn dht_nodes(&self, count: usize) -> Vec<SocketAddrV4> {
        match &self.dht {
            Some(dht) => dht.nodes_to_query(count).await,
            None => Vec::new(),
        }
    }

    /// Returns a door that admits the holders of these access keys.
    pub fn door(&self, access_keys: Vec<AccessKey>, history: KeyHistory) -> Door {
        let handshake_log = match history {
            KeyHistory::OfThisProcess => SharedHandshakeLog::default(),
            KeyHistory::New | KeyHistory::Used => self.handshake_log(),
        };
        let access_keys_are_new = history != KeyHistory::Used;
        let connections_max = CONNECTIONS_OF_ROLE_MAX;
        Door { access_keys, access_keys_are_new, handshake_log, connections_max, ..Door::default() }
    }

    /// Binds a socket. `first` are the rules of its first door, and `movers` those of carriers.
    pub fn bind(
        &self,
        address: SocketAddr,
        first: Door,
        movers: Vec<Arc<dyn MoverFactory>>,
    ) -> Result<Socket, Error> {
        let bound = Relays::new().and_then(|relays| {
            let further = SocketPool::new()?;
            let mut config = Config::new(self.config(first)).bind(address);
            config.movers = movers;
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

    /// Returns the log of handshakes of this identity.
    pub fn handshake_log(&self) -> SharedHandshakeLog {
        match self.state.folder() {
            Some(folder) => {
                SharedHandshakeLog::new(Arc::new(HandshakeLogFile::of(folder, self.id())))
            }
            None => SharedHandshakeLog::default(),
        }
    }

    fn config(&self, door: Door) -> EndpointConfig {
        let mut core = EndpointConfig::new(self.identity.clone());
        core.door = door;
        core.connections_max = CONNECTIONS_OF_SOCKET_MAX;
        core.transport.idle_timeout = IDLE_TIMEOUT;
        core.transport.keep_alive = true;
        core.transport.congestion = Arc::clone(&self.congestion);
        core.transport.qlog = self.qlog.clone();
        core.transport.suites = self.policy.packet_suites();
        core
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
