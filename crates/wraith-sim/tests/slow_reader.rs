//! Flow control: the reader sets the pace and memory stays bounded.

use std::time::Duration;

use wraith_sim::link::{Delay, Rate};
use wraith_sim::{Exchange, Scenario, hops};

#[test]
fn a_slow_reader_sets_the_pace_and_no_wake_up_is_lost() {
    Scenario::new()
        .configure(|c| {
            c.stream_window_initial = 64 * 1024;
            c.stream_window_max = 128 * 1024;
            c.connection_window_initial = 64 * 1024;
            c.connection_window_max = 128 * 1024;
        })
        .both(hops![Rate::mbit(100), Delay::ms(5)])
        .exchange(Exchange::upload(2_000_000).read_rate(1_000_000))
        .within(Duration::from_millis(2_500))
        .run();
}

#[test]
fn tiny_windows_and_buffers_only_cost_round_trips() {
    Scenario::new()
        .configure(|c| {
            c.stream_window_initial = 1_000;
            c.stream_window_max = 1_000;
            c.connection_window_initial = 1_500;
            c.connection_window_max = 1_500;
            c.send_buffer_max = 700;
        })
        .both(hops![Rate::mbit(100), Delay::ms(1)])
        .exchange(Exchange::streams(3, 30_000, 30_000).eager())
        .within(Duration::from_secs(3))
        .run();
}

#[test]
fn one_stream_that_is_not_read_does_not_block_another_connection_window_permitting() {
    // 16 streams at once with a connection window far below their sum.
    Scenario::new()
        .configure(|c| {
            c.connection_window_initial = 100_000;
            c.connection_window_max = 100_000;
        })
        .both(hops![Rate::mbit(50), Delay::ms(5)])
        .exchange(Exchange::streams(16, 100_000, 0))
        .within(Duration::from_secs(3))
        .run();
}
