//! Every datagram of the handshake may be lost, by itself and together with other datagrams.

use std::time::Duration;

use wraith_core::CloseReason;
use wraith_sim::link::{Delay, DropNth, Hops};
use wraith_sim::{Scenario, hops};

/// Runs a short upload over 10 ms with chosen losses; the first retransmission comes after 250 ms.
fn lossy(up: Hops, down: Hops, ceiling_ms: u64) {
    let up = [up, hops![Delay::ms(10)]].into_iter().flatten().collect();
    let down = [down, hops![Delay::ms(10)]].into_iter().flatten().collect();
    Scenario::new().up(up).down(down).upload(5_000).within(Duration::from_millis(ceiling_ms)).run();
}

#[test]
fn without_loss_two_round_trips_are_enough() {
    lossy(hops![], hops![], 75);
}

#[test]
fn a_lost_h1_is_repeated() {
    lossy(hops![DropNth::first(1)], hops![], 350);
}

#[test]
fn a_lost_h2_is_sent_again_for_the_repeated_h1() {
    lossy(hops![], hops![DropNth::first(1)], 350);
}

#[test]
fn a_lost_h3_is_repeated() {
    lossy(hops![DropNth::these([1])], hops![], 700);
}

#[test]
fn a_lost_first_answer_of_the_responder_is_repeated() {
    lossy(hops![], hops![DropNth::these([1])], 700);
}

#[test]
fn losing_the_first_two_datagrams_of_both_sides_only_costs_time() {
    lossy(hops![DropNth::first(2)], hops![DropNth::first(2)], 4_500);
}

#[test]
fn a_missing_peer_ends_with_a_handshake_timeout() {
    let outcomes = Scenario::new()
        .up(hops![Delay::ms(10), DropNth::first(1_000)])
        .upload(1)
        .within(Duration::from_secs(11))
        .run_to_failure();
    for outcome in outcomes {
        assert_eq!(outcome.initiator, Some(CloseReason::HandshakeTimeout));
        assert_eq!(outcome.responder, None);
    }
}
