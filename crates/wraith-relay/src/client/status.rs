//! Status of a relay connection.

use std::net::SocketAddr;
use std::time::Duration;

use crate::tls::Pin;

/// Transport of datagrams to a relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RelayTransport {
    /// None: the connection is being re-established.
    #[default]
    Down,
    /// The TLS connection: UDP is blocked, or not yet verified.
    Tls,
    /// UDP.
    Udp,
}

/// Status of a relay connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// Present transport of datagrams.
    pub transport: RelayTransport,
    /// Whether the relay is draining: it makes no new pairs and will stop.
    pub draining: bool,
    /// Latest round-trip time: over UDP if that is in use, else over TLS.
    pub rtt: Option<Duration>,
    /// This client's TCP address as the relay observes it.
    pub observed_tcp: Option<SocketAddr>,
    /// The observed address of the mover's UDP socket, or of the proxy in between. Other sockets
    /// query their own address with `observe`.
    pub observed_udp: Option<SocketAddr>,
    /// The relay's UDP port, if it may be used directly. `None` behind a proxy, even one with UDP
    /// support.
    pub udp: Option<SocketAddr>,
    /// The relay's second UDP port, which only reports observed addresses.
    pub udp_other: Option<SocketAddr>,
    /// Secret with which another socket can query its observed address there.
    pub observe: Option<[u8; 32]>,
    /// The relay's clock minus that of this machine, in seconds, measured when the connection was
    /// made. The relay may be wrong.
    pub clock_difference: Option<i64>,
    /// The relay's pin.
    pub pin: Option<Pin>,
    /// Number of reconnections at which the relay had lost the client's session and all its pairs.
    pub sessions_lost: u64,
    /// Reason of the latest failed reconnection.
    pub error: Option<String>,
}
