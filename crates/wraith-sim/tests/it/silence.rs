//! An endpoint does not answer strangers.

use std::net::SocketAddr;
use std::time::Duration;

use wraith_core::{AccessKey, Time, TransportConfig};
use wraith_sim::link::{Delay, Rate};
use wraith_sim::{Exchange, Rng, Scenario, World, hops};

#[test]
fn an_endpoint_fed_only_garbage_never_transmits() {
    let mut world = World::new(1);
    let node = world.add_endpoint("listener", TransportConfig::default());
    let mut rng = Rng::new(1, 9);
    for i in 0..20_000 {
        let mut bytes = vec![0; rng.below(1_600) as usize];
        rng.fill(&mut bytes);
        let from =
            SocketAddr::from(([198, 51, 100, rng.below(256) as u8], 1 + rng.below(9) as u16));
        world.inject(Time::from_nanos(i * 100_000), node, from, bytes);
    }
    while world.step() {}
    assert_eq!(world.datagrams_dropped(node), 20_000, "all of it arrived");
    assert_eq!(world.transmitted(), 0);
}

#[test]
fn the_node_id_alone_gets_no_answer() {
    let mut world = World::new(1);
    let listener = world.add_endpoint("listener", TransportConfig::default());
    let stranger = world.add_endpoint("stranger", TransportConfig::default());
    let path = || hops![Rate::mbit(100), Delay::ms(10)];
    world.link((stranger, path()), (listener, path()));
    let access_key = AccessKey::of_ticket(&[7; 16], world.id(listener));
    world.set_access_keys(listener, vec![access_key]);
    // It retries with the public access key.
    world.connect(stranger, listener, Exchange::streams(1, 1000, 1000));
    while world.step() {}
    assert!(world.datagrams_dropped(listener) >= 10, "its H1s arrived");
    assert_eq!(world.transmitted(), world.datagrams_dropped(listener), "and nothing came back");
}

#[test]
fn garbage_during_a_transfer_gets_no_answer_and_changes_nothing() {
    Scenario::new()
        .both(hops![Rate::mbit(20), Delay::ms(10)])
        .garbage(5_000)
        .upload(4_000_000)
        .within(Duration::from_secs(4))
        .goodput_at_least(0.89)
        .run();
}
