//! One host that forges source addresses and begins handshakes with all of them.

use std::time::Duration;

use wraith_core::{Time, TransportConfig};
use wraith_sim::link::{Delay, Rate};
use wraith_sim::{Application, Exchange, NodeIndex, World, hops};

const H1_PER_SECOND: u32 = 50_000;
const SOURCES: u32 = 100_000;
const ROUND_TRIP: Duration = Duration::from_millis(40);

/// Returns a world with a listener and unknown clients.
fn world(seed: u64, newcomers: usize) -> (World, NodeIndex, Vec<NodeIndex>) {
    let mut world = World::new(seed);
    let listener = world.add_endpoint("listener", TransportConfig::default());
    let newcomers = (0..newcomers).map(|_| {
        let newcomer = world.add_endpoint("newcomer", TransportConfig::default());
        let path = || hops![Rate::mbit(100), Delay::new(ROUND_TRIP / 2)];
        world.link((newcomer, path()), (listener, path()));
        newcomer
    });
    let newcomers = newcomers.collect();
    (world, listener, newcomers)
}

/// Returns the time from now until `newcomer` and the listener are connected.
fn time_to_connect(world: &mut World, newcomer: NodeIndex, listener: NodeIndex) -> Duration {
    let before = world.parties(listener).count();
    let began = world.now();
    world.connect(newcomer, listener, Exchange::streams(1, 100_000, 100_000));
    let connected = |w: &World| {
        w.parties(newcomer).all(Application::is_connected) && w.parties(listener).count() > before
    };
    assert!(world.run_until(began + Duration::from_secs(2), connected), "a newcomer is kept out");
    world.now() - began
}

#[test]
fn newcomers_connect_while_one_host_forges_100_000_addresses_in_two_seconds() {
    for seed in 0..3 {
        let (mut world, listener, newcomers) = world(seed, 4);
        world.set_flood(listener, H1_PER_SECOND, SOURCES);
        let times = newcomers.iter().enumerate().map(|(i, newcomer)| {
            let start = Time::ZERO + Duration::from_millis(20 + 500 * i as u64);
            world.run_until(start, |w| w.now() >= start);
            time_to_connect(&mut world, *newcomer, listener)
        });
        let times: Vec<_> = times.collect();
        println!("seed {seed}: connected after {times:?}");
        // The last two round trips are those of the handshake; the cookie exchange before them
        // takes one.
        assert!(times.iter().all(|time| *time < 3 * ROUND_TRIP), "{times:?}");
        let done = |w: &World| w.parties(listener).filter(|party| party.is_done()).count() == 4;
        assert!(world.run_until(Time::ZERO + Duration::from_secs(4), done));
    }
}

#[test]
fn no_cookie_is_required_at_low_load() {
    let (mut world, listener, newcomers) = world(1, 1);
    let time = time_to_connect(&mut world, newcomers[0], listener);
    assert!(time < 2 * ROUND_TRIP, "H1, H2 and H3 in {time:?}");
}
