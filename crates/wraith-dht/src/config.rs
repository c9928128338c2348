//! What a user can set.

use std::net::{Ipv4Addr, SocketAddrV4};

/// Long-running nodes that introduce newcomers, kept by makers of BitTorrent programs.
pub const DEFAULT_BOOTSTRAP: [&str; 3] =
    ["router.bittorrent.com:6881", "dht.transmissionbt.com:6881", "dht.libtorrent.org:25401"];

/// How the DHT is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DhtConfig {
    /// `HOST:PORT` of nodes to begin with when no remembered one answers.
    pub bootstrap: Vec<String>,
    /// Nodes that answered an earlier run ([`crate::Dht::good_nodes`]), which are asked first.
    pub remembered: Vec<SocketAddrV4>,
    /// The local address to send from.
    pub bind: Ipv4Addr,
}

impl Default for DhtConfig {
    /// The public network.
    fn default() -> Self {
        Self {
            bootstrap: DEFAULT_BOOTSTRAP.map(Into::into).to_vec(),
            remembered: Vec::new(),
            bind: Ipv4Addr::UNSPECIFIED,
        }
    }
}
