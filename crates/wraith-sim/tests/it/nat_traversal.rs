//! Every pair of networks: connected over a relay first, then direct if the NATs allow it, without
//! a lost byte.

use std::net::SocketAddr;
use std::time::Duration;

use wraith_sim::Rng;
use wraith_sim::internet::{NatBehaviours, Network, PUBLIC, Report, matrix, traverse_with};

/// Returns whether a pair may stay on the relay: at least one mapping can neither be observed nor
/// guessed, and the other side filters by destination.
fn may_stay_relayed(pair: [&str; 2]) -> bool {
    let symmetric = |name: &str| name.starts_with("symmetric");
    let picky = |name: &str| {
        symmetric(name) || ["port-restricted", "double", "carrier-grade"].contains(&name)
    };
    let v6 = |name: &str| name == "IPv6 firewall";
    let [one, other] = pair;
    let hard = |a: &str, b: &str| (symmetric(a) || v6(a)) && (picky(b) || (v6(b) && a != b));
    hard(one, other) || hard(other, one)
}

fn percentile(reports: &[&Report], part: f64) -> Duration {
    let mut took: Vec<_> = reports.iter().filter_map(|report| report.took).collect();
    took.sort();
    took[((took.len() - 1) as f64 * part) as usize]
}

#[test]
fn nat_pairs_connect_directly_where_possible_and_else_by_relay() {
    let rows = matrix(1..3);
    assert_eq!(rows.len(), Network::ALL.len() * (Network::ALL.len() + 1) / 2);
    let mut direct = Vec::new();
    for (pair, reports) in &rows {
        let [one, other] = pair;
        println!("{one:>20} x {other:20} {}", reports[0]);
        for report in reports {
            assert!(report.complete, "{pair:?}: {report:?}");
            let counting = pair.contains(&"symmetric counting");
            let guessable = ["port-restricted", "double", "carrier-grade"];
            if counting && guessable.iter().any(|name| pair.contains(name)) {
                assert!(report.direct, "predicted ports: {pair:?}: {report:?}");
            }
            if *pair == ["IPv6 firewall"; 2] {
                assert!(report.path.ip().is_some_and(|ip| ip.is_ipv6()), "{report:?}");
            }
            if pair.contains(&"no UDP") {
                assert!(!report.direct, "{pair:?}: {report:?}");
            } else if !may_stay_relayed(*pair) {
                assert!(report.direct, "{pair:?}: {report:?}");
            }
        }
        direct.extend(reports.iter().filter(|report| report.direct));
    }
    let (p50, p95) = (percentile(&direct, 0.5), percentile(&direct, 0.95));
    println!("relayed to direct: median {p50:?}, p95 {p95:?}");
    assert!(p95 < Duration::from_secs(2), "{p95:?}");
}

const HOMES: [Network; 2] = [Network::Home(NatBehaviours::PORT_RESTRICTED); 2];

#[test]
fn third_parties_that_a_peer_names_get_a_few_packets_and_the_punch_succeeds() {
    let victims: Vec<SocketAddr> =
        (0..15).map(|n| SocketAddr::from(([192, 0, 2, 100 + n % 4], 53 + u16::from(n)))).collect();
    let (mut unroutable, mut lied) = (Default::default(), false);
    let report = traverse_with(5, HOMES, |net, [_, liar]| {
        // As soon as the liar has its own addresses, it reports false ones first, in list after
        // list.
        let own = net.seen(liar).punches.len();
        if own >= 2 && !lied {
            lied = true;
            let observed = SocketAddr::from(([203, 0, 113, 2], 5000));
            for n in 0..16 {
                let list = victims.iter().cycle().skip(n).take(15).copied().chain([observed]);
                net.with_connection(liar, |_, c| c.set_candidates(list));
            }
        }
        unroutable = net.unroutable().clone();
    });
    assert!(lied && report.complete && report.direct, "{report:?}");
    let hit = victims.iter().filter(|victim| unroutable.contains_key(victim)).count();
    assert!(hit > 0, "the lie was told too late to matter");
    for (address, count) in &unroutable {
        assert!(*count <= 12, "{address} got {count}");
    }
}

#[test]
fn random_datagrams_by_the_thousand_do_not_keep_a_punch_from_succeeding() {
    for networks in [HOMES, [Network::Public, HOMES[0]]] {
        let mut rng = Rng::new(6, 0);
        let mut sent = 0;
        let report = traverse_with(6, networks, |net, hosts| {
            if sent < 20_000 && net.party(hosts[0]).is_some_and(|party| party.is_connected()) {
                // They have the lengths of probes, and the peer's true address as their source,
                // which lets them through the NATs.
                for (host, other) in [(1, 2), (2, 1)] {
                    let at = |n: u8, port| match networks[usize::from(n) - 1] {
                        Network::Public => SocketAddr::from(([198, 51, 100, n], port)),
                        _ => SocketAddr::from(([203, 0, 113, n], port)),
                    };
                    let mut bytes = vec![0; rng.between(60, 160) as usize];
                    rng.fill(&mut bytes);
                    net.inject(PUBLIC, at(other, 5000), at(host, 5000), bytes);
                    sent += 1;
                }
            }
        });
        assert!(sent > 1000 && report.direct && report.complete, "{sent} {report:?}");
    }
}

#[test]
fn a_sleeping_host_continues_when_it_wakes() {
    for after in [100, 250, 400, 600, 800, 1000] {
        for sleeper in [0, 1] {
            let mut slept = false;
            let report = traverse_with(7, HOMES, |net, hosts| {
                if !slept && net.now().as_nanos() / 1_000_000 >= after {
                    slept = true;
                    net.put_to_sleep(hosts[sleeper], Duration::from_secs(4));
                }
            });
            assert!(slept && report.complete, "{after} {sleeper} {report:?}");
        }
    }
}

#[test]
fn gateways_that_forget_their_mappings_in_the_middle_cost_no_byte() {
    for after in [150, 300, 500, 700, 800, 900] {
        let mut forgot = false;
        let report = traverse_with(8, HOMES, |net, _| {
            if !forgot && net.now().as_nanos() / 1_000_000 >= after {
                forgot = true;
                net.forget_mappings();
            }
        });
        assert!(forgot && report.complete, "{after} {report:?}");
    }
}
