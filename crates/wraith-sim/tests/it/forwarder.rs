//! An on-path attacker that delivers copies of datagrams faster than the path does.

use std::time::Duration;

use wraith_sim::link::{Delay, Rate};
use wraith_sim::{Exchange, Forwarder, Outcome, Scenario, hops};

/// It carries every datagram size.
const ALL: usize = 65_535;

fn between(forwarder: Forwarder) -> Scenario {
    Scenario::new().both(hops![Rate::mbit(50), Delay::ms(20)]).forwarder(forwarder)
}

#[test]
fn a_copy_of_h1_that_arrives_first_costs_the_initiator_one_repeat_and_not_its_attempt() {
    for relays in [false, true] {
        between(Forwarder { until: Duration::from_millis(1), relays, payload_max: ALL })
            .upload(100_000)
            .within(Duration::from_secs(1))
            .run();
    }
}

#[test]
fn a_forwarder_that_withholds_answers_does_not_stop_a_connection() {
    between(Forwarder { until: Duration::from_secs(60), relays: false, payload_max: ALL })
        .upload(1_000_000)
        .within(Duration::from_secs(3))
        .run();
}

#[test]
fn a_diverted_peer_is_found_at_its_old_address() {
    let outcomes =
        between(Forwarder { until: Duration::from_millis(700), relays: true, payload_max: ALL })
            .download(3_000_000)
            .configure(|c| c.keep_alive = false)
            .within(Duration::from_secs(5))
            .run();
    let diverted = |outcome: &Outcome| outcome.path_changes.iter().sum::<u64>() >= 2;
    assert!(outcomes.iter().any(diverted), "there and back: {outcomes:#?}");
}

#[test]
fn a_forwarder_of_small_datagrams_diverts_no_connection() {
    // Acknowledgements, probes and small challenges arrive over it first; full-size datagrams do
    // not. Round trips that differ by a factor of two hundred slow the transfer, but it continues.
    for payload_max in [100, 600, 1199] {
        let outcomes =
            between(Forwarder { until: Duration::from_secs(60), relays: true, payload_max })
                .download(3_000_000)
                .within(Duration::from_secs(20))
                .run();
        for outcome in outcomes {
            assert_eq!(outcome.path_changes, [0, 0], "{outcome:#?}");
        }
    }
}

#[test]
fn both_sides_recover_from_a_vanished_forwarder() {
    // The handshake ends after 260 to 280 ms, depending on the drawn sizes. Both sides then migrate
    // while the streams begin, and these take the forwarder's path for some milliseconds. Some of
    // the forwarders disappear at that moment.
    let run = |micros: u64| {
        Scenario::new()
            .both(hops![Rate::mbit(2), Delay::ms(5)])
            .forwarder(Forwarder {
                until: Duration::from_micros(micros),
                relays: true,
                payload_max: ALL,
            })
            .exchange(Exchange::streams(3, 100_000, 100_000).eager())
            .within(Duration::from_secs(20))
            .run()
    };
    let mut outcomes = (262_000..302_000).step_by(250).flat_map(run);
    let both = |outcome: &Outcome| outcome.path_changes.iter().all(|changes| *changes > 1);
    assert!(outcomes.any(|outcome| both(&outcome)), "there and back");
}
