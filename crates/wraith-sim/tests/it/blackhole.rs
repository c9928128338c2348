//! Outages, shorter and longer than the idle timeout.

use std::time::Duration;

use wraith_core::CloseReason;
use wraith_sim::link::{Blackhole, Delay, Rate};
use wraith_sim::{Scenario, hops};

#[test]
fn an_outage_shorter_than_the_idle_timeout_is_survived() {
    let outage = Blackhole::new(Duration::from_millis(500), Duration::from_secs(8));
    Scenario::new()
        .configure(|c| c.idle_timeout = Duration::from_secs(10))
        .both(hops![Rate::mbit(20), Delay::ms(10), outage])
        .upload(4_000_000)
        .within(Duration::from_secs(11))
        .run();
}

#[test]
fn a_longer_one_ends_both_sides_with_an_idle_timeout() {
    let outage = Blackhole::forever(Duration::from_millis(500));
    let outcomes = Scenario::new()
        .configure(|c| c.idle_timeout = Duration::from_secs(10))
        .both(hops![Rate::mbit(20), Delay::ms(10), outage])
        .upload(4_000_000)
        .within(Duration::from_secs(15))
        .run_to_failure();
    for outcome in outcomes {
        assert_eq!(outcome.completed, None);
        assert_eq!(outcome.initiator, Some(CloseReason::IdleTimeout));
        assert_eq!(outcome.responder, Some(CloseReason::IdleTimeout));
    }
}

#[test]
fn without_keep_alive_an_idle_connection_times_out() {
    let outcomes = Scenario::new()
        .configure(|c| {
            c.keep_alive = false;
            c.idle_timeout = Duration::from_secs(5);
        })
        .both(hops![Delay::ms(10)])
        .upload(1_000)
        .closed_by(None)
        .within(Duration::from_secs(1))
        .run();
    for outcome in outcomes {
        assert_eq!(outcome.initiator, Some(CloseReason::IdleTimeout));
        assert_eq!(outcome.responder, Some(CloseReason::IdleTimeout));
        // Path MTU probes may continue briefly after the last byte.
        let closed = outcome.closed.unwrap().as_nanos();
        assert!((5_000_000_000..9_000_000_000).contains(&closed), "{outcome:#?}");
    }
}
