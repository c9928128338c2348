//! Peers that complete the handshake and then violate every rule.

use std::time::Duration;

use wraith_sim::link::{Delay, Rate};
use wraith_sim::{Exchange, Scenario, hops};

#[test]
fn forged_addresses_get_at_most_three_times_their_bytes() {
    let outcomes = Scenario::new()
        .both(hops![Rate::mbit(50), Delay::ms(5)])
        .exchange(Exchange::streams(3, 4_000_000, 4_000_000).eager())
        .hostile_peers(4)
        .seeds(0..25)
        .within(Duration::from_secs(6))
        .run();
    for outcome in outcomes {
        assert_eq!(outcome.path_changes, [0, 0], "{outcome:#?}");
    }
}
