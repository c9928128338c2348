//! Damaged datagrams are dropped as if they were lost.

use std::time::Duration;

use wraith_sim::link::{Corrupt, Delay, Rate};
use wraith_sim::{Exchange, Scenario, hops};

#[test]
fn damaged_datagrams_only_cost_time() {
    let outcomes = Scenario::new()
        .both(hops![Rate::mbit(50), Delay::ms(5), Corrupt::percent(3.0)])
        .exchange(Exchange::streams(3, 3_000_000, 3_000_000))
        .within(Duration::from_secs(15))
        .goodput_at_least(0.33)
        .run();
    assert!(outcomes.iter().any(|outcome| outcome.responder_stats.datagrams_dropped > 0));
}
