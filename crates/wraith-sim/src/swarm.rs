//! Runs thousands of scenarios, each drawn from one seed. Each run checks three requirements:
//!
//! - The invariants of `checks.rs` hold.
//! - Every byte arrives. The exceptions are a side that closes early, and a handshake that could
//!   not complete (losses, no common suite, an address change).
//! - Both sides end for a permitted reason.
//!
//! The seed determines everything random about a run, including its parameters. Most runs are cheap
//! (a few hundred datagrams). Each feature of a scenario, such as loss, NAT rebinding or a hostile
//! peer, is off in many runs. So a failure is likely to occur also in a run with few features on,
//! where its cause is easy to find.

use std::ops::Range;
use std::time::Duration;

use wraith_core::{CloseReason, Role, TransportConfig};

use crate::exchange::{Exchange, StreamCut, StreamPlan};
use crate::link::{
    Aggregate, Blackhole, BurstLoss, Corrupt, Delay, Duplicate, Hops, Jitter, Loss, Rate, Reorder,
};
use crate::scenario::{DONE_CODE, Outcome, Scenario};
use crate::world::Driver;
use crate::{Forwarder, Rng, hops};

/// Random stream of the scenarios.
const SCENARIO_STREAM: u64 = 5 << 32;
/// Liveness: on every link, this simulated time is enough for the few exchanged bytes.
const CEILING: Duration = Duration::from_secs(3600);
/// Maximum bytes of one exchange; keeps a run at about ten milliseconds.
const BYTES_MAX: u64 = 1 << 20;
/// Maximum duration of an exchange at the rate of the link.
const SECONDS_MAX: u64 = 4;
/// Maximum outage; below the shortest idle timeout drawn.
const OUTAGE_MAX: Duration = Duration::from_secs(3);
/// Time within which a NAT drops its mappings.
const REBIND_MAX: Duration = Duration::from_secs(4);
/// Maximum lifetime of a forwarder that is faster than the path.
const FORWARDER_MAX: Duration = Duration::from_secs(2);

/// Runs the scenario of each seed. Panics at the first failure and prints its seed.
pub fn swarm(seeds: Range<u64>) {
    for seed in seeds {
        let drawn = RandomScenario::new(seed);
        drawn.scenario.run_checked(seed, |outcome| drawn.check_outcome(outcome));
    }
}

/// Returns the scenario of `seed`.
pub fn scenario_of(seed: u64) -> Scenario {
    RandomScenario::new(seed).scenario
}

/// A scenario with its permitted results.
#[derive(Debug)]
struct RandomScenario {
    scenario: Scenario,
    /// The handshake may fail: datagrams are lost, or there is no common suite.
    may_fail_to_connect: bool,
    /// The initiator's address may change before the responder has authenticated it.
    rebinds: bool,
    /// A side may close before the exchange is complete.
    closes_early: bool,
    closer: Option<Role>,
}

impl RandomScenario {
    fn new(seed: u64) -> Self {
        let rng = &mut Rng::new(seed, SCENARIO_STREAM);
        let Link { up, down, payload, rate, lossy } = link(rng);
        let rebinds = rng.chance(0.2);
        // After its mapping is dropped, an initiator that only receives is reachable again once it
        // sends a keep-alive.
        let keep_alive = rebinds || rng.chance(0.7);
        let idle_timeout = Duration::from_millis(rng.between(10_000, 60_000));
        let initiator = transport(rng, keep_alive, idle_timeout);
        let responder = transport(rng, keep_alive, idle_timeout);
        let no_suite = initiator.suites & responder.suites == 0;
        let mut scenario = Scenario::new()
            .up(up)
            .down(down)
            .payload_max(payload)
            .exchange(exchange(rng, rate))
            .within(CEILING)
            .configure_one(Role::Initiator, |c| *c = initiator.clone())
            .configure_one(Role::Responder, |c| *c = responder.clone());
        if rebinds {
            let times = rng.between(1, 3);
            let times: Vec<_> = (0..times).map(|_| rng.up_to(REBIND_MAX)).collect();
            scenario = scenario.nat_rebinding(&times);
        }
        if rng.chance(0.1) {
            scenario = scenario.garbage(20);
        }
        if rng.chance(0.1) {
            scenario = scenario.replayed_over_a_bad_path();
        }
        let late_by = Duration::from_micros(if rng.chance(0.5) { rng.scaled(1, 5_000) } else { 0 });
        scenario = scenario.driver(Driver { batches: rng.chance(0.5), late_by });
        let (closes_early, closer) = match rng.below(10) {
            0 => (true, Some(Role::Initiator)),
            1 if !keep_alive => (false, None),
            2..6 => (false, Some(Role::Responder)),
            _ => (false, Some(Role::Initiator)),
        };
        scenario = scenario.closed_by(closer);
        if closes_early {
            let after = Duration::from_nanos(rng.scaled(1000, 3_000_000_000));
            scenario = scenario.closing_after(after);
        }
        if rng.chance(0.2) {
            scenario = scenario.hostile_peers(1);
        }
        if rng.chance(0.1) {
            let (until, relays) = (rng.up_to(FORWARDER_MAX), rng.chance(0.5));
            let payload_max = if rng.chance(0.3) { rng.between(64, 1199) as usize } else { 65_535 };
            scenario = scenario.forwarder(Forwarder { until, relays, payload_max });
        }
        Self { scenario, may_fail_to_connect: lossy || no_suite, rebinds, closes_early, closer }
    }

    /// Checks the requirements of every run.
    fn check_outcome(&self, outcome: &Outcome) {
        let Outcome { completed, closed, initiator, responder, .. } = outcome;
        assert!(closed.is_some(), "not closed in time: {outcome:#?}");
        let initiator = initiator.as_ref().expect("closed");
        let unreached = responder.is_none() && *initiator == CloseReason::IdleTimeout;
        if *initiator == CloseReason::HandshakeTimeout || unreached {
            let excused = self.may_fail_to_connect || self.rebinds;
            assert!(excused, "no handshake over a good link: {outcome:#?}");
            return;
        }
        assert!(self.closes_early || completed.is_some(), "not complete: {outcome:#?}");
        let ends = [(Role::Initiator, Some(initiator)), (Role::Responder, responder.as_ref())];
        for (role, reason) in ends {
            match reason {
                Some(CloseReason::Local) => assert_eq!(self.closer, Some(role), "{outcome:#?}"),
                Some(CloseReason::Peer { code, reason }) => {
                    assert_eq!(self.closer, Some(role.peer()), "{outcome:#?}");
                    assert_eq!((*code, reason.as_str()), (DONE_CODE, "done"), "{outcome:#?}");
                }
                // CLOSE may be lost; then the idle timeout ends the connection.
                Some(CloseReason::IdleTimeout) => {
                    assert_ne!(self.closer, Some(role), "{outcome:#?}");
                }
                None => assert!(self.closes_early && role == Role::Responder, "{outcome:#?}"),
                other => panic!("{role:?} ended with {other:?}: {outcome:#?}"),
            }
        }
    }
}

/// The path between the endpoints.
struct Link {
    up: Hops,
    down: Hops,
    payload: usize,
    /// Rate of the slower direction, in bits per second.
    rate: u64,
    /// Whether there are losses other than at a full queue.
    lossy: bool,
}

fn link(rng: &mut Rng) -> Link {
    let draw = |rng: &mut Rng| {
        let delay = Duration::from_nanos(rng.scaled(50_000, 300_000_000));
        (rng.scaled(256_000, 2_000_000_000), delay)
    };
    let (rate, delay) = draw(rng);
    let payload = *pick(rng, &[1200, 1252, 1300, 1400, 1472, 1472, 1472, 8952, 65_000]);
    let (up, up_lossy) = direction(rng, rate, delay, payload);
    let (down_rate, down_delay) = if rng.chance(0.3) { draw(rng) } else { (rate, delay) };
    let (down, down_lossy) = direction(rng, down_rate, down_delay, payload);
    Link { up, down, payload, rate: rate.min(down_rate), lossy: up_lossy || down_lossy }
}

/// Draws the boxes of one direction. Also returns whether they cause losses other than at a full
/// queue.
fn direction(rng: &mut Rng, rate: u64, delay: Duration, payload: usize) -> (Hops, bool) {
    // At least a burst of the smallest window in the largest datagrams that pass.
    let queue = (rate / 8 * rng.between(20, 300) / 1000).max(12 * (payload as u64 + 28));
    let mut hops = hops![Rate::bits(rate).queue(queue), Delay::new(delay)];
    let benign = hops.len();
    if rng.chance(0.3) {
        hops.push(Box::new(Loss::percent(rng.unit() * 10.0)));
    }
    if rng.chance(0.2) {
        let (percent, burst) = (rng.unit() * 5.0, 1.0 + rng.unit() * 15.0);
        hops.push(Box::new(BurstLoss::percent(percent, burst)));
    }
    if rng.chance(0.2) {
        hops.push(Box::new(Corrupt::percent(rng.unit() * 5.0)));
    }
    if rng.chance(0.1) {
        let (after, lasting) = (rng.up_to(OUTAGE_MAX), rng.up_to(OUTAGE_MAX));
        hops.push(Box::new(Blackhole::new(after, lasting)));
    }
    let lossy = hops.len() > benign;
    if rng.chance(0.3) {
        let jitter = Jitter::new(rng.up_to(delay));
        hops.push(Box::new(if rng.chance(0.5) { jitter.reordering() } else { jitter }));
    }
    if rng.chance(0.3) {
        hops.push(Box::new(Reorder::percent(rng.unit() * 20.0, rng.up_to(delay * 2))));
    }
    if rng.chance(0.2) {
        hops.push(Box::new(Duplicate::percent(rng.unit() * 30.0, rng.up_to(delay * 4))));
    }
    if rng.chance(0.1) {
        hops.push(Box::new(Aggregate::every(rng.up_to(Duration::from_millis(20)))));
    }
    (hops, lossy)
}

fn exchange(rng: &mut Rng, rate: u64) -> Exchange {
    let bytes = rng.scaled(1, BYTES_MAX.min(rate / 8 * SECONDS_MAX));
    let count = rng.scaled(1, 60);
    let mut left = bytes;
    let streams = (0..count).map(|i| {
        let share = if i + 1 == count { left } else { rng.below(left + 1) };
        left -= share;
        let request = rng.below(share + 1);
        let response = share - request;
        let cut = match rng.below(20) {
            0 => Some(StreamCut::Reset(rng.below(request + 1))),
            1 => Some(StreamCut::Stop(rng.below(response + 1))),
            _ => None,
        };
        StreamPlan { request, response, cut }
    });
    let streams = streams.collect();
    Exchange {
        streams,
        at_once: rng.below(4) as usize * 5,
        eager: rng.chance(0.5),
        read_rate: rng.chance(0.2).then(|| rng.between(100_000, 1_000_000)),
        datagrams: if rng.chance(0.2) { rng.below(20) } else { 0 },
    }
}

fn transport(rng: &mut Rng, keep_alive: bool, idle_timeout: Duration) -> TransportConfig {
    let mut config = TransportConfig { keep_alive, idle_timeout, ..TransportConfig::default() };
    if rng.chance(0.5) {
        config.stream_window_initial = rng.scaled(2_000, 1 << 20);
        config.stream_window_max = config.stream_window_initial * rng.between(1, 8);
        config.connection_window_initial = rng.scaled(4_000, 2 << 20);
        config.connection_window_max = config.connection_window_initial * rng.between(1, 8);
        config.send_buffer_max = rng.scaled(1_000, 4 << 20);
    }
    if rng.chance(0.5) {
        config.streams_max = rng.between(1, 100);
    }
    if rng.chance(0.4) {
        config.phase_packets = rng.scaled(16, 1 << 20);
    }
    if rng.chance(0.4) {
        config.ratchet_bytes = rng.scaled(4_000, 1 << 30);
    }
    if rng.chance(0.3) {
        config.suites = rng.between(1, 7) as u8;
    }
    if rng.chance(0.3) {
        config.max_mtu = rng.between(1200, 65_000) as u16;
    }
    config
}

fn pick<'a, T>(rng: &mut Rng, from: &'a [T]) -> &'a T {
    &from[rng.below(from.len() as u64) as usize]
}
