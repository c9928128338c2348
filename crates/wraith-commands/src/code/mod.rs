//! Codes on the command line: parsing, meeting places, and the messages about both.

mod proxy;
mod typed;

pub use proxy::proxies;
pub use typed::{SourceChoice, parse, wanted};

use std::time::SystemTime;

use jiff::Timestamp;
use wraith::state::{ContactAddress, StateDir};
use wraith::{
    Code, JoinError, JoinErrorKind, Lan, Node, NodeBuilder, PlaceError, PlaceName, Places,
    RelayServer, Role, rendezvous_address,
};

/// Default port of relays: the HTTPS port, which even restrictive networks allow.
pub const RELAY_PORT: u16 = 443;

use crate::args::MeetingArgs;
use crate::failure::{Exit, Failure};
use crate::output::Reporter;
use crate::report::compare_clocks;

/// Configures a node with the meeting places of the arguments.
///
/// # Errors
/// A proxy setting is invalid.
pub fn node(args: &MeetingArgs, state: StateDir) -> Result<NodeBuilder, Failure> {
    let builder = Node::builder().state(state).places(places(args)).proxies(proxies(args)?);
    let mut builder =
        builder.policy(args.policy).port_mapping(args.port_mapping.is_on() && !args.relay_only);
    for relay in relays(args) {
        builder = builder.relay(relay);
    }
    if args.relay_identity {
        builder = builder.relay_identity();
    }
    if let Some(peer_relays) = args.peer_relays {
        builder = builder.peer_relays(peer_relays);
    }
    if args.direct_only {
        builder = builder.direct_only();
    }
    if args.relay_only {
        builder = builder.relay_only();
    }
    Ok(match args.dht.is_on() {
        true => builder.dht(named(&args.dht_bootstrap).map(str::to_owned).collect()),
        false => builder,
    })
}

/// Returns the relays that the arguments name.
pub fn relays(args: &MeetingArgs) -> Vec<RelayServer> {
    named(&args.relay).map(|relay| relay_server(relay, args.relay_token.clone())).collect()
}

/// Returns the relay of a text typed by the user.
fn relay_server(text: &str, token: Option<String>) -> RelayServer {
    match text.parse::<ContactAddress>() {
        Ok(address) => {
            let (host, port) = address.host_and_port(RELAY_PORT);
            RelayServer { host: host.to_owned(), port, token }
        }
        // Unreachable in practice: clap has validated the arguments.
        Err(_) => RelayServer { host: text.to_owned(), port: RELAY_PORT, token },
    }
}

/// Returns the same relay as `HOST:PORT`.
fn relay_address(text: &str) -> String {
    let RelayServer { host, port, .. } = relay_server(text, None);
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Returns the non-empty entries of a list. An empty variable names nothing.
pub fn named(list: &[String]) -> impl Iterator<Item = &str> {
    list.iter().map(|name| name.trim()).filter(|name| !name.is_empty())
}

/// Returns the meeting places that the arguments name.
pub fn places(args: &MeetingArgs) -> Places {
    let server = args.rendezvous.as_deref().map(str::trim).filter(|server| !server.is_empty());
    // A relay is a meeting place for codes too.
    let at_relay = || named(&args.relay).next().map(relay_address);
    let rendezvous = server.map(rendezvous_address).or_else(at_relay);
    // Multicast on the local network would reveal this machine's address to all of it.
    let lan = if args.relay_only { Lan::Off } else { args.lan.clone() };
    Places { lan, rendezvous, ..Places::default() }
}

/// Explains why a long code found no peer. A wrong guess cannot burn a long code, and the code does
/// not name its meeting place.
fn long_not_met(error: &JoinError, at: &str, besides: &str) -> (Exit, String, String) {
    match error.why {
        JoinErrorKind::Used => {
            (Exit::WrongCode, "another peer has already used the code".into(), "ask for a new one".into())
        }
        JoinErrorKind::Expired => {
            (Exit::WrongCode, "the code has expired".into(), "ask for a new one".into())
        }
        JoinErrorKind::Unreachable => (
            Exit::PeerNotFound,
            format!("the DHT cannot be reached{besides}"),
            "is this machine connected to the internet, and does the network allow UDP? wraith doctor tests both".into(),
        ),
        _ => (
            Exit::PeerNotFound,
            format!("no peer waits for this code {at}{besides}"),
            format!(
                "are all six words right, and is wraith still running there? If it is not, the code was used or has expired: ask for a new one. {}",
                compare_clocks("10 min")
            ),
        ),
    }
}

/// Returns the reason why there is no meeting place.
pub fn nowhere(missing: &[(PlaceName, PlaceError)]) -> String {
    let why: Vec<_> = missing.iter().map(|(place, why)| format!("{place}: {why}")).collect();
    match why.is_empty() {
        true => "--lan is off, and neither --rendezvous nor --relay is set".to_owned(),
        false => why.join("; "),
    }
}

/// Shows the meeting places of a code, the number of its receivers (`None`: any number), and its
/// lifetime.
pub fn explain(
    places: &[PlaceName],
    missing: &[(PlaceName, PlaceError)],
    args: &MeetingArgs,
    receivers: Option<u32>,
    expires: u64,
    reporter: &Reporter,
) {
    // The task that connects to the rendezvous server reports its failures itself.
    let lan = missing.iter().find(|(place, _)| *place == PlaceName::Lan);
    if let Some((place, why)) = lan
        && args.lan != Lan::Off
    {
        reporter.note("", &format!("not waiting {place}: {why}"));
    }
    let shown: Vec<_> = places.iter().map(ToString::to_string).collect();
    if places.iter().any(|place| !matches!(place, PlaceName::Lan | PlaceName::Dht)) {
        let by_relay = args.rendezvous.is_none() && !args.relay.is_empty();
        reporter.status(match by_relay {
            true => "(the other side needs the same --relay, or WRAITH_RELAY)",
            false => "(the other side needs the same --rendezvous, or WRAITH_RENDEZVOUS)",
        });
    }
    let life = match expires {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h", seconds.div_ceil(3600)),
    };
    let uses = match receivers {
        Some(1) => "one try".to_owned(),
        Some(n) => format!("{n} receivers"),
        None => "any number of receivers".to_owned(),
    };
    reporter.status(format!(
        "\nWaiting {}.\nThe code is valid for {uses} within {life}. Ctrl-C stops.",
        shown.join(" and ")
    ));
}

/// Shows that a meeting place is lost, or back (`why` is None).
pub fn report_place(place: &PlaceName, why: Option<&PlaceError>, reporter: &Reporter) {
    match why {
        Some(why) => reporter.warn(format!("cannot wait {place} now ({why}); still trying")),
        None => reporter.status(format!("Waiting {place} again.")),
    }
}

/// Reports that there is no code of six words, because its meeting places cannot be reached.
pub fn report_no_long_code(missing: &[(PlaceName, PlaceError)], reporter: &Reporter) {
    for (place, why) in missing {
        let why = format!("not waiting {place}: {why}; there is no code of six words");
        reporter.note("", &why);
    }
}

/// Returns the advice for a code that is used, expired or burned.
pub fn new_code(other: Role) -> &'static str {
    match other {
        Role::Sender => "ask the sender to run wraith send again and to give you the new code",
        Role::Receiver => {
            "ask the receiver to run wraith receive --code again and to give you the new code"
        }
    }
}

/// Returns the failure for a code that this side has tried before.
pub fn spent(at: SystemTime, other: Role) -> Failure {
    let at = Timestamp::try_from(at).unwrap_or_default();
    let message = format!(
        "this machine already tried this code, at {at:.0}; a machine can try a code only once"
    );
    Failure::new(Exit::WrongCode, message).hint(new_code(other))
}

/// Returns the option that names the server where this side looks for codes.
fn server_option(args: &MeetingArgs) -> &'static str {
    match args.rendezvous.is_none() && named(&args.relay).next().is_some() {
        true => "--relay",
        false => "--rendezvous",
    }
}

/// Returns the advice for a code with a number where no peer waits.
fn nobody_there(places: &Places, option: &str, other: Role) -> String {
    match (other, &places.rendezvous) {
        // With a server, the sender shows no code of six words. A receiver never does.
        (Role::Sender, None) => {
            "is wraith still running there? If it is not, the code was used, has expired or is burned: ask for a new one. On another network, use the code of six words that wraith send shows there too; it needs --dht on. Or name the same --rendezvous or --relay on both sides".to_owned()
        }
        _ => format!(
            "is wraith still running there? If it is not, the code was used, has expired or is burned: ask for a new one. On different networks both sides need the same {option}"
        ),
    }
}

/// Explains why the creator of the code was not met.
pub fn not_met(
    error: &JoinError,
    code: &Code,
    (places, args): (&Places, &MeetingArgs),
    other: Role,
) -> Failure {
    let nameplate = code.nameplate();
    let mut at = if code.is_long() { places.store_names() } else { places.names() };
    at.retain(|place| error.unusable.iter().all(|(unusable, _)| unusable != place));
    let at = at.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    let unusable = error.unusable.iter().map(|(place, why)| format!("{place}: {why}"));
    let unusable = unusable.collect::<Vec<_>>().join("; ");
    let besides = match unusable.is_empty() {
        true => String::new(),
        false => format!("; not searched {unusable}"),
    };
    let new_code = new_code(other);
    let option = server_option(args);
    let (of_the_server, nobody_there);
    if code.is_long() && !matches!(error.why, JoinErrorKind::NoPlace) {
        let (exit, message, hint) = long_not_met(error, &at, &besides);
        return Failure::new(exit, message).hint(hint);
    }
    let (exit, message, hint) = match &error.why {
        JoinErrorKind::NoPlace if code.is_long() => (
            Exit::Usage,
            "a code of six words needs the DHT, and --dht is off".into(),
            "turn the DHT on with --dht on, or ask the sender for the ticket: wraith send --ticket",
        ),
        JoinErrorKind::NoPlace => (
            Exit::Usage,
            "there is no place to look for the other side: --lan is off, and neither --rendezvous nor --relay is set"
                .into(),
            "turn one of them on, or ask the sender for the ticket: wraith send --ticket",
        ),
        JoinErrorKind::Unreachable => (
            Exit::PeerNotFound,
            format!("cannot look for the other side {unusable}"),
            match places.rendezvous {
                Some(_) => {
                    of_the_server = format!("is {option} right, and is the server running?");
                    &of_the_server
                }
                None => "connect this machine to the other machine's network; wraith doctor tests the connection",
            },
        ),
        JoinErrorKind::OtherKind => (
            Exit::PeerNotFound,
            format!("the peer with number {nameplate} waits for another kind of code; the code was not tried"),
            "is the code complete? A code has two words, or three if it is for several receivers. A code from wraith receive is for wraith send --code",
        ),
        JoinErrorKind::Busy => (
            Exit::PeerNotFound,
            format!("there is no free place {at} now"),
            "wait a minute and try again; the code is still valid",
        ),
        JoinErrorKind::InvalidAnswer => (
            Exit::PeerNotFound,
            format!("the peer that answered for number {nameplate} did not make this code, and received nothing of it"),
            "the code is still valid, but another peer answers in place of its creator: try again from another network, or ask for a new code",
        ),
        JoinErrorKind::Silent => (
            Exit::PeerNotFound,
            "a peer answered, used up the only try of the code, and fell silent".into(),
            new_code,
        ),
        JoinErrorKind::Used => {
            (Exit::WrongCode, "another peer has already used the code".into(), new_code)
        }
        JoinErrorKind::Expired => (Exit::WrongCode, "the code has expired".into(), new_code),
        JoinErrorKind::Burned => (
            Exit::WrongCode,
            "an earlier try with wrong words burned this code".into(),
            new_code,
        ),
        JoinErrorKind::Wrong => (
            Exit::WrongCode,
            format!(
                "the words do not match those of the peer with number {nameplate}; this code is burned now"
            ),
            new_code,
        ),
        _ => {
            nobody_there = self::nobody_there(places, option, other);
            let message = format!("no peer waits with number {nameplate} {at}{besides}");
            (Exit::PeerNotFound, message, &*nobody_there)
        }
    };
    Failure::new(exit, message).hint(hint)
}
