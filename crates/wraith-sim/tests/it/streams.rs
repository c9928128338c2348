//! Many streams, stream limits, and streams that are cut off.

use std::time::Duration;

use wraith_sim::link::{Delay, DropNth, Loss, Rate};
use wraith_sim::{Exchange, Scenario, StreamCut, StreamPlan, hops};

#[test]
fn a_thousand_small_streams_pass_a_limit_of_ten_at_once() {
    let outcomes = Scenario::new()
        .configure(|c| c.streams_max = 10)
        .both(hops![Rate::mbit(100), Delay::ms(1)])
        .exchange(Exchange::streams(1_000, 300, 300))
        .within(Duration::from_millis(700))
        .run();
    for outcome in outcomes {
        // A hundred rounds of ten streams, with a round trip of 2 ms each: only a sender that
        // ignores the limit is faster.
        assert!(
            outcome.completed.expect("it ran to completion").as_nanos() > 200_000_000,
            "{outcome:#?}"
        );
    }
}

#[test]
fn requests_one_after_another_take_a_round_trip_each() {
    Scenario::new()
        .both(hops![Delay::ms(10)])
        .exchange(Exchange::streams(20, 200, 5_000).at_once(1))
        .within(Duration::from_millis(20 * 23 + 60))
        .run();
}

#[test]
fn empty_streams_begin_and_end() {
    Scenario::new()
        .both(hops![Delay::ms(1)])
        .exchange(Exchange::streams(50, 0, 0))
        .within(Duration::from_secs(1))
        .run();
}

#[test]
fn resets_and_stops_in_the_middle_end_their_stream_and_no_other() {
    let cuts = [
        None,
        Some(StreamCut::Reset(40_000)),
        Some(StreamCut::Stop(10_000)),
        Some(StreamCut::Reset(0)),
    ];
    let streams = cuts.map(|cut| StreamPlan { request: 100_000, response: 100_000, cut });
    for percent in [0.0, 5.0] {
        Scenario::new()
            .both(hops![Rate::mbit(20), Delay::ms(5), Loss::percent(percent)])
            .exchange(Exchange {
                streams: streams.iter().copied().cycle().take(40).collect(),
                at_once: 8,
                eager: true,
                ..Exchange::default()
            })
            .within(Duration::from_secs(6))
            .run();
    }
}

#[test]
fn datagrams_arrive_beside_streams_and_those_that_are_lost_stay_lost() {
    // H1 and H3 come first, then ten packets with one datagram each, the initial window; none of
    // them is a path MTU probe. Later packets may be ACKs.
    for (lost, arrive) in [(vec![], 40), (vec![4, 9, 10, 12], 36)] {
        let outcomes = Scenario::new()
            .configure(|c| c.max_mtu = 1200)
            .up(hops![DropNth::these(lost), Rate::mbit(20), Delay::ms(5)])
            .down(hops![Rate::mbit(20), Delay::ms(5)])
            .exchange(Exchange { datagrams: 40, ..Exchange::upload(500_000) })
            .within(Duration::from_secs(1))
            .run();
        for outcome in outcomes {
            assert_eq!(outcome.datagrams_received, [0, arrive], "{outcome:#?}");
        }
    }
}
