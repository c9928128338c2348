//! A round trip of 600 ms.

use std::time::Duration;

use wraith_sim::link::{Delay, Loss, Rate};
use wraith_sim::{Scenario, hops};

#[test]
fn a_satellite_link_is_filled() {
    Scenario::new()
        .both(hops![Rate::mbit(50).queue(3_000_000), Delay::ms(300)])
        .upload(300_000_000)
        .within(Duration::from_secs(120))
        .seeds(0..1)
        .goodput_at_least(0.85)
        .run();
}

#[test]
fn a_lossy_satellite_link_still_delivers() {
    Scenario::new()
        .both(hops![Rate::mbit(50), Delay::ms(300), Loss::percent(1.0)])
        .upload(100_000_000)
        .within(Duration::from_secs(60))
        .goodput_at_least(0.76)
        .run();
}
