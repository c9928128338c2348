//! Replayed datagrams, from the original address or from a third party's.

use std::time::Duration;

use wraith_core::Time;
use wraith_sim::link::{Delay, Duplicate, Rate};
use wraith_sim::{Exchange, Outcome, Scenario, hops};

/// Seeds of each scenario. With and without replays, the duration of so short a transfer varies by a
/// quarter from seed to seed, because BBR draws the moments at which it probes for bandwidth.
const SEEDS: std::ops::Range<u64> = 0..20;

fn scenario() -> Scenario {
    Scenario::new()
        .both(hops![Rate::mbit(50), Delay::ms(5)])
        .exchange(Exchange::streams(3, 500_000, 500_000).eager())
        .within(Duration::from_secs(3))
        .goodput_at_least(0.6)
        .seeds(SEEDS)
}

fn durations(outcomes: &[Outcome]) -> Vec<Duration> {
    let completed = |outcome: &Outcome| outcome.completed.expect("it completed") - Time::ZERO;
    outcomes.iter().map(completed).collect()
}

#[test]
fn every_datagram_twice_changes_nothing() {
    let twice = Duplicate::every(Duration::from_millis(30));
    let path = hops![Rate::mbit(50), Delay::ms(5), twice];
    let outcomes = scenario().both(path).run();
    for outcome in &outcomes {
        let [sent, received] = [outcome.initiator_stats, outcome.responder_stats];
        assert!(received.datagrams_dropped > 500, "{outcome:#?}");
        assert!(received.packets_received <= sent.packets_sent, "{outcome:#?}");
        assert_eq!(sent.packets_lost, 0, "{outcome:#?}");
    }
    // The second copies shift the simulated events, so only the sums are comparable.
    let [twice, once] =
        [outcomes, scenario().run()].map(|o| durations(&o).iter().sum::<Duration>());
    assert!(twice < once + once / 50, "{twice:?} instead of {once:?}");
}

#[test]
fn replayed_packets_get_no_answer_and_change_nothing() {
    let outcomes = scenario().replayed_by_a_stranger().run();
    for outcome in &outcomes {
        assert!(outcome.responder_stats.datagrams_dropped > 500, "{outcome:#?}");
        assert_eq!(outcome.path_changes, [0, 0], "{outcome:#?}");
    }
    assert_eq!(durations(&outcomes), durations(&scenario().run()));
}
