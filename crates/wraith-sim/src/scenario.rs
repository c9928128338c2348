//! A test as a list of boxes: the path between two endpoints, the exchange, and a time limit.
//!
//! ```
//! use std::time::Duration;
//! use wraith_sim::{Scenario, hops, link::{Delay, Loss, Rate}};
//!
//! Scenario::new()
//!     .both(hops![Rate::mbit(50), Delay::ms(20), Loss::percent(1.0)])
//!     .upload(100_000)
//!     .within(Duration::from_secs(5))
//!     .run();
//! ```
//!
//! A scenario runs once for each of several seeds; a failing seed is printed. `WRAITH_SIM_SEED=n`
//! runs only that seed.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::Once;
use std::time::Duration;

use wraith_core::{CloseReason, ConnectionStats, Role, Time, TransportConfig};

use crate::link::{Hops, Mtu, Nat};
use crate::world::{Driver, NodeIndex, World};
use crate::{Application, Exchange, Forwarder, Rng};

/// Environment variable that selects one seed.
const SEED_VARIABLE: &str = "WRAITH_SIM_SEED";
/// Default seeds of a scenario.
const SEEDS: Range<u64> = 0..3;
/// Close code of the parties: the first application code.
pub const DONE_CODE: u64 = 0x100;
/// Time after the idle timeout by which both sides must have dropped a closed connection.
const DRAIN_MARGIN: Duration = Duration::from_secs(30);
/// Largest UDP payload over IPv4 and Ethernet.
const ETHERNET_PAYLOAD: usize = 1472;
/// Address of the simulated NAT.
pub const NAT_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// Address of the stranger that sends garbage.
const STRANGER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 66)), 666);
/// Address of the stranger that replays datagrams.
const REPLAYER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 77)), 777);
/// Maximum length of a garbage datagram.
const GARBAGE_MAX: u64 = 1500;
/// Random stream of the strangers.
const GARBAGE_STREAM: u64 = 4 << 32;

/// A test; see the module.
#[derive(Clone, Debug)]
pub struct Scenario {
    up: Hops,
    down: Hops,
    payload_max: usize,
    driver: Driver,
    rebind_after: Option<Vec<Duration>>,
    plan: Exchange,
    initiator: TransportConfig,
    responder: TransportConfig,
    ceiling: Duration,
    /// Minimum goodput, as a part of the bottleneck's rate.
    goodput_min: Option<f64>,
    closes: Option<Role>,
    closes_after: Option<Duration>,
    seeds: Range<u64>,
    garbage: u64,
    replays: Option<ForbidReply>,
    hostiles: usize,
    forwarder: Option<Forwarder>,
}

/// Whether the replaying stranger must not get an answer.
#[derive(Clone, Copy, Debug)]
struct ForbidReply(bool);

/// Result of one run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// Time at which both sides had received everything, if they did.
    pub completed: Option<Time>,
    /// Time at which both sides had closed.
    pub closed: Option<Time>,
    /// Close reason at the initiator.
    pub initiator: Option<CloseReason>,
    /// Close reason at the responder; also `None` if the connection never reached it.
    pub responder: Option<CloseReason>,
    /// The initiator's statistics at completion, or just before the end.
    pub initiator_stats: ConnectionStats,
    /// The responder's.
    pub responder_stats: ConnectionStats,
    /// Bytes read by each side's application.
    pub bytes_read: [u64; 2],
    /// Number of times that each side saw its peer's address change.
    pub path_changes: [u64; 2],
    /// Observed addresses reported to each side, in order.
    pub observed: [Vec<SocketAddr>; 2],
    /// Unreliable datagrams received by each side.
    pub datagrams_received: [u64; 2],
    /// Unfinished parts of each side, if the exchange was not completed.
    pub unfinished: [Vec<String>; 2],
    /// See [`World::fingerprint`].
    pub fingerprint: u64,
    /// Number of datagrams sent by both sides.
    pub transmitted: u64,
}

impl Scenario {
    /// Two endpoints with default configuration on a perfect Ethernet, with an empty exchange and a
    /// limit of one minute.
    pub fn new() -> Self {
        Self {
            up: Vec::new(),
            down: Vec::new(),
            payload_max: ETHERNET_PAYLOAD,
            driver: Driver::default(),
            rebind_after: None,
            plan: Exchange::default(),
            initiator: TransportConfig::default(),
            responder: TransportConfig::default(),
            ceiling: Duration::from_secs(60),
            goodput_min: None,
            closes: Some(Role::Initiator),
            closes_after: None,
            seeds: SEEDS,
            garbage: 0,
            replays: None,
            hostiles: 0,
            forwarder: None,
        }
    }

    /// Sets the boxes from initiator to responder.
    #[must_use]
    pub fn up(mut self, hops: Hops) -> Self {
        self.up = hops;
        self
    }
    /// Sets the boxes from responder to initiator.
    #[must_use]
    pub fn down(mut self, hops: Hops) -> Self {
        self.down = hops;
        self
    }
    /// Sets the same boxes in both directions, with independent randomness.
    #[must_use]
    pub fn both(self, hops: Hops) -> Self {
        self.up(hops.clone()).down(hops)
    }
    /// Sets the largest UDP payload that passes in either direction; 1472 by default.
    #[must_use]
    pub fn payload_max(mut self, bytes: usize) -> Self {
        self.payload_max = bytes;
        self
    }
    /// Sets the behaviour of the loops around both endpoints.
    #[must_use]
    pub fn driver(mut self, driver: Driver) -> Self {
        self.driver = driver;
        self
    }
    /// Puts the initiator behind a NAT that drops its mappings at each of these times.
    #[must_use]
    pub fn nat_rebinding(mut self, after: &[Duration]) -> Self {
        self.rebind_after = Some(after.to_vec());
        self
    }
    /// Sets the exchange.
    #[must_use]
    pub fn exchange(mut self, plan: Exchange) -> Self {
        self.plan = plan;
        self
    }
    /// Exchanges one stream from the initiator.
    #[must_use]
    pub fn upload(self, bytes: u64) -> Self {
        self.exchange(Exchange::upload(bytes))
    }
    /// Exchanges one stream from the responder.
    #[must_use]
    pub fn download(self, bytes: u64) -> Self {
        self.exchange(Exchange::download(bytes))
    }
    /// Changes the configuration of both endpoints.
    #[must_use]
    pub fn configure(mut self, change: impl Fn(&mut TransportConfig)) -> Self {
        change(&mut self.initiator);
        change(&mut self.responder);
        self
    }
    /// Changes the configuration of one endpoint.
    #[must_use]
    pub fn configure_one(mut self, role: Role, change: impl Fn(&mut TransportConfig)) -> Self {
        match role {
            Role::Initiator => change(&mut self.initiator),
            Role::Responder => change(&mut self.responder),
        }
        self
    }
    /// Sets the limit of the simulated completion time.
    #[must_use]
    pub fn within(mut self, ceiling: Duration) -> Self {
        self.ceiling = ceiling;
        self
    }
    /// Sets the minimum goodput as a part of the bottleneck's rate. It applies to the better-used
    /// direction, from the first datagram of the handshake to completion.
    #[must_use]
    pub fn goodput_at_least(mut self, part: f64) -> Self {
        self.goodput_min = Some(part);
        self
    }
    /// Sets the side that closes after completion; with `None` the idle timeout must end the
    /// connection.
    #[must_use]
    pub fn closed_by(mut self, role: Option<Role>) -> Self {
        self.closes = role;
        self
    }
    /// Makes the closing side close this long after the start, complete or not.
    #[must_use]
    pub fn closing_after(mut self, after: Duration) -> Self {
        self.closes_after = Some(after);
        self
    }
    /// Sets the seeds.
    #[must_use]
    pub fn seeds(mut self, seeds: Range<u64>) -> Self {
        self.seeds = seeds;
        self
    }
    /// Adds a stranger that sends this many garbage datagrams to both sides, over the first two
    /// seconds.
    #[must_use]
    pub fn garbage(mut self, datagrams: u64) -> Self {
        self.garbage = datagrams;
        self
    }
    /// Adds a stranger that replays every datagram from its own address, and must not get an
    /// answer. The path must keep the order and lose nothing; see
    /// [`World::replay_everything_from`].
    #[must_use]
    pub fn replayed_by_a_stranger(mut self) -> Self {
        self.replays = Some(ForbidReply(true));
        self
    }
    /// As [`Self::replayed_by_a_stranger`], over any path: the stranger gets at most as much as any
    /// unvalidated address.
    #[must_use]
    pub fn replayed_over_a_bad_path(mut self) -> Self {
        self.replays = Some(ForbidReply(false));
        self
    }
    /// Adds this many hostile peers of each side. They have access keys and forge addresses,
    /// challenges and migrations in the first seconds.
    #[must_use]
    pub fn hostile_peers(mut self, of_each: usize) -> Self {
        self.hostiles = of_each;
        self
    }
    /// Adds an on-path attacker that copies the datagrams of both sides and is faster than the
    /// path.
    #[must_use]
    pub fn forwarder(mut self, forwarder: Forwarder) -> Self {
        self.forwarder = Some(forwarder);
        self
    }

    /// Runs with every seed. Panics if an invariant is violated, if the exchange is not complete
    /// within the time limit, or if the connection is not dropped after it closed.
    pub fn run(&self) -> Vec<Outcome> {
        let check = |outcome: Outcome| {
            assert!(
                outcome.completed.is_some(),
                "not complete within {:?}: {outcome:#?}",
                self.ceiling
            );
            if let Some(least) = self.goodput_min {
                let goodput = self.goodput(&outcome);
                assert!(
                    goodput >= least,
                    "goodput {goodput:.3} of the rate, not {least}: {outcome:#?}"
                );
            }
            outcome
        };
        self.picked_seeds().map(|seed| self.guarded(seed, check)).collect()
    }

    /// As [`Self::run`], for connections that are expected to fail: the exchange need not complete,
    /// but both sides must have closed within the time limit.
    pub fn run_to_failure(&self) -> Vec<Outcome> {
        self.picked_seeds().map(|seed| self.guarded(seed, |outcome| outcome)).collect()
    }

    /// Runs one seed, complete or not.
    pub fn run_seed(&self, seed: u64) -> Outcome {
        self.guarded(seed, |outcome| outcome)
    }

    /// Runs one seed and calls `check`; prints the seed if the run or `check` panics.
    pub(crate) fn run_checked(&self, seed: u64, check: impl FnOnce(&Outcome)) {
        self.guarded(seed, |outcome| {
            check(&outcome);
            outcome
        });
    }

    /// Returns the part of the bottleneck's rate used by application bytes until completion.
    fn goodput(&self, outcome: &Outcome) -> f64 {
        let completed =
            outcome.completed.expect("it was completed").since(Time::ZERO).as_secs_f64();
        let requests = self.plan.streams.iter().map(|stream| stream.request).sum::<u64>();
        let responses = self.plan.total_bytes() - requests;
        let part = |hops: &Hops, bytes: u64| {
            let rate = hops.iter().filter_map(|hop| hop.bits_per_second()).min();
            let rate = rate.expect("goodput is a part of the rate of a link that has one");
            bytes as f64 * 8.0 / completed / rate as f64
        };
        let filled = [(&self.up, requests), (&self.down, responses)];
        filled
            .into_iter()
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(hops, bytes)| part(hops, bytes))
            .fold(0.0, f64::max)
    }

    fn picked_seeds(&self) -> Range<u64> {
        let picked = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok());
        picked.map_or(self.seeds.clone(), |seed: u64| seed..seed + 1)
    }

    fn guarded(&self, seed: u64, check: impl FnOnce(Outcome) -> Outcome) -> Outcome {
        let _guard = RunGuard::new(seed, self);
        check(self.simulate(seed))
    }

    fn build(&self, seed: u64) -> (World, [NodeIndex; 2]) {
        let mut world = World::new(seed);
        world.set_driver(self.driver);
        let initiator = world.add_endpoint("initiator", self.initiator.clone());
        let responder = world.add_endpoint("responder", self.responder.clone());
        let (mut up, mut down) = (self.up.clone(), self.down.clone());
        up.insert(0, Box::new(Mtu::payload(self.payload_max)));
        down.insert(0, Box::new(Mtu::payload(self.payload_max)));
        if let Some(times) = &self.rebind_after {
            let (nat_out, nat_in) = Nat::pair(NAT_ADDRESS, times);
            up.insert(0, Box::new(nat_out));
            down.push(Box::new(nat_in));
        }
        world.link((initiator, up), (responder, down));
        if let Some(ForbidReply(silence)) = self.replays {
            world.replay_everything_from(REPLAYER, silence);
        }
        if let Some(forwarder) = self.forwarder {
            world.set_forwarder(forwarder);
        }
        for i in 0..2 * self.hostiles {
            world.add_hostile([initiator, responder][i % 2]);
        }
        let mut rng = Rng::new(seed, GARBAGE_STREAM);
        for node in [initiator, responder] {
            for _ in 0..self.garbage {
                let mut bytes = vec![0; rng.below(GARBAGE_MAX + 1) as usize];
                rng.fill(&mut bytes);
                let at = Time::ZERO + rng.up_to(Duration::from_secs(2));
                world.inject(at, node, STRANGER, bytes);
            }
        }
        (world, [initiator, responder])
    }

    fn simulate(&self, seed: u64) -> Outcome {
        let (mut world, nodes) = self.build(seed);
        world.connect(nodes[0], nodes[1], self.plan.clone());
        let deadline = Time::ZERO + self.ceiling;
        let stop = self.closes_after.map_or(deadline, |after| deadline.min(Time::ZERO + after));
        world.run_until(stop, |w| is_done(w, nodes) || is_closed(w, nodes));
        let completed = is_done(&world, nodes).then(|| world.now());
        let [initiator_stats, responder_stats] = nodes.map(|node| stats(&mut world, node));
        let bytes_read = nodes.map(|node| world.parties(node).map(Application::bytes_read).sum());
        let path_changes =
            nodes.map(|node| world.parties(node).map(Application::path_changes).sum());
        let observed =
            nodes.map(|node| world.parties(node).flat_map(|p| p.observed().to_vec()).collect());
        let datagrams_received =
            nodes.map(|node| world.parties(node).map(Application::datagrams_received).sum());
        let unfinished =
            nodes.map(|node| world.parties(node).flat_map(Application::unfinished).collect());
        if completed.is_some() || self.closes_after.is_some() {
            self.close(&mut world, nodes);
        }
        let closing_deadline =
            world.now().max(deadline) + self.initiator.idle_timeout + DRAIN_MARGIN;
        let closed = world.run_until(closing_deadline, |w| is_closed(w, nodes));
        let closed = closed.then(|| world.now());
        if closed.is_some() {
            let forgotten = world.run_until(closing_deadline, World::is_drained);
            assert!(forgotten, "a closed connection is not forgotten");
        }
        let [initiator, responder] =
            nodes.map(|node| world.parties(node).find_map(Application::closed).cloned());
        Outcome {
            seed,
            completed,
            closed,
            initiator,
            responder,
            initiator_stats,
            responder_stats,
            bytes_read,
            path_changes,
            observed,
            datagrams_received,
            unfinished,
            fingerprint: world.fingerprint(),
            transmitted: world.transmitted(),
        }
    }

    fn close(&self, world: &mut World, nodes: [NodeIndex; 2]) {
        let Some(role) = self.closes else { return };
        let node = nodes[usize::from(role == Role::Responder)];
        for handle in world.handles(node) {
            world.with_connection(node, handle, |now, c| c.close(now, DONE_CODE, "done"));
        }
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns whether both sides have received everything.
fn is_done(world: &World, nodes: [NodeIndex; 2]) -> bool {
    nodes.iter().all(|node| {
        let mut parties = world.parties(*node).peekable();
        parties.peek().is_some() && parties.all(Application::is_done)
    })
}

/// Returns whether neither side has an open connection.
fn is_closed(world: &World, nodes: [NodeIndex; 2]) -> bool {
    nodes.iter().all(|node| world.parties(*node).all(|party| party.closed().is_some()))
}

fn stats(world: &mut World, node: NodeIndex) -> ConnectionStats {
    let handle = world.handles(node).first().copied();
    handle.and_then(|handle| world.stats(node, handle)).unwrap_or_default()
}

thread_local! {
    /// The current run of this thread.
    static CURRENT: RefCell<Option<(u64, Scenario)>> = const { RefCell::new(None) };
}

/// Marks a run as current, so that a panic, even an aborting one, prints how to repeat it.
struct RunGuard;

impl RunGuard {
    fn new(seed: u64, scenario: &Scenario) -> Self {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let previous = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                previous(panic);
                CURRENT.with_borrow(|current| {
                    if let Some((seed, scenario)) = current {
                        eprintln!("{SEED_VARIABLE}={seed} repeats the failed run of {scenario:#?}");
                    }
                });
            }));
        });
        CURRENT.set(Some((seed, scenario.clone())));
        Self
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}
