//! The initiator's address changes during the connection.

use std::time::Duration;

use wraith_core::{CloseReason, Time, TransportConfig};
use wraith_sim::link::{Blackhole, Delay, Hops, Loss, Nat, Rate};
use wraith_sim::{Application, Exchange, NAT_ADDRESS, Scenario, World, hops};

const REBINDINGS: [Duration; 3] =
    [Duration::from_millis(300), Duration::from_millis(700), Duration::from_millis(1_100)];

/// Runs a scenario behind a NAT that is rebound. Checks that the responder followed each rebinding, and that the initiator behind the NAT got
/// each of its outside addresses.
fn run_with_rebindings(path: Hops, with: impl FnOnce(Scenario) -> Scenario) {
    for outcome in with(Scenario::new().both(path).nat_rebinding(&REBINDINGS)).run() {
        assert_eq!(outcome.path_changes, [0, REBINDINGS.len() as u64], "{outcome:#?}");
        let [inside, outside] = &outcome.observed;
        assert_eq!(inside.len(), 1 + REBINDINGS.len(), "{outcome:#?}");
        assert!(inside.iter().all(|address| address.ip() == NAT_ADDRESS), "{outcome:#?}");
        assert!(inside.windows(2).all(|pair| pair[0] != pair[1]), "{outcome:#?}");
        assert_eq!(outside.len(), 1, "the responder stays where it is: {outcome:#?}");
    }
}

#[test]
fn an_upload_survives_rebindings() {
    let upload = |scenario: Scenario| scenario.upload(4_000_000).within(Duration::from_secs(8));
    run_with_rebindings(hops![Rate::mbit(20), Delay::ms(10)], |s| upload(s).goodput_at_least(0.87));
}

#[test]
fn a_download_survives_rebindings_because_its_acknowledgements_or_probes_show_the_new_address() {
    run_with_rebindings(hops![Rate::mbit(20), Delay::ms(10)], |scenario| {
        scenario.download(4_000_000).within(Duration::from_secs(15)).goodput_at_least(0.74)
    });
}

#[test]
fn a_rebinding_with_loss_survives_too() {
    run_with_rebindings(hops![Rate::mbit(20), Delay::ms(10), Loss::percent(5.0)], |scenario| {
        let plan = Exchange::streams(2, 1_500_000, 1_500_000).eager();
        scenario.exchange(plan).within(Duration::from_secs(6))
    });
}

#[test]
fn each_of_several_connections_behind_one_address_is_found_after_a_rebinding_among_those_of_others()
{
    const OWN: usize = 5;
    const OTHERS: usize = 10;
    let mut world = World::new(11);
    let path = || hops![Rate::mbit(20), Delay::ms(10)];
    let server = world.add_endpoint("server", TransportConfig::default());
    for _ in 0..OTHERS {
        let other = world.add_endpoint("other", TransportConfig::default());
        world.link((other, path()), (server, path()));
        world.connect(other, server, Exchange::streams(2, 100_000, 100_000));
    }
    let client = world.add_endpoint("client", TransportConfig::default());
    let (nat_out, nat_in) = Nat::pair(NAT_ADDRESS, &[Duration::from_millis(300)]);
    world.link(
        (client, hops![nat_out, Rate::mbit(20), Delay::ms(10)]),
        (server, hops![Rate::mbit(20), Delay::ms(10), nat_in]),
    );
    for _ in 0..OWN {
        world.connect(client, server, Exchange::streams(2, 300_000, 300_000).eager());
    }
    let done = |w: &World| {
        w.parties(server).count() == OWN + OTHERS && w.parties(server).all(Application::is_done)
    };
    assert!(world.run_until(Time::ZERO + Duration::from_secs(5), done));
    let moves: u64 = world.parties(server).map(Application::path_changes).sum();
    assert_eq!(moves, OWN as u64);
}

#[test]
fn an_address_that_changes_before_the_first_answer_and_again_in_an_outage_is_found() {
    let seconds = |s: f64| Duration::from_secs_f64(s);
    let outage = Blackhole::new(seconds(1.5), seconds(3.0));
    let outcomes = Scenario::new()
        .configure(|c| c.idle_timeout = Duration::from_secs(12))
        .up(hops![Delay::ms(250)])
        .down(hops![Delay::ms(250), Loss::percent(20.0), outage])
        .nat_rebinding(&[seconds(0.9), seconds(3.0)])
        .exchange(Exchange::streams(3, 100, 100))
        .within(Duration::from_secs(12))
        .seeds(100..150)
        .run_to_failure();
    for outcome in outcomes {
        // A lost H2 leaves an attempt from an address that is gone; it cannot succeed.
        let attempted = outcome.initiator == Some(CloseReason::HandshakeTimeout);
        assert!(attempted || outcome.completed.is_some(), "{outcome:#?}");
    }
}
