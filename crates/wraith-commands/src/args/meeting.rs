//! The arguments for meeting places and for the paths that a transfer may take.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use wraith::state::ContactAddress;
use wraith::{PeerRelays, Policy};
use wraith_discovery::Lan;

use super::headings::NETWORK;

/// Meeting places, and the paths between the two sides.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = NETWORK)]
pub struct MeetingArgs {
    /// Meet at this server too; it runs `wraith rendezvous`
    #[arg(long, value_name = "HOST[:PORT]", env = "WRAITH_RENDEZVOUS", value_parser = server)]
    pub rendezvous: Option<String>,

    /// Meet on this local network: the name of an interface, or all, or off
    #[arg(long, value_name = "NAME", env = "WRAITH_LAN", default_value = "all")]
    pub lan: Lan,

    /// Meet at this relay, and use it where no other path works; it runs `wraith relay`. Of
    /// several, separated by commas, the nearest ones are used
    #[arg(long, value_name = "HOST[:PORT]", env = "WRAITH_RELAY", value_delimiter = ',', value_parser = server)]
    pub relay: Vec<String>,

    /// Access token for the relays
    #[arg(long, value_name = "TOKEN", env = "WRAITH_RELAY_TOKEN", hide_env_values = true)]
    pub relay_token: Option<String>,

    /// Show this machine's NodeId to a relay of --relay that admits only certain NodeIds. Other
    /// relays never see it
    #[arg(long)]
    pub relay_identity: bool,

    /// Relays to use if the other side names them: own (only those of --relay), public (with an
    /// address of the internet), or any (also on private networks and this machine). The default
    /// is public, or own with --relay-only and no proxy
    #[arg(long, value_name = "WHICH", env = "WRAITH_PEER_RELAYS", value_parser = peer_relays())]
    pub peer_relays: Option<PeerRelays>,

    /// Never use a relay: without a direct path, the transfer fails
    #[arg(long, conflicts_with = "relay_only")]
    pub direct_only: bool,

    /// Use only a relay: neither side sees the address of the other
    #[arg(long)]
    pub relay_only: bool,

    /// Use the Mainline DHT to find peers, and to be found by contacts and by peers with the code
    #[arg(long, value_name = "WHEN", env = "WRAITH_DHT", value_enum, default_value_t = Switch::On)]
    pub dht: Switch,

    /// DHT bootstrap nodes, in place of the usual ones
    #[arg(long, value_name = "HOST:PORT", env = "WRAITH_DHT_BOOTSTRAP", value_delimiter = ',', value_parser = server)]
    pub dht_bootstrap: Vec<String>,

    /// Ask the router to forward a port to this machine (PCP, NAT-PMP, UPnP)
    #[arg(long, value_name = "WHEN", env = "WRAITH_PORT_MAPPING", value_enum, default_value_t = Switch::On)]
    pub port_mapping: Switch,

    /// Proxy for relays and the rendezvous server, `socks5://[USER:PASSWORD@]HOST:PORT` or
    /// `http://…`, or off for none. By default HTTPS_PROXY, ALL_PROXY and NO_PROXY decide. Direct
    /// paths to the other machine bypass it, unless --relay-only
    #[arg(long, value_name = "URL", env = "WRAITH_PROXY", hide_env_values = true)]
    pub proxy: Option<String>,

    /// Use only the ciphers that this policy allows, and refuse peers that want others
    #[arg(long, value_name = "NAME", env = "WRAITH_POLICY", value_parser = policy(), default_value = "default")]
    pub policy: Policy,
}

/// An option that is on or off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Enabled
    #[default]
    On,
    /// Disabled
    Off,
}

impl Switch {
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

/// Parses a policy by its name.
fn policy() -> impl TypedValueParser<Value = Policy> {
    let names = PossibleValuesParser::new(Policy::ALL.map(Policy::name));
    names.map(|name| name.parse().expect("the name is one of the possible values"))
}

/// Parses the relays that a peer may choose, by name.
fn peer_relays() -> impl TypedValueParser<Value = PeerRelays> {
    let names = PossibleValuesParser::new(PeerRelays::ALL.map(PeerRelays::name));
    names.map(|name| name.parse().expect("the name is one of the possible values"))
}

/// Checks a server address and returns it as typed. An empty text means no server.
fn server(text: &str) -> Result<String, String> {
    let text = text.trim();
    if !text.is_empty() {
        text.parse::<ContactAddress>().map_err(|error| error.to_string())?;
    }
    Ok(text.to_owned())
}
