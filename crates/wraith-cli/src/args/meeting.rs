//! Where the two sides meet, and by which ways they may reach each other.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use wraith::Policy;
use wraith::state::Address;
use wraith_discovery::Lan;

/// Where the two sides meet, and how they reach each other.
#[derive(Args, Clone, Debug, Default)]
pub struct MeetingArgs {
    /// Meet at this server too, which somebody runs with `wraith rendezvous`
    #[arg(long, value_name = "HOST[:PORT]", env = "WRAITH_RENDEZVOUS", value_parser = server)]
    pub rendezvous: Option<String>,

    /// Meet on this local network: the name of an interface, or all, or off
    #[arg(long, value_name = "NAME", env = "WRAITH_LAN", default_value = "all")]
    pub lan: Lan,

    /// Meet at this relay, and go through it where nothing else gets through; somebody runs it with `wraith relay`. Of
    /// several, separated by commas, the nearest ones are used
    #[arg(long, value_name = "HOST[:PORT]", env = "WRAITH_RELAY", value_delimiter = ',', value_parser = server)]
    pub relay: Vec<String>,

    /// What the relays let this machine in with
    #[arg(long, value_name = "TOKEN", env = "WRAITH_RELAY_TOKEN", hide_env_values = true)]
    pub relay_token: Option<String>,

    /// Never go through a relay: what cannot be moved directly is not moved
    #[arg(long, conflicts_with = "relay_only")]
    pub direct_only: bool,

    /// Go through a relay only: neither side learns the address of the other
    #[arg(long)]
    pub relay_only: bool,

    /// Find others, and be found by who has the code or is a contact, over the Mainline DHT
    #[arg(long, value_name = "WHEN", env = "WRAITH_DHT", value_enum, default_value_t = Switch::On)]
    pub dht: Switch,

    /// Begin there in the DHT, in place of the usual nodes
    #[arg(long, value_name = "HOST:PORT", env = "WRAITH_DHT_BOOTSTRAP", value_delimiter = ',', value_parser = server)]
    pub dht_bootstrap: Vec<String>,

    /// Ask the router to let others through to this machine (PCP, NAT-PMP, UPnP)
    #[arg(long, value_name = "WHEN", env = "WRAITH_PORT_MAPPING", value_enum, default_value_t = Switch::On)]
    pub port_mapping: Switch,

    /// Reach relays and the rendezvous server through this proxy, `socks5://[USER:PASSWORD@]HOST:PORT` or `http://…`, or
    /// through none: off. By default as HTTPS_PROXY, ALL_PROXY and NO_PROXY say. What goes straight to the other
    /// machine goes past it, unless --relay-only
    #[arg(long, value_name = "URL", env = "WRAITH_PROXY", hide_env_values = true)]
    pub proxy: Option<String>,

    /// Seal packets only with what this policy allows, and talk to nobody who wants something else
    #[arg(long, value_name = "NAME", env = "WRAITH_POLICY", value_parser = policy(), default_value = "default")]
    pub policy: Policy,
}

/// Whether something is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// It is
    #[default]
    On,
    /// It is not
    Off,
}

impl Switch {
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

/// A policy by its name.
fn policy() -> impl TypedValueParser<Value = Policy> {
    let names = PossibleValuesParser::new(Policy::ALL.map(Policy::name));
    names.map(|name| name.parse().expect("the name is one of the possible values"))
}

/// A server as it was typed; nothing is none.
fn server(text: &str) -> Result<String, String> {
    let text = text.trim();
    if !text.is_empty() {
        text.parse::<Address>().map_err(|error| error.to_string())?;
    }
    Ok(text.to_owned())
}
