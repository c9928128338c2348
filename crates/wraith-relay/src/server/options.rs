//! What an operator decides about a relay.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use wraith_crypto::NodeId;

use crate::proof::Token;

/// Everything that [`Server::bind`](super::Server::bind) wants to know.
#[derive(Clone, Debug)]
pub struct Options {
    /// Address and port, TCP and UDP. Port 0 takes a free one that both have.
    pub listen: SocketAddr,
    /// False where datagrams are to go over TLS only.
    pub udp: bool,
    /// The second UDP port, at which clients ask where they are seen: 0 for any, by default the one after that of `listen`, or any if
    /// that is taken.
    pub other_port: Option<u16>,
    /// What it shows.
    pub certificate: Certificate,
    /// Who may use it.
    pub admission: Admission,
    /// How much.
    pub limits: Limits,
    /// How long pairs may go on after the relay was asked to stop.
    pub drain: Duration,
    /// Where its figures are read, by HTTP; nowhere by default.
    pub metrics: Option<SocketAddr>,
    /// Whether codes meet here too.
    pub rendezvous: bool,
    /// Whether the log names addresses of clients.
    pub log_addresses: bool,
}

impl Options {
    /// An open relay at `listen` with the certificate kept in `folder`.
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

/// Where certificate and key are from.
#[derive(Clone, Debug)]
pub enum Certificate {
    /// PEM files, as other servers take them; the key may be in the same file.
    Files {
        /// The certificate, and those that signed it.
        chain: PathBuf,
        /// Its key.
        key: PathBuf,
    },
    /// Made at the first start, and kept in `folder`, so that the pin stays.
    SelfSigned {
        /// A folder of the relay's own; made if it is not there.
        folder: PathBuf,
    },
}

/// Who may use a relay.
#[derive(Clone, Debug)]
pub enum Admission {
    /// Everybody.
    Open,
    /// Whoever has one of these.
    Tokens(Vec<Token>),
    /// These only; they show their identities to the relay.
    Nodes(HashSet<NodeId>),
}

/// How much a relay does, in all and for each. `None` is no limit.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Clients at once.
    pub clients: usize,
    /// Clients of one address (all of an IPv4 address, or an IPv6 /64).
    pub clients_per_address: usize,
    /// Pairs at once.
    pub pairs: usize,
    /// Pairs that clients of one address may take part in.
    pub pairs_per_address: usize,
    /// Bytes a second of one pair, both ways together.
    pub pair_rate: Option<u64>,
    /// Bytes a second that clients of one address send.
    pub address_rate: Option<u64>,
    /// Bytes a second in all, which pairs that want more than their share get in equal parts.
    pub total_rate: Option<u64>,
    /// Bytes in 24 hours.
    pub day_bytes: Option<u64>,
}

impl Default for Limits {
    /// Enough for a small server; rates are for the operator to say, who knows the line.
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
