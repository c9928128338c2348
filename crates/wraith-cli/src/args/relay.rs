//! The arguments of `wraith relay`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use wraith_crypto::NodeId;

use super::units::{RateLimit, Size};

#[derive(Args, Debug)]
pub struct RelayArgs {
    /// Address to listen on, TCP and UDP; networks that let only web traffic through know no port but 443
    #[arg(long, value_name = "IP:PORT", default_value = "[::]:443")]
    pub listen: SocketAddr,

    /// Folder where the relay keeps its key and certificate [default: relay in the folder of this user's state]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,

    /// Certificate and those that signed it, PEM, in place of one of its own
    #[arg(long, value_name = "FILE", requires = "key")]
    pub certificate: Option<PathBuf>,

    /// The certificate's key, PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub key: Option<PathBuf>,

    /// Relay only for who has this token (codes of others still meet here, but for --no-rendezvous); better from the variable or a file, since other users of this machine see arguments
    #[arg(long, value_name = "TOKEN", env = "WRAITH_RELAY_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// Relay only for who has one of the tokens in this file, one a line
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,

    /// Serve only this identity, which the relay then knows; several times for several
    #[arg(long, value_name = "NODEID", conflicts_with_all = ["token", "token_file"])]
    pub only: Vec<NodeId>,

    /// Clients at once
    #[arg(long, value_name = "N", default_value = "16384", value_parser = at_least_one)]
    pub clients: NonZeroUsize,

    /// Clients at once of one address (an IPv4 address, or an IPv6 /64)
    #[arg(long, value_name = "N", default_value = "64", value_parser = at_least_one)]
    pub clients_per_address: NonZeroUsize,

    /// Pairs at once
    #[arg(long, value_name = "N", default_value = "4096", value_parser = at_least_one)]
    pub pairs: NonZeroUsize,

    /// Pairs at once in which clients of one address take part
    #[arg(long, value_name = "N", default_value = "64", value_parser = at_least_one)]
    pub pairs_per_address: NonZeroUsize,

    /// Bytes a second of one pair, such as 10M
    #[arg(long, value_name = "RATE")]
    pub pair_rate: Option<RateLimit>,

    /// Bytes a second that clients of one address send
    #[arg(long, value_name = "RATE")]
    pub address_rate: Option<RateLimit>,

    /// Bytes a second in all; pairs that want more than their share get equal parts
    #[arg(long, value_name = "RATE")]
    pub total_rate: Option<RateLimit>,

    /// Bytes in 24 hours
    #[arg(long, value_name = "SIZE")]
    pub day: Option<Size>,

    /// How long pairs may go on after the first Ctrl-C or SIGTERM
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(..=86_400))]
    pub drain: u64,

    /// Figures for Prometheus at /metrics and a word of health at /healthz, by HTTP
    #[arg(long, value_name = "IP:PORT")]
    pub metrics: Option<SocketAddr>,

    /// No UDP: datagrams go over TLS only, which is slower
    #[arg(long)]
    pub no_udp: bool,

    /// Second UDP port, which tells clients where they are seen, so that they know their NAT [default: the one after that of --listen, or any]
    #[arg(long, value_name = "PORT", conflicts_with = "no_udp")]
    pub other_port: Option<u16>,

    /// Codes do not meet here
    #[arg(long)]
    pub no_rendezvous: bool,

    /// Name addresses of clients in the log
    #[arg(long)]
    pub log_addresses: bool,
}

fn at_least_one(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "a number from 1 on is wanted")
}
