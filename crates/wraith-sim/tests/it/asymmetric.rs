//! The return path has a hundredth of the rate: acknowledgements must not congest it.

use std::time::Duration;

use wraith_sim::link::{Delay, Rate};
use wraith_sim::{Scenario, hops};

#[test]
fn a_narrow_way_back_does_not_slow_a_download() {
    Scenario::new()
        .up(hops![Rate::mbit(1), Delay::ms(15)])
        .down(hops![Rate::mbit(100), Delay::ms(15)])
        .download(40_000_000)
        .within(Duration::from_secs(10))
        .goodput_at_least(0.88)
        .run();
}
