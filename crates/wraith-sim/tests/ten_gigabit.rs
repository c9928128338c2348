//! A fast local network: microseconds and many packets.

use std::time::Duration;

use wraith_sim::link::{Delay, Rate};
use wraith_sim::{Scenario, hops};

#[test]
fn ten_gigabits_over_two_tenths_of_a_millisecond_are_filled() {
    // 200 MB at 10 Gbit/s are 0.16 s.
    Scenario::new()
        .both(hops![Rate::mbit(10_000).queue(2_000_000), Delay::micros(100)])
        .upload(200_000_000)
        .within(Duration::from_millis(350))
        .seeds(0..1)
        .run();
}
