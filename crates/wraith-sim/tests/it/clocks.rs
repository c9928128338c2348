//! Hosts that are suspended, and hosts with wall clocks that are wrong or stepped.

use std::time::Duration;

use wraith_core::{CloseReason, ConnectionHandle, TransportConfig};
use wraith_sim::link::{Delay, Rate};
use wraith_sim::{Application, DONE_CODE, Exchange, NodeIndex, World, hops};

const HOUR: Duration = Duration::from_secs(3600);
const DAY_SECONDS: u64 = 24 * 3600;
/// Wall-clock time at the start of a world.
const START: u64 = 1_800_000_000;
/// Clocks of boards without a battery, and of the years in which counters of 31 and 32 bits end.
const EPOCHS: [u64; 4] = [0, 60, 1 << 31, 1 << 32];

/// Two endpoints, of which the first dials the second and sends it a file.
struct Pair {
    world: World,
    ends: [NodeIndex; 2],
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut world = World::new(seed);
        let ends = ["initiator", "responder"]
            .map(|name| world.add_endpoint(name, TransportConfig::default()));
        let path = || hops![Rate::mbit(20), Delay::ms(10)];
        world.link((ends[0], path()), (ends[1], path()));
        Self { world, ends }
    }

    fn connect(&mut self) -> ConnectionHandle {
        self.world.connect(self.ends[0], self.ends[1], Exchange::streams(1, 100_000, 1000))
    }

    fn is_done(&self) -> bool {
        self.ends.iter().all(|end| self.world.parties(*end).any(Application::is_done))
    }

    /// Runs until the exchange is done or both sides have given it up. Returns whether it is done.
    fn run(&mut self, handle: ConnectionHandle) -> bool {
        let deadline = self.world.now() + 3 * HOUR;
        let ends = self.ends;
        let is_done = self.world.run_until(deadline, |world| {
            let is_done = ends.iter().all(|end| world.parties(*end).any(Application::is_done));
            is_done || world.is_drained()
        }) && self.is_done();
        self.world.with_connection(ends[0], handle, |now, connection| {
            connection.close(now, DONE_CODE, "done");
        });
        let deadline = self.world.now() + 3 * HOUR;
        self.world.run_until(deadline, World::is_drained);
        assert!(self.world.is_drained(), "a connection hangs");
        is_done
    }

    fn closed(&self) -> Option<CloseReason> {
        self.world.parties(self.ends[0]).find_map(Application::closed).cloned()
    }
}

/// Suspends one end after this many steps of a handshake and transfer. Returns whether there were
/// so many steps, and whether the exchange was done.
fn suspended(seed: u64, sleeper: usize, steps: u32, nap: Duration) -> (bool, bool) {
    let mut pair = Pair::new(seed);
    let handle = pair.connect();
    for _ in 0..steps {
        if pair.is_done() || !pair.world.step() {
            return (false, pair.run(handle));
        }
    }
    pair.world.suspend(pair.ends[sleeper], nap);
    (true, pair.run(handle))
}

#[test]
fn a_host_that_sleeps_for_some_seconds_at_any_step_loses_only_time() {
    let nap = Duration::from_secs(3);
    for sleeper in [0, 1] {
        for seed in 0..3 {
            let mut steps = 0;
            while suspended(seed, sleeper, steps, nap).0 {
                assert!(suspended(seed, sleeper, steps, nap).1, "seed {seed}, step {steps}");
                steps += 1 + steps / 8;
            }
            assert!(steps > 50, "the exchange has more steps than {steps}");
        }
    }
}

#[test]
fn a_host_that_sleeps_for_an_hour_at_any_step_leaves_no_connection_behind() {
    for sleeper in [0, 1] {
        for seed in 0..3 {
            let mut steps = 0;
            // `run` checks that both sides are drained.
            while suspended(seed, sleeper, steps, HOUR).0 {
                steps += 1 + steps / 8;
            }
            assert!(steps > 50, "the exchange has more steps than {steps}");
        }
    }
}

#[test]
fn a_new_connection_works_right_after_an_hour_of_sleep() {
    for sleeper in [0, 1] {
        let mut pair = Pair::new(1);
        let first = pair.connect();
        assert!(pair.run(first));
        pair.world.suspend(pair.ends[sleeper], HOUR);
        let woken = pair.world.now() + HOUR;
        pair.world.inject(woken, pair.ends[sleeper], ([198, 51, 100, 1], 1).into(), vec![0; 64]);
        while pair.world.now() < woken && pair.world.step() {}
        let second = pair.connect();
        assert!(pair.run(second));
    }
}

#[test]
fn under_the_public_access_key_clocks_that_differ_too_much_get_silence() {
    for skewed in [0, 1] {
        for (by, is_connected) in [(-91_i64, false), (-90, true), (90, true), (91, false)] {
            let mut pair = Pair::new(2);
            let clock = START.wrapping_add_signed(by);
            pair.world.set_clock(pair.ends[skewed], clock);
            let handle = pair.connect();
            assert_eq!(pair.run(handle), is_connected, "{by} s");
            let expected =
                if is_connected { CloseReason::Local } else { CloseReason::HandshakeTimeout };
            assert_eq!(pair.closed(), Some(expected), "{by} s");
        }
    }
}

#[test]
fn two_hosts_with_the_same_wrong_clock_connect_in_any_year() {
    for unix_seconds in EPOCHS {
        let mut pair = Pair::new(3);
        pair.ends.iter().for_each(|end| pair.world.set_clock(*end, unix_seconds));
        let handle = pair.connect();
        assert!(pair.run(handle), "{unix_seconds}");
    }
}

#[test]
fn wall_clocks_that_are_stepped_by_a_day_each_minute_change_nothing_in_a_connection() {
    let fingerprint = |is_stepped: bool| {
        let mut pair = Pair::new(4);
        let plan = Exchange::upload(30_000_000).read_rate(100_000);
        let handle = pair.world.connect(pair.ends[0], pair.ends[1], plan);
        let connected = pair.world.now() + Duration::from_secs(1);
        pair.world.run_until(connected, |_| false);
        for minute in 0..6_u64 {
            if is_stepped {
                let clocks = [START + minute % 2 * DAY_SECONDS, EPOCHS[minute as usize % 4]];
                for (end, clock) in pair.ends.into_iter().zip(clocks) {
                    pair.world.set_clock(end, clock);
                }
            }
            let next = pair.world.now() + Duration::from_secs(60);
            pair.world.run_until(next, |_| false);
        }
        assert!(pair.run(handle));
        pair.world.fingerprint()
    };
    assert_eq!(fingerprint(true), fingerprint(false));
}
