//! Keys are replaced while data flows (SPEC §4.5).

use std::time::Duration;

use wraith_sim::link::{Delay, Loss, Rate, Reorder};
use wraith_sim::{Exchange, Scenario, hops};

#[test]
fn keys_change_every_hundred_packets_without_a_hitch() {
    let outcomes = Scenario::new()
        .configure(|c| c.phase_packets = 100)
        // A short queue, because a key phase lasts at least a round trip.
        .both(hops![Rate::mbit(50).queue(64 * 1024), Delay::ms(2)])
        .upload(5_000_000)
        .within(Duration::from_secs(2))
        .goodput_at_least(0.91)
        .run();
    for outcome in outcomes {
        assert!(outcome.initiator_stats.key_phases > 20, "{outcome:#?}");
    }
}

#[test]
fn loss_and_reordering_across_a_change_of_keys_cost_no_data() {
    let outcomes = Scenario::new()
        .configure(|c| c.phase_packets = 32)
        .both(hops![
            Rate::mbit(50),
            Delay::ms(10),
            Loss::percent(3.0),
            Reorder::percent(10.0, Duration::from_millis(15)),
        ])
        .exchange(Exchange::streams(2, 300_000, 300_000).eager())
        .within(Duration::from_secs(5))
        .seeds(0..10)
        .run();
    for outcome in outcomes {
        for stats in [outcome.initiator_stats, outcome.responder_stats] {
            assert!(stats.key_phases > 2 && stats.packets_lost > 0, "{outcome:#?}");
        }
    }
}

#[test]
fn packets_that_a_change_of_keys_overtook_are_still_opened() {
    let outcomes = Scenario::new()
        .configure(|c| c.phase_packets = 32)
        .both(hops![
            Rate::mbit(50),
            Delay::ms(10),
            Reorder::percent(20.0, Duration::from_millis(15)),
        ])
        .exchange(Exchange::streams(2, 500_000, 500_000).eager())
        .within(Duration::from_secs(5))
        .run();
    for outcome in outcomes {
        assert!(outcome.initiator_stats.key_phases > 4, "{outcome:#?}");
        assert_eq!(outcome.initiator_stats.datagrams_dropped, 0, "{outcome:#?}");
        assert_eq!(outcome.responder_stats.datagrams_dropped, 0, "{outcome:#?}");
    }
}
