//! A path MTU below the probed size, from the start or later.

use std::time::Duration;

use wraith_sim::link::{Delay, Mtu, Rate};
use wraith_sim::{Scenario, hops};

#[test]
fn discovery_finds_the_ethernet_payload_and_loses_no_data() {
    let outcomes = Scenario::new()
        .both(hops![Rate::mbit(100), Delay::ms(5)])
        .upload(5_000_000)
        .within(Duration::from_secs(2))
        .goodput_at_least(0.85)
        .run();
    for outcome in outcomes {
        assert_eq!(outcome.initiator_stats.packets_lost, 0, "{outcome:#?}");
        assert!((1440..=1472).contains(&outcome.initiator_stats.mtu), "{outcome:#?}");
    }
}

#[test]
fn a_smaller_mtu_is_detected_and_the_transfer_continues() {
    let outcomes = Scenario::new()
        .both(hops![
            Mtu::payload(1472).then(Duration::from_millis(400), 1280),
            Rate::mbit(20),
            Delay::ms(10),
        ])
        .upload(4_000_000)
        .within(Duration::from_secs(4))
        .goodput_at_least(0.83)
        .run();
    for outcome in outcomes {
        assert!(
            outcome.initiator_stats.mtu > 1248 && outcome.initiator_stats.mtu <= 1280,
            "{outcome:#?}"
        );
    }
}

#[test]
fn loopback_reaches_jumbo_datagrams() {
    let outcomes = Scenario::new()
        .both(hops![Delay::micros(20)])
        .payload_max(65_507)
        .upload(50_000_000)
        .within(Duration::from_secs(2))
        .run();
    for outcome in outcomes {
        assert!(outcome.initiator_stats.mtu >= 60_000, "{outcome:#?}");
    }
}
