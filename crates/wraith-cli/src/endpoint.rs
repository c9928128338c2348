//! How both sides set up their socket.

use std::collections::HashSet;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use wraith_crypto::{NodeId, SecretIdentity};
use wraith_transport::{Algorithm, Config, Endpoint, EndpointConfig};

use crate::args::Congestion;

/// Every address of this machine, IPv4 and IPv6, on a free port.
pub const ANY_ADDRESS: SocketAddr =
    SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0));

/// Silence after which a connection counts as lost. A peer sends keep-alives at a third of it, so three in a row must be
/// lost; a person who waits for a transfer to move on should not wait longer than this before it is made anew.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections of a listener at once. It attends to a few; the others may be losers of a race of addresses, or strangers.
const LISTENER_CONNECTIONS_MAX: usize = 64;

/// Binds the socket of a sender, which others may connect to, and starts its I/O thread.
pub fn bind_to_send(
    address: SocketAddr,
    identity: SecretIdentity,
    congestion: Congestion,
) -> io::Result<Endpoint> {
    let mut core = config(identity);
    core.accept = true;
    core.transport.algorithm = algorithm(congestion);
    Endpoint::bind(Config::new(core).bind(address))
}

/// Binds the socket of a receiver, which only dials, and starts its I/O thread.
pub fn bind_to_receive(identity: SecretIdentity) -> io::Result<Endpoint> {
    let mut core = config(identity);
    core.accept = false;
    Endpoint::bind(Config::new(core).bind(ANY_ADDRESS))
}

/// Binds the socket of a receiver that waits for senders, and starts its I/O thread. `admitted`: only who is in it.
pub fn bind_to_listen(
    address: SocketAddr,
    identity: SecretIdentity,
    admitted: Option<HashSet<NodeId>>,
) -> io::Result<Endpoint> {
    let mut core = config(identity);
    core.accept = true;
    core.admitted = admitted;
    core.connections_max = LISTENER_CONNECTIONS_MAX;
    Endpoint::bind(Config::new(core).bind(address))
}

/// Binds the socket of a sender that goes to its receiver, and starts its I/O thread.
pub fn bind_to_call(
    address: SocketAddr,
    identity: SecretIdentity,
    congestion: Congestion,
) -> io::Result<Endpoint> {
    let mut core = config(identity);
    core.accept = false;
    core.transport.algorithm = algorithm(congestion);
    Endpoint::bind(Config::new(core).bind(address))
}

const fn algorithm(congestion: Congestion) -> Algorithm {
    match congestion {
        Congestion::Cubic => Algorithm::Cubic,
        Congestion::Bbr => Algorithm::Bbr,
    }
}

fn config(identity: SecretIdentity) -> EndpointConfig {
    let mut core = EndpointConfig::new(identity);
    core.transport.idle_timeout = IDLE_TIMEOUT;
    core.transport.keep_alive = true;
    core
}
