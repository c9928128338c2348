//! Without keep-alives, a side that waits for the peer's flow control credit must not run into the
//! idle timeout.

use std::time::Duration;

use wraith_core::{Time, TransportConfig};
use wraith_sim::link::{Blackhole, Delay, Hops, Rate};
use wraith_sim::{Exchange, Scenario, World, hops};

const IDLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Windows so small that the sender waits for the reader; without keep-alives.
fn small_windows() -> TransportConfig {
    TransportConfig {
        keep_alive: false,
        idle_timeout: IDLE_TIMEOUT,
        stream_window_initial: 32 * 1024,
        stream_window_max: 32 * 1024,
        connection_window_initial: 32 * 1024,
        connection_window_max: 32 * 1024,
        ..TransportConfig::default()
    }
}

fn path() -> Hops {
    hops![Rate::mbit(10), Delay::ms(10)]
}

#[test]
fn a_sender_waits_longer_than_the_idle_timeout_for_an_application_that_reads_later() {
    // The second stream may be opened once the first was read, and the reads are 20 seconds apart.
    let mut plan = Exchange::streams(2, 20_000, 0).read_rate(800);
    plan.streams[1].request = 10;
    for window in [4 * 1024, 32 * 1024] {
        Scenario::new()
            .configure(|c| {
                *c = small_windows();
                c.stream_window_initial = window;
                c.streams_max = 1;
            })
            .both(path())
            .exchange(plan.clone())
            .within(Duration::from_secs(200))
            .run();
    }
}

#[test]
fn credit_that_nothing_gets_through_for_a_while_is_made_up_for() {
    // The first windows are used and read within a second; every limit announced during the outage
    // is lost.
    let silence = Blackhole::new(Duration::from_millis(60), Duration::from_secs(8));
    Scenario::new()
        .configure(|c| *c = small_windows())
        .up(path())
        .down(hops![Rate::mbit(10), Delay::ms(10), silence])
        .upload(200_000)
        .within(Duration::from_secs(12))
        .run();
}

#[test]
fn credit_does_not_wait_for_a_sender_that_is_held_back() {
    const BYTES: u64 = 2_000_000;
    let mut world = World::new(1);
    let [a, b] = ["initiator", "responder"].map(|name| world.add_endpoint(name, small_windows()));
    world.link((a, path()), (b, path()));
    world.connect(a, b, Exchange::streams(1, BYTES, 30_000).eager());
    let begun = |w: &World| w.parties(b).any(|party| party.bytes_read() > 0);
    assert!(world.run_until(Time::from_nanos(1_000_000_000), begun));
    // The responder's own bytes leave at one packet in 1.4 s; its flow control limits must not wait
    // for that pacing.
    for handle in world.handles(b) {
        world.with_connection(b, handle, |now, connection| connection.set_rate_limit(now, 1024));
    }
    let read = |w: &World| w.parties(b).all(|party| party.bytes_read() == BYTES);
    assert!(world.run_until(Time::from_nanos(5_000_000_000), read), "credit waits for the pacer");
}
