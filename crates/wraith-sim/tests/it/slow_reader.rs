//! Flow control: the reader sets the pace, and memory stays bounded.

use std::time::Duration;

use wraith_sim::link::{Delay, Rate};
use wraith_sim::{Exchange, Scenario, StreamCut, StreamPlan, hops};

#[test]
fn a_slow_reader_sets_the_pace_and_no_wake_up_is_lost() {
    let outcomes = Scenario::new()
        .configure(|c| {
            c.stream_window_initial = 64 * 1024;
            c.stream_window_max = 128 * 1024;
            c.connection_window_initial = 64 * 1024;
            c.connection_window_max = 128 * 1024;
        })
        .both(hops![Rate::mbit(100), Delay::ms(5)])
        .exchange(Exchange::upload(2_000_000).read_rate(1_000_000))
        .within(Duration::from_millis(2_100))
        .run();
    for outcome in outcomes {
        let took = outcome.completed.expect("it ran to completion").as_nanos();
        assert!(took >= 1_900_000_000, "faster than it was read: {outcome:#?}");
    }
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
fn one_stream_that_is_not_read_does_not_block_the_others() {
    // The unread stream takes a fifth of the connection's window and keeps it.
    const STREAM_WINDOW: u64 = 20_000;
    const REQUEST: u64 = 100_000;
    let unread = StreamPlan { request: REQUEST, response: 0, cut: Some(StreamCut::Unread) };
    let mut plan = Exchange::streams(16, REQUEST, 0);
    for first in [true, false] {
        plan.streams[0] = if first { unread } else { plan.streams[1] };
        plan.streams[7] = if first { plan.streams[1] } else { unread };
        let outcomes = Scenario::new()
            .configure(|c| {
                c.stream_window_initial = STREAM_WINDOW;
                c.stream_window_max = STREAM_WINDOW;
                c.connection_window_initial = 5 * STREAM_WINDOW;
                c.connection_window_max = 5 * STREAM_WINDOW;
            })
            .both(hops![Rate::mbit(50), Delay::ms(5)])
            .exchange(plan.clone())
            .within(Duration::from_secs(1))
            .run();
        for outcome in outcomes {
            assert_eq!(outcome.bytes_read, [0, 15 * REQUEST], "{outcome:#?}");
            // The unread stream got exactly the bytes that its window holds.
            let overhead = outcome.initiator_stats.bytes_sent - 15 * REQUEST;
            assert!(overhead < STREAM_WINDOW + 120_000, "{outcome:#?}");
        }
    }
}
