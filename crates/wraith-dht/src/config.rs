//! Configuration of the DHT client.

use std::net::{Ipv4Addr, SocketAddrV4};

/// Long-running bootstrap nodes, operated by authors of BitTorrent programs.
pub const DEFAULT_BOOTSTRAP: [&str; 3] =
    ["router.bittorrent.com:6881", "dht.transmissionbt.com:6881", "dht.libtorrent.org:25401"];

/// Settings of the DHT client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DhtConfig {
    /// `HOST:PORT` of bootstrap nodes, used when no remembered node answers.
    pub bootstrap: Vec<String>,
    /// Nodes that answered in an earlier run ([`crate::Dht::good_nodes`]). They are asked first.
    pub remembered: Vec<SocketAddrV4>,
    /// Local address of the sockets.
    pub bind: Ipv4Addr,
}

impl Default for DhtConfig {
    /// Returns the settings for the public network.
    fn default() -> Self {
        Self {
            bootstrap: DEFAULT_BOOTSTRAP.map(Into::into).to_vec(),
            remembered: Vec::new(),
            bind: Ipv4Addr::UNSPECIFIED,
        }
    }
}
