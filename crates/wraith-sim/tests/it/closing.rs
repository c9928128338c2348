//! The end of a connection, as each side sees it.

use std::time::Duration;

use wraith_core::{CloseReason, Role};
use wraith_sim::link::{Delay, Rate};
use wraith_sim::{DONE_CODE, Exchange, Scenario, hops};

fn scenario() -> Scenario {
    Scenario::new()
        .both(hops![Rate::mbit(20), Delay::ms(10)])
        .exchange(Exchange::streams(2, 50_000, 50_000))
        .within(Duration::from_secs(2))
}

fn by_peer() -> Option<CloseReason> {
    Some(CloseReason::Peer { code: DONE_CODE, reason: "done".into() })
}

#[test]
fn the_peer_gets_code_and_reason_from_either_side() {
    for outcome in scenario().run() {
        assert_eq!((outcome.initiator, outcome.responder), (Some(CloseReason::Local), by_peer()));
    }
    for outcome in scenario().closed_by(Some(Role::Responder)).run() {
        assert_eq!((outcome.initiator, outcome.responder), (by_peer(), Some(CloseReason::Local)));
    }
}

#[test]
fn a_connection_closed_in_the_middle_ends_both_sides() {
    for outcome in scenario().closing_after(Duration::from_millis(60)).run_to_failure() {
        assert_eq!(outcome.completed, None);
        assert_eq!((outcome.initiator, outcome.responder), (Some(CloseReason::Local), by_peer()));
    }
}

#[test]
fn an_attempt_given_up_before_the_handshake_leaves_nothing_behind() {
    for outcome in scenario().closing_after(Duration::from_millis(5)).run_to_failure() {
        assert_eq!((outcome.initiator, outcome.responder), (Some(CloseReason::Local), None));
    }
}
