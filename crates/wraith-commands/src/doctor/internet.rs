//! Checks the paths to remote machines: relays, the DHT, the router, and the NAT between.
//! Independent checks run in parallel.
//!
//! Invariant: packets go only to configured targets: named relays, the DHT and the router unless
//! they are off. Later, packets also go to the address at which these targets see this machine.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::timeout;
use wraith::Proxies;
use wraith_dht::{DEFAULT_BOOTSTRAP, Dht, DhtConfig};
use wraith_discovery::{PlaceError, RecordStore};
use wraith_relay::Relays;

use super::observer::{Observer, open};
use super::{Check, clock, lifetime, mapping, nat, relay};
use crate::args::{DoctorArgs, MeetingArgs};
use crate::code::{named, relays};
use crate::output::Reporter;

const DHT: &str = "DHT";
/// Timeout for the first answer of the DHT. It includes the name lookups of the three bootstrap
/// nodes.
const DHT_WAIT: Duration = Duration::from_secs(5);
/// Number of DHT nodes to ask for our address. They have different addresses, which is needed to
/// measure the NAT's mapping.
const NODES: usize = 4;

pub async fn check(
    args: &DoctorArgs,
    proxies: &Proxies,
    reporter: &Reporter,
    report: &mut impl FnMut(Check),
) {
    let DoctorArgs { meeting: args, lifetime } = args;
    let opened = Relays::new().and_then(|relays| Ok((open(Some(&relays))?, relays)));
    let (socket, clients) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let meaning = "no other machine can be reached";
            let found = crate::failure::plain(&error);
            return report(Check::fail("socket", found, meaning));
        }
    };
    let servers = if args.direct_only { Vec::new() } else { relays(args) };
    let (relays, dht, (asked, mapping)) = tokio::join!(
        relay::try_all(&clients, &servers, proxies, args.relay_identity),
        try_dht(args),
        mapping::try_it(args, &socket),
    );
    if args.direct_only {
        report(Check::none(
            "relay",
            "turned off (--direct-only)",
            "a transfer without a direct path fails",
        ));
    } else if relays.is_empty() && args.relay_only {
        let meaning = "no peer can reach this machine, and this machine can reach only peers whose ticket names a relay";
        let check =
            Check::warn("relay", "none configured, and --relay-only allows nothing else", meaning);
        report(
            check.next("name a relay with --relay HOST or WRAITH_RELAY, or leave --relay-only out"),
        );
    } else if relays.is_empty() {
        let meaning = "a transfer without a direct path fails, unless the other side names a relay";
        let check = Check::none("relay", "none configured", meaning);
        report(
            check.next("run your own with wraith relay; then use --relay HOST, or WRAITH_RELAY"),
        );
    }
    let mut observers = Vec::new();
    let (mut kept, mut clocks) = (Vec::new(), Vec::new());
    for tried in relays {
        report(tried.check);
        clocks.extend(tried.clock);
        observers.extend(tried.observer);
        kept.extend(tried.client);
    }
    report(clock::compare(&clocks));
    let (check, nodes) = dht;
    report(check);
    observers.extend(nodes);
    report(asked);
    nat::check(args, &socket, &observers, *lifetime).await.into_iter().for_each(&mut *report);
    if *lifetime && !args.relay_only {
        lifetime::check(&observers, reporter).await.into_iter().for_each(&mut *report);
    }
    drop(kept);
    if let Some(mapping) = mapping {
        mapping.release().await;
    }
    socket.start_close();
}

/// Starts a DHT operation and ends with the first answer. Also returns some of the nodes that
/// answered.
async fn try_dht(args: &MeetingArgs) -> (Check, Vec<Observer>) {
    if !args.dht.is_on() {
        let meaning = "contacts that moved and long codes are not found over the internet";
        return (Check::none(DHT, "off", format!("{meaning} (--dht, WRAITH_DHT)")), Vec::new());
    }
    let own: Vec<_> = named(&args.dht_bootstrap).map(str::to_owned).collect();
    let bootstrap = match own.is_empty() {
        true => DEFAULT_BOOTSTRAP.map(Into::into).to_vec(),
        false => own,
    };
    let dht = Dht::new(DhtConfig { bootstrap: bootstrap.clone(), ..DhtConfig::default() });
    let answered = timeout(DHT_WAIT, dht.probe()).await.unwrap_or(Err(PlaceError::Silent));
    let nodes = dht.good_nodes().into_iter().take(NODES);
    let nodes: Vec<_> = nodes.map(|node| Observer::Node(SocketAddr::V4(node))).collect();
    (dht_check(&bootstrap.join(", "), answered), nodes)
}

fn dht_check(bootstrap: &str, answered: Result<(), PlaceError>) -> Check {
    match answered {
        Ok(()) => {
            let meaning = "contacts and peers with a code find this machine without a server";
            Check::ok(DHT, format!("answers, starting at {bootstrap}"), meaning)
        }
        Err(why) => {
            let meaning = "only peers at the same server or on this network are found";
            Check::warn(DHT, format!("{bootstrap}: {why}"), meaning).next(
                "is this machine connected to the internet, and is UDP allowed? Otherwise codes need --rendezvous HOST or --relay HOST",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Status;
    use super::*;
    use crate::args::Switch;

    #[tokio::test]
    async fn a_disabled_dht_is_not_queried_and_a_silent_one_is_a_warning() {
        let off = MeetingArgs { dht: Switch::Off, ..MeetingArgs::default() };
        let (check, nodes) = try_dht(&off).await;
        assert!(check.status == Status::None && nodes.is_empty());
        let silent = dht_check("node.example:6881", Err(PlaceError::Silent));
        assert_eq!(silent.status, Status::Warn);
        assert!(silent.found.contains("node.example") && silent.next.unwrap().contains("--relay"));
    }
}
