//! The user's choice of paths: relays, port mapping, proxies.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use thiserror::Error;

use super::proxies::Proxies;

/// The allowed paths of a node, in both directions.
#[derive(Clone, Debug, Default)]
pub(crate) struct PathSettings {
    /// Ask the router for a port mapping.
    pub port_mapping: bool,
    /// Relays at which the node waits.
    pub relays: Vec<RelayServer>,
    /// Use no relay, even if a peer names one.
    pub direct_only: bool,
    /// Use relays only.
    pub relay_only: bool,
    /// Which relays a peer may choose. `None`: public ones, but only own ones if the user wants
    /// relays only and no proxy hides this machine from the relay.
    pub peer_relays: Option<PeerRelays>,
    /// Whether an own relay that asks for the NodeId gets it.
    pub relay_identity: bool,
    /// How relays and rendezvous servers are reached.
    pub proxies: Arc<Proxies>,
}

/// A relay configured by the user.
#[derive(Clone, PartialEq, Eq)]
pub struct RelayServer {
    /// A host name, or an IP address without brackets.
    pub host: String,
    /// Port number, for TCP and UDP.
    pub port: u16,
    /// Access token for the relay.
    pub token: Option<String>,
}

/// Omits the token, which is a secret.
impl fmt::Debug for RelayServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, token: _ } = self;
        f.debug_struct("RelayServer")
            .field("host", host)
            .field("port", port)
            .finish_non_exhaustive()
    }
}

/// Formats the address as `HOST:PORT`.
impl fmt::Display for RelayServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&host_and_port(&self.host, self.port))
    }
}

/// Formats a server as `HOST:PORT`, with brackets around an IPv6 address.
pub(crate) fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Which relays this machine uses if a peer names them. Relays of the user are always used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerRelays {
    /// Only relays that the user has configured as well.
    Own,
    /// Also relays with public addresses.
    Public,
    /// Also relays on private networks and on this machine.
    Any,
}

impl PeerRelays {
    /// All values, in the order of increasing trust in the peer.
    pub const ALL: [Self; 3] = [Self::Own, Self::Public, Self::Any];

    /// Returns the name that [`FromStr`] parses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Public => "public",
            Self::Any => "any",
        }
    }
}

impl FromStr for PeerRelays {
    type Err = UnknownPeerRelays;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|value| value.name() == name).ok_or(UnknownPeerRelays)
    }
}

/// Error of [`PeerRelays::from_str`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not one of own, public and any")]
pub struct UnknownPeerRelays;
