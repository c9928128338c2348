//! Configuration of a relay.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use wraith_crypto::NodeId;

use crate::proof::Token;

/// Options of [`Server::bind`](super::Server::bind).
#[derive(Clone, Debug)]
pub struct Options {
    /// Address and port for TCP and UDP. Port 0 selects a port that is free for both.
    pub listen: SocketAddr,
    /// Whether UDP is used; otherwise all datagrams go over TLS.
    pub udp: bool,
    /// The second UDP port, at which clients query their observed address. 0 selects any port. The
    /// default is the port after that of `listen`, or any if that is taken.
    pub other_port: Option<u16>,
    /// Source of the certificate.
    pub certificate: Certificate,
    /// Admission policy.
    pub admission: Admission,
    /// Resource limits.
    pub limits: Limits,
    /// Time that pairs may continue after a request to stop.
    pub drain: Duration,
    /// HTTP address of the metrics; off by default.
    pub metrics: Option<SocketAddr>,
    /// Whether the port also serves as a rendezvous for codes.
    pub rendezvous: bool,
    /// Whether logs contain client addresses.
    pub log_addresses: bool,
}

impl Options {
    /// Returns the options of an open relay at `listen`, with its certificate in `folder`.
    pub fn new(listen: SocketAddr, folder: impl Into<PathBuf>) -> Self {
        Self {
            listen,
            udp: true,
            other_port: None,
            certificate: Certificate::SelfSigned { folder: folder.into() },
            admission: Admission::Open,
            limits: Limits::default(),
            drain: Duration::from_secs(30),
            metrics: None,
            rendezvous: true,
            log_addresses: false,
        }
    }
}

/// Source of certificate and key.
#[derive(Clone, Debug)]
pub enum Certificate {
    /// PEM files; the key may be in the same file.
    Files {
        /// Certificate chain.
        chain: PathBuf,
        /// Private key.
        key: PathBuf,
    },
    /// Generated at the first start and kept in `folder`, so that the pin stays the same.
    SelfSigned {
        /// Private folder of the relay; created if missing.
        folder: PathBuf,
    },
}

/// Admission policy.
#[derive(Clone, Debug)]
pub enum Admission {
    /// Every client.
    Open,
    /// Clients with one of these tokens.
    Tokens(Vec<Token>),
    /// Clients with one of these identities, which they reveal to the relay.
    Nodes(HashSet<NodeId>),
}

/// Resource limits, in total and per client. `None` means no limit.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Concurrent clients.
    pub clients: usize,
    /// Clients per address (an IPv4 address or an IPv6 /64).
    pub clients_per_address: usize,
    /// Concurrent pairs.
    pub pairs: usize,
    /// Pairs dialled by clients of one address.
    pub pairs_per_address: usize,
    /// Bytes per second of one pair, both directions together.
    pub pair_rate: Option<u64>,
    /// Bytes per second sent by clients of one address.
    pub address_rate: Option<u64>,
    /// Bytes per second in total. Pairs that want more than their share get equal parts.
    pub total_rate: Option<u64>,
    /// Bytes per 24 hours.
    pub day_bytes: Option<u64>,
}

impl Default for Limits {
    /// Returns limits for a small server. The rates depend on the line, so the operator must set
    /// them.
    fn default() -> Self {
        Self {
            clients: 16_384,
            clients_per_address: 64,
            pairs: 4096,
            pairs_per_address: 64,
            pair_rate: None,
            address_rate: None,
            total_rate: None,
            day_bytes: None,
        }
    }
}
