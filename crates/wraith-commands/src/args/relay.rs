//! The arguments of `wraith relay`.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use wraith_command_text::durations;
use wraith_command_text::units::{RateLimit, Size};
use wraith_crypto::NodeId;

use super::addresses;
use super::headings::{ACCESS, CERTIFICATE, LIMITS};

#[derive(Args, Debug)]
pub struct RelayArgs {
    /// TCP and UDP address to listen on, or a port alone for all addresses; networks that allow
    /// only web traffic allow no port but 443
    #[arg(long, value_name = "[IP:]PORT", default_value = "[::]:443", value_parser = addresses::listening)]
    pub listen: SocketAddr,

    /// Folder for the relay's key and certificate [default: relay in the folder of this user's
    /// state]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,

    /// HTTP address for Prometheus metrics at /metrics and a health check at /healthz
    #[arg(long, value_name = "IP:PORT", value_parser = addresses::exactly)]
    pub metrics: Option<SocketAddr>,

    /// Time that pairs may continue after the first Ctrl-C or SIGTERM
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = drain)]
    pub drain: u64,

    /// No UDP: send datagrams over TLS only, which is slower
    #[arg(long)]
    pub no_udp: bool,

    /// Second UDP port, which reports their public address to clients, so that they can classify
    /// their NAT [default: the one after that of --listen, or any]
    #[arg(long, value_name = "PORT", conflicts_with = "no_udp")]
    pub other_port: Option<u16>,

    /// Turn off the meeting place for codes
    #[arg(long)]
    pub no_rendezvous: bool,

    /// Log the addresses of clients
    #[arg(long)]
    pub log_addresses: bool,

    /// Relay only for clients with this token (codes of others still meet here, unless
    /// --no-rendezvous); prefer the variable or a file, since other users of this machine see
    /// arguments
    #[arg(help_heading = ACCESS, long, value_name = "TOKEN", env = "WRAITH_RELAY_TOKEN", hide_env_values = true)]
    pub token: Option<String>,

    /// Relay only for clients with one of the tokens in this file, one a line
    #[arg(help_heading = ACCESS, long, value_name = "FILE", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,

    /// Serve only this NodeId, which the client then reveals to the relay; repeat for several
    #[arg(help_heading = ACCESS, long, value_name = "NODEID", conflicts_with_all = ["token", "token_file"])]
    pub only: Vec<NodeId>,

    /// Certificate chain in PEM, in place of the relay's own certificate; needs --key
    #[arg(help_heading = CERTIFICATE, long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,

    /// Private key of the certificate, in PEM; needs --certificate
    #[arg(help_heading = CERTIFICATE, long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// Maximum number of clients at once
    #[arg(help_heading = LIMITS, long, value_name = "N", default_value = "16384", value_parser = at_least_one)]
    pub clients: NonZeroUsize,

    /// Maximum number of clients at once from one address (an IPv4 address, or an IPv6 /64)
    #[arg(help_heading = LIMITS, long, value_name = "N", default_value = "64", value_parser = at_least_one)]
    pub clients_per_address: NonZeroUsize,

    /// Maximum number of pairs at once
    #[arg(help_heading = LIMITS, long, value_name = "N", default_value = "4096", value_parser = at_least_one)]
    pub pairs: NonZeroUsize,

    /// Maximum number of pairs at once with clients of one address
    #[arg(help_heading = LIMITS, long, value_name = "N", default_value = "64", value_parser = at_least_one)]
    pub pairs_per_address: NonZeroUsize,

    /// Maximum bytes a second of one pair, such as 10M
    #[arg(help_heading = LIMITS, long, value_name = "RATE")]
    pub pair_rate: Option<RateLimit>,

    /// Maximum bytes a second sent by clients of one address
    #[arg(help_heading = LIMITS, long, value_name = "RATE")]
    pub address_rate: Option<RateLimit>,

    /// Maximum bytes a second in all; pairs that want more than their share get equal parts
    #[arg(help_heading = LIMITS, long, value_name = "RATE")]
    pub total_rate: Option<RateLimit>,

    /// Maximum bytes in 24 hours
    #[arg(help_heading = LIMITS, long, value_name = "SIZE")]
    pub day: Option<Size>,
}

/// Parses the time for existing pairs: at most a day.
fn drain(text: &str) -> Result<u64, String> {
    match durations::seconds(text)? {
        seconds @ ..=86_400 => Ok(seconds),
        _ => Err("the maximum is 86400 (one day)".to_owned()),
    }
}

fn at_least_one(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse().map_err(|_| "expected a number of at least 1")
}
