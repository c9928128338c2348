//! How both sides set up their socket.

use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::Duration;

use wraith_crypto::SecretIdentity;
use wraith_transport::{Config, Endpoint, EndpointConfig};

/// Every address of this machine, IPv4 and IPv6, on a free port.
pub const ANY_ADDRESS: SocketAddr =
    SocketAddr::V6(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0));

/// Silence after which a connection counts as lost. A peer sends keep-alives at a third of it, so three in a row must be
/// lost; a person who waits for a transfer to move on should not wait longer than this before it is made anew.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Binds a socket and starts its I/O thread. `accept`: whether others may connect to it.
pub fn bind(address: SocketAddr, identity: SecretIdentity, accept: bool) -> io::Result<Endpoint> {
    let mut core = EndpointConfig::new(identity);
    core.accept = accept;
    core.transport.idle_timeout = IDLE_TIMEOUT;
    core.transport.keep_alive = true;
    Endpoint::bind(Config::new(core).bind(address))
}
