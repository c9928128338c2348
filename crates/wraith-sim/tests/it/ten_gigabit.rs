//! A fast local network: microseconds and many packets.

use std::time::Duration;

use wraith_sim::link::{Delay, Rate};
use wraith_sim::{Driver, Scenario, hops};

#[test]
fn ten_gigabits_over_two_tenths_of_a_millisecond_are_filled() {
    Scenario::new()
        .both(hops![Rate::mbit(10_000).queue(2_000_000), Delay::micros(100)])
        .upload(200_000_000)
        .within(Duration::from_secs(1))
        .seeds(0..1)
        .goodput_at_least(0.93)
        .run();
}

#[test]
fn timers_a_millisecond_late_and_batched_receiving_cost_little() {
    // The pacer's credit must last as long as a timer is late, or the line is idle meanwhile.
    Scenario::new()
        .both(hops![Rate::mbit(10_000).queue(4_000_000), Delay::micros(100)])
        .driver(Driver { batches: true, late_by: Duration::from_micros(1_000) })
        .upload(200_000_000)
        .within(Duration::from_secs(2))
        .seeds(0..1)
        .goodput_at_least(0.93)
        .run();
}
