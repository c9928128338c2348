//! How it stands with a relay.

use std::net::SocketAddr;
use std::time::Duration;

use crate::tls::Pin;

/// How datagrams go to a relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Not at all: the connection is being made again.
    #[default]
    Down,
    /// Over the TLS connection: UDP does not get through, or it is not known yet.
    Tls,
    /// By UDP.
    Udp,
}

/// How it stands with a relay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// How datagrams go.
    pub way: Way,
    /// It makes no new pairs, and is about to stop.
    pub draining: bool,
    /// Round trip of the last question: by UDP where that is in use, else over TLS.
    pub rtt: Option<Duration>,
    /// Where the relay sees our TCP connection.
    pub observed_tcp: Option<SocketAddr>,
    /// Where it sees our UDP socket (that of the mover; another socket has to ask itself, with `observe`), or that of the proxy in between.
    pub observed_udp: Option<SocketAddr>,
    /// The relay's UDP port, where it may be sent to straight: `None` behind a proxy, even one that carries UDP.
    pub udp: Option<SocketAddr>,
    /// A second UDP port of the relay, which only tells sockets where they are seen.
    pub udp_other: Option<SocketAddr>,
    /// The secret with which another socket asks there where it is seen.
    pub observe: Option<[u8; 32]>,
    /// What the relay is known by.
    pub pin: Option<Pin>,
    /// How often it had forgotten our session, with all pairs, when it was reached again.
    pub sessions_lost: u64,
    /// Why it could not be reached again, last.
    pub error: Option<String>,
}
