//! A fast local network: microseconds and many packets.

use std::time::Duration;

use wraith_sim::link::{Delay, Rate};
use wraith_sim::{Driver, Scenario, hops};

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

#[test]
fn timers_a_millisecond_late_and_batched_receiving_cost_some_of_it_but_not_most() {
    // Late timers let the pacer's credit run over and the line idle meanwhile.
    Scenario::new()
        .both(hops![Rate::mbit(10_000).queue(4_000_000), Delay::micros(100)])
        .driver(Driver { batches: true, late_by: Duration::from_micros(1_000) })
        .upload(200_000_000)
        .within(Duration::from_millis(1_000))
        .seeds(0..1)
        .run();
}
