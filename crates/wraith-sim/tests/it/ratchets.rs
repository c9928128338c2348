//! Both sides agree on fresh keys while data flows (SPEC §4.6).

use std::time::Duration;

use wraith_core::{Time, TransportConfig};
use wraith_sim::link::{Delay, Duplicate, Loss, Rate, Reorder};
use wraith_sim::{Exchange, Outcome, Scenario, hops};

/// A ratchet after every 100 kB.
fn often(config: &mut TransportConfig) {
    config.ratchet_bytes = 100_000;
}

/// Checks that both sides completed at least this many ratchets.
fn ratcheted(outcome: &Outcome, at_least: u64) {
    for stats in [outcome.initiator_stats, outcome.responder_stats] {
        assert!(stats.ratchets >= at_least, "{outcome:#?}");
        assert!(stats.key_phases >= stats.ratchets, "{outcome:#?}");
    }
}

#[test]
fn keys_are_agreed_on_anew_without_a_packet_that_does_not_open() {
    for plan in [Exchange::upload(3_000_000), Exchange::download(3_000_000)] {
        let outcomes = Scenario::new()
            .configure(often)
            .both(hops![Rate::mbit(20), Delay::ms(10)])
            .exchange(plan)
            .within(Duration::from_secs(3))
            .goodput_at_least(0.85)
            .run();
        for outcome in outcomes {
            ratcheted(&outcome, 10);
            assert_eq!(outcome.initiator_stats.datagrams_dropped, 0, "{outcome:#?}");
            assert_eq!(outcome.responder_stats.datagrams_dropped, 0, "{outcome:#?}");
        }
    }
}

#[test]
fn ratchets_recover_from_loss_duplication_and_reordering() {
    let outcomes = Scenario::new()
        .configure(often)
        .both(hops![
            Rate::mbit(20),
            Delay::ms(10),
            Loss::percent(10.0),
            Duplicate::percent(10.0, Duration::from_millis(20)),
            Reorder::percent(20.0, Duration::from_millis(30)),
        ])
        .exchange(Exchange::streams(2, 1_000_000, 1_000_000).eager())
        .within(Duration::from_secs(60))
        .seeds(0..20)
        .run();
    outcomes.iter().for_each(|outcome| ratcheted(outcome, 3));
}

#[test]
fn key_phases_and_ratchets_at_once_cost_no_data() {
    let outcomes = Scenario::new()
        .configure(|c| {
            c.ratchet_bytes = 400_000;
            c.phase_packets = 24;
        })
        .both(hops![
            Rate::mbit(20),
            Delay::ms(10),
            Loss::percent(3.0),
            Reorder::percent(10.0, Duration::from_millis(15)),
        ])
        .exchange(Exchange::streams(2, 1_000_000, 1_000_000).eager())
        .within(Duration::from_secs(20))
        .seeds(0..20)
        .run();
    for outcome in outcomes {
        ratcheted(&outcome, 4);
        let stats = outcome.initiator_stats;
        assert!(stats.key_phases > 2 * stats.ratchets, "{outcome:#?}");
    }
}

#[test]
fn a_ratchet_that_is_half_done_when_the_path_changes_is_finished_on_the_other() {
    let rebindings: Vec<_> = (1..8).map(|n| Duration::from_millis(n * 450)).collect();
    let outcomes = Scenario::new()
        .configure(often)
        .both(hops![Rate::mbit(20), Delay::ms(30), Loss::percent(1.0)])
        .nat_rebinding(&rebindings)
        // Enough for four rebindings at the full rate of the path.
        .exchange(Exchange::streams(1, 6_000_000, 6_000_000).eager())
        .within(Duration::from_secs(30))
        .seeds(0..10)
        .run();
    for outcome in outcomes {
        ratcheted(&outcome, 5);
        assert!(outcome.path_changes[1] > 3, "{outcome:#?}");
    }
}

#[test]
fn in_an_hour_of_little_use_there_are_some_and_they_cost_little() {
    // 40 bytes per second.
    let outcomes = Scenario::new()
        .both(hops![Rate::kbit(256), Delay::ms(50)])
        .exchange(Exchange::upload(150_000).read_rate(40))
        .configure(|c| {
            c.stream_window_initial = 1000;
            c.stream_window_max = 1000;
        })
        .within(Duration::from_secs(2 * 3600))
        .run();
    for outcome in outcomes {
        let hours = (outcome.completed.unwrap() - Time::ZERO).as_secs_f64() / 3600.0;
        assert!(hours > 0.9, "{outcome:#?}");
        // At least one in ten minutes, and rarely more than one in eight.
        let each = 60.0 * hours / outcome.initiator_stats.ratchets as f64;
        assert!((8.0..10.0).contains(&each), "one in {each} minutes: {outcome:#?}");
        ratcheted(&outcome, outcome.initiator_stats.ratchets - 1);
    }
}

#[test]
fn no_data_waits_for_a_ratchet() {
    let seconds = |ratchet_bytes| {
        let outcomes = Scenario::new()
            .configure(|c| c.ratchet_bytes = ratchet_bytes)
            .both(hops![Rate::mbit(100), Delay::ms(5)])
            .upload(50_000_000)
            .within(Duration::from_secs(6))
            .seeds(0..1)
            .run();
        let [outcome] = &outcomes[..] else { panic!("one seed") };
        let time = (outcome.completed.unwrap() - Time::ZERO).as_secs_f64();
        (time, outcome.initiator_stats.ratchets)
    };
    let (without, none) = seconds(u64::MAX);
    let (with, some) = seconds(4_000_000);
    assert!(none == 0 && some >= 8, "{some}");
    // A ratchet is four packets.
    assert!(with < without * 1.01, "{with} and {without} s");
}
