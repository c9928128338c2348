//! A seed determines a whole run.

use std::time::Duration;

use wraith_sim::link::{Delay, Loss, Rate};
use wraith_sim::{Exchange, Scenario, hops};

#[test]
fn the_same_seed_gives_the_same_datagrams_at_the_same_times() {
    let scenario = Scenario::new()
        .both(hops![Rate::mbit(50), Delay::ms(10), Loss::percent(2.0)])
        .exchange(Exchange::streams(20, 20_000, 20_000))
        .within(Duration::from_secs(10));
    let fingerprint = |seed| scenario.run_seed(seed).fingerprint;
    assert_eq!(fingerprint(1), fingerprint(1));
    assert_ne!(fingerprint(1), fingerprint(2));
}
