//! Every pair of networks: connected over a relay first, direct where NATs allow it, and no byte lost.

use std::time::Duration;

use wraith_sim::internet::{Network, Report, matrix};

/// Pairs of which at least one mapping can neither be known nor guessed, while the other side lets in only whom it has written to.
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
fn every_pair_that_can_goes_direct_the_others_stay_relayed_and_none_fails() {
    let rows = matrix(1..5);
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
