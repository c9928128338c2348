//! A path MTU below the probed size, from the start or later.

use std::time::Duration;

use wraith_core::CloseReason;
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

#[test]
fn an_ordinary_path_carries_large_packets_after_a_few_flights() {
    // The initial window is ten packets, so this is sent in four flights. The first probe goes out
    // in the first of them.
    let outcomes = Scenario::new()
        .both(hops![Mtu::payload(1472), Rate::mbit(100), Delay::ms(20)])
        .upload(90_000)
        .within(Duration::from_secs(1))
        .seeds(0..40)
        .run();
    for outcome in outcomes {
        assert!(outcome.initiator_stats.mtu >= 1430, "{outcome:#?}");
    }
}

#[test]
fn narrow_paths_carry_a_transfer_within_seconds() {
    // UDP payloads of IP MTUs from 748 to 1300 under IPv4.
    for payload in [720, 800, 1000, 1152, 1172, 1199, 1232, 1272] {
        let outcomes = Scenario::new()
            .both(hops![Mtu::payload(payload), Rate::mbit(20), Delay::ms(10)])
            .upload(1_000_000)
            .within(Duration::from_secs(5))
            .run();
        for outcome in outcomes {
            let mtu = usize::from(outcome.initiator_stats.mtu);
            assert!(mtu <= payload && mtu + 100 >= payload, "{payload}: {outcome:#?}");
        }
    }
}

#[test]
fn a_path_that_is_narrow_in_one_direction_carries_a_transfer_within_seconds() {
    for payload in [720, 1000, 1172] {
        let wide = || hops![Rate::mbit(20), Delay::ms(10)];
        let narrow = || hops![Mtu::payload(payload), Rate::mbit(20), Delay::ms(10)];
        for (up, down) in [(narrow(), wide()), (wide(), narrow())] {
            let scenario = Scenario::new().up(up).down(down).within(Duration::from_secs(5));
            scenario.clone().upload(1_000_000).run();
            scenario.download(1_000_000).run();
        }
    }
}

#[test]
fn a_path_that_becomes_narrow_is_searched_anew_and_one_that_is_too_narrow_is_named() {
    let path = |later| {
        hops![
            Mtu::payload(1472).then(Duration::from_millis(400), later),
            Rate::mbit(20),
            Delay::ms(10),
        ]
    };
    let upload = |later| Scenario::new().both(path(later)).upload(4_000_000);
    upload(700).within(Duration::from_secs(5)).run();
    for outcome in upload(640).within(Duration::from_secs(10)).run_to_failure() {
        assert_eq!(outcome.completed, None);
        assert_eq!(outcome.initiator, Some(CloseReason::PathMtu), "{outcome:#?}");
    }
}
