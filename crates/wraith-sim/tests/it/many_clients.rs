//! One endpoint, many peers at once.

use std::time::Duration;

use wraith_core::{Time, TransportConfig};
use wraith_sim::link::{Delay, Loss, Rate};
use wraith_sim::{Application, Exchange, NodeIndex, World, hops};

fn is_done(world: &World, nodes: &[NodeIndex]) -> bool {
    nodes.iter().all(|node| world.parties(*node).all(Application::is_done))
}

/// Returns two endpoints so many milliseconds apart.
fn two_endpoints(seed: u64, delay_ms: u64) -> (World, NodeIndex, NodeIndex) {
    let mut world = World::new(seed);
    let [a, b] = ["a", "b"].map(|name| world.add_endpoint(name, TransportConfig::default()));
    world.link((a, hops![Delay::ms(delay_ms)]), (b, hops![Delay::ms(delay_ms)]));
    (world, a, b)
}

#[test]
fn forty_clients_of_one_endpoint_are_all_served_and_all_forgotten() {
    let mut world = World::new(5);
    let config = || TransportConfig { idle_timeout: Duration::from_secs(5), ..Default::default() };
    let server = world.add_endpoint("server", config());
    let clients: Vec<_> = (0..40).map(|_| world.add_endpoint("client", config())).collect();
    for client in &clients {
        let path = || hops![Rate::mbit(20), Delay::ms(10), Loss::percent(2.0)];
        world.link((*client, path()), (server, path()));
        world.connect(*client, server, Exchange::streams(3, 20_000, 20_000));
    }
    let deadline = Time::ZERO + Duration::from_secs(30);
    let served = |w: &World| w.parties(server).count() == 40 && is_done(w, &[server]);
    assert!(world.run_until(deadline, |w| served(w) && is_done(w, &clients)));
    for client in &clients {
        for handle in world.handles(*client) {
            world.with_connection(*client, handle, |now, c| c.close(now, 0x100, "done"));
        }
    }
    assert!(world.run_until(deadline + Duration::from_secs(30), World::is_drained));
}

#[test]
fn two_endpoints_may_connect_to_each_other_at_the_same_time() {
    let (mut world, a, b) = two_endpoints(6, 10);
    world.connect(a, b, Exchange::streams(2, 50_000, 10_000));
    world.connect(b, a, Exchange::streams(2, 10_000, 50_000));
    let deadline = Time::ZERO + Duration::from_secs(1);
    let both = |w: &World| [a, b].iter().all(|node| w.parties(*node).count() == 2);
    assert!(world.run_until(deadline, |w| both(w) && is_done(w, &[a, b])));
}

#[test]
fn a_dozen_connections_between_the_same_two_endpoints_are_kept_apart() {
    let (mut world, a, b) = two_endpoints(7, 5);
    for _ in 0..12 {
        world.connect(a, b, Exchange::streams(2, 50_000, 50_000));
    }
    let deadline = Time::ZERO + Duration::from_secs(2);
    let all = |w: &World| w.parties(b).count() == 12 && is_done(w, &[a, b]);
    assert!(world.run_until(deadline, all));
}
