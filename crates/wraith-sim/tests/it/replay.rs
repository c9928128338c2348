//! Replayed datagrams, from the original address or from a third party's.

use std::time::Duration;

use wraith_sim::link::{Delay, Duplicate, Rate};
use wraith_sim::{Exchange, Scenario, hops};

#[test]
fn every_datagram_twice_changes_nothing() {
    let outcomes = Scenario::new()
        .both(hops![Rate::mbit(50), Delay::ms(5), Duplicate::every(Duration::from_millis(30)),])
        .exchange(Exchange::streams(3, 500_000, 500_000).eager())
        .within(Duration::from_secs(3))
        .goodput_at_least(0.76)
        .run();
    for outcome in outcomes {
        let [sent, received] = [outcome.initiator_stats, outcome.responder_stats];
        assert!(received.datagrams_dropped > 500, "{outcome:#?}");
        assert!(received.packets_received <= sent.packets_sent, "{outcome:#?}");
        assert_eq!(sent.packets_lost, 0, "{outcome:#?}");
    }
}

#[test]
fn replayed_packets_get_no_answer_and_change_nothing() {
    let outcomes = Scenario::new()
        .both(hops![Rate::mbit(50), Delay::ms(5)])
        .exchange(Exchange::streams(3, 500_000, 500_000).eager())
        .replayed_by_a_stranger()
        .within(Duration::from_secs(3))
        .goodput_at_least(0.79)
        .run();
    for outcome in outcomes {
        assert!(outcome.responder_stats.datagrams_dropped > 500, "{outcome:#?}");
        assert_eq!(outcome.path_changes, [0, 0], "{outcome:#?}");
    }
}
