//! The way back is a hundred times narrower: acknowledgements must not choke it.

use std::time::Duration;

use wraith_sim::link::{Delay, Rate};
use wraith_sim::{Scenario, hops};

#[test]
fn a_narrow_way_back_does_not_slow_a_download() {
    // 10 MB at 100 Mbit/s are 0.8 s.
    Scenario::new()
        .up(hops![Rate::mbit(1), Delay::ms(15)])
        .down(hops![Rate::mbit(100), Delay::ms(15)])
        .download(10_000_000)
        .within(Duration::from_millis(2_500))
        .run();
}
