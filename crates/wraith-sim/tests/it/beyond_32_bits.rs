//! Offsets, counters and windows beyond 2^32.

use std::time::Duration;

use wraith_sim::link::Delay;
use wraith_sim::{Scenario, hops};

#[test]
fn more_than_four_gibibytes_pass_through_one_stream() {
    Scenario::new()
        .configure(|c| {
            c.stream_window_max = 64 << 20;
            c.connection_window_max = 64 << 20;
            c.send_buffer_max = 64 << 20;
        })
        .both(hops![Delay::micros(100)])
        .payload_max(65_507)
        .upload((1 << 32) + 12_345)
        .within(Duration::from_secs(60))
        .seeds(0..1)
        .run();
}
