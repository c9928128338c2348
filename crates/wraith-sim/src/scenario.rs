//! A test as a list of boxes: what lies between two endpoints, what they exchange, and by when it must be complete.
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
//! A scenario runs with several seeds, each printed if it fails. `WRAITH_SIM_SEED=n` runs that seed alone.

use std::cell::RefCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::sync::Once;
use std::time::Duration;

use wraith_core::{CloseReason, ConnectionStats, Role, Time, TransportConfig};

use crate::link::{Hops, Mtu, Nat};
use crate::world::{Driver, NodeIndex, World};
use crate::{Exchange, Forwarder, Party, Rng};

/// Environment variable that picks one seed.
const SEED_VARIABLE: &str = "WRAITH_SIM_SEED";
/// Seeds a scenario runs with unless told otherwise.
const SEEDS: Range<u64> = 0..3;
/// Close code that the parties use: the first of the application's.
pub const DONE_CODE: u64 = 0x100;
/// After a close both sides must have forgotten everything within the idle timeout and this.
const DRAIN_MARGIN: Duration = Duration::from_secs(30);
/// Largest UDP payload over IPv4 and Ethernet.
const ETHERNET_PAYLOAD: usize = 1472;
/// Address of the simulated NAT.
pub const NAT_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// Address of a stranger.
const STRANGER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 66)), 666);
/// Address of one who replays.
const REPLAYER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(198, 51, 100, 77)), 777);
/// Largest datagram of garbage.
const GARBAGE_MAX: u64 = 1500;
/// Stream of chance of the strangers.
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
    /// Least part of the bottleneck's rate that the applications' bytes must fill.
    goodput_min: Option<f64>,
    closes: Option<Role>,
    closes_after: Option<Duration>,
    seeds: Range<u64>,
    garbage: u64,
    replays: Option<Silence>,
    hostiles: usize,
    forwarder: Option<Forwarder>,
}

/// Whether one who replays must not get an answer.
#[derive(Clone, Copy, Debug)]
struct Silence(bool);

/// How one run went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// When both sides had everything, if they ever had.
    pub completed: Option<Time>,
    /// When both sides had closed.
    pub closed: Option<Time>,
    /// Why it ended, at the initiator.
    pub initiator: Option<CloseReason>,
    /// Why it ended, at the responder; `None` too if it never heard of the connection.
    pub responder: Option<CloseReason>,
    /// The initiator's statistics at completion, or just before the end.
    pub initiator_stats: ConnectionStats,
    /// The responder's.
    pub responder_stats: ConnectionStats,
    /// Bytes that each side's application read.
    pub bytes_read: [u64; 2],
    /// Times each side found its peer at another address.
    pub path_changes: [u64; 2],
    /// Where each side was told that it is seen, in order.
    pub observed: [Vec<SocketAddr>; 2],
    /// Unreliable datagrams that each side received.
    pub datagrams_received: [u64; 2],
    /// What each side lacked, if the exchange was not completed.
    pub unfinished: [Vec<String>; 2],
    /// See [`World::fingerprint`].
    pub fingerprint: u64,
    /// Datagrams both sides sent.
    pub transmitted: u64,
}

impl Scenario {
    /// Two endpoints with default configuration on a perfect Ethernet, with nothing to exchange, given a minute.
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

    /// Boxes from initiator to responder.
    #[must_use]
    pub fn up(mut self, hops: Hops) -> Self {
        self.up = hops;
        self
    }
    /// Boxes from responder to initiator.
    #[must_use]
    pub fn down(mut self, hops: Hops) -> Self {
        self.down = hops;
        self
    }
    /// The same boxes, but not the same chance, in both directions.
    #[must_use]
    pub fn both(self, hops: Hops) -> Self {
        self.up(hops.clone()).down(hops)
    }
    /// Largest UDP payload that passes either way; 1472 unless told otherwise.
    #[must_use]
    pub fn payload_max(mut self, bytes: usize) -> Self {
        self.payload_max = bytes;
        self
    }
    /// How the loops around both endpoints behave.
    #[must_use]
    pub fn driver(mut self, driver: Driver) -> Self {
        self.driver = driver;
        self
    }
    /// The initiator is behind a NAT that forgets its mappings at each of these times.
    #[must_use]
    pub fn nat_rebinding(mut self, after: &[Duration]) -> Self {
        self.rebind_after = Some(after.to_vec());
        self
    }
    /// What is exchanged.
    #[must_use]
    pub fn exchange(mut self, plan: Exchange) -> Self {
        self.plan = plan;
        self
    }
    /// One stream from the initiator.
    #[must_use]
    pub fn upload(self, bytes: u64) -> Self {
        self.exchange(Exchange::upload(bytes))
    }
    /// One stream from the responder.
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
    /// Ceiling of the completion time, simulated.
    #[must_use]
    pub fn within(mut self, ceiling: Duration) -> Self {
        self.ceiling = ceiling;
        self
    }
    /// The applications' bytes must fill at least this part of the bottleneck's rate, in the direction that is filled
    /// better, from the first datagram of the handshake to completion.
    #[must_use]
    pub fn goodput_at_least(mut self, part: f64) -> Self {
        self.goodput_min = Some(part);
        self
    }
    /// Who closes after completion; `None`: nobody, so that the idle timeout must end it.
    #[must_use]
    pub fn closed_by(mut self, role: Option<Role>) -> Self {
        self.closes = role;
        self
    }
    /// The side that closes does so this long after the start, complete or not.
    #[must_use]
    pub fn closing_after(mut self, after: Duration) -> Self {
        self.closes_after = Some(after);
        self
    }
    /// Seeds to run with.
    #[must_use]
    pub fn seeds(mut self, seeds: Range<u64>) -> Self {
        self.seeds = seeds;
        self
    }
    /// A stranger sends so many datagrams of garbage to both sides, over the first two seconds.
    #[must_use]
    pub fn garbage(mut self, datagrams: u64) -> Self {
        self.garbage = datagrams;
        self
    }
    /// A stranger replays every datagram from its own address, and must not get an answer. The path must keep
    /// order and lose nothing; see [`World::replay_everything_from`].
    #[must_use]
    pub fn replayed_by_a_stranger(mut self) -> Self {
        self.replays = Some(Silence(true));
        self
    }
    /// The same over any path: the stranger gets no more than any unvalidated address.
    #[must_use]
    pub fn replayed_over_a_bad_path(mut self) -> Self {
        self.replays = Some(Silence(false));
        self
    }
    /// So many hostile peers have keys of each side and forge addresses, challenges and moves in its first seconds.
    #[must_use]
    pub fn hostile_peers(mut self, of_each: usize) -> Self {
        self.hostiles = of_each;
        self
    }
    /// Somebody copies what both sides send, and is faster than the path.
    #[must_use]
    pub fn forwarder(mut self, forwarder: Forwarder) -> Self {
        self.forwarder = Some(forwarder);
        self
    }

    /// Runs with every seed. Panics if an invariant breaks, or if the exchange is not complete within the ceiling,
    /// or if the connection is not forgotten after it closed.
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

    /// As [`Self::run`], for connections that are expected to fail: the exchange need not complete, but both sides
    /// must have closed within the ceiling.
    pub fn run_to_failure(&self) -> Vec<Outcome> {
        self.picked_seeds().map(|seed| self.guarded(seed, |outcome| outcome)).collect()
    }

    /// One run with one seed; complete or not.
    pub fn run_seed(&self, seed: u64) -> Outcome {
        self.guarded(seed, |outcome| outcome)
    }

    /// One run, judged by `check`; the seed is printed if it or the run panics.
    pub(crate) fn run_checked(&self, seed: u64, check: impl FnOnce(&Outcome)) {
        self.guarded(seed, |outcome| {
            check(&outcome);
            outcome
        });
    }

    /// The part of the bottleneck's rate that the applications' bytes filled until completion.
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
        let _guard = Guard::new(seed, self);
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
        if let Some(Silence(silence)) = self.replays {
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
        let bytes_read = nodes.map(|node| world.parties(node).map(Party::bytes_read).sum());
        let path_changes = nodes.map(|node| world.parties(node).map(Party::path_changes).sum());
        let observed =
            nodes.map(|node| world.parties(node).flat_map(|p| p.observed().to_vec()).collect());
        let datagrams_received =
            nodes.map(|node| world.parties(node).map(Party::datagrams_received).sum());
        let unfinished =
            nodes.map(|node| world.parties(node).flat_map(Party::unfinished).collect());
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
            nodes.map(|node| world.parties(node).find_map(Party::closed).cloned());
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

/// Both sides have everything.
fn is_done(world: &World, nodes: [NodeIndex; 2]) -> bool {
    nodes.iter().all(|node| {
        let mut parties = world.parties(*node).peekable();
        parties.peek().is_some() && parties.all(Party::is_done)
    })
}

/// No side has an open connection.
fn is_closed(world: &World, nodes: [NodeIndex; 2]) -> bool {
    nodes.iter().all(|node| world.parties(*node).all(|party| party.closed().is_some()))
}

fn stats(world: &mut World, node: NodeIndex) -> ConnectionStats {
    let handle = world.handles(node).first().copied();
    handle.and_then(|handle| world.stats(node, handle)).unwrap_or_default()
}

thread_local! {
    /// The run in progress on this thread.
    static CURRENT: RefCell<Option<(u64, Scenario)>> = const { RefCell::new(None) };
}

/// Marks a run as in progress, so that a panic, even one that aborts, says how to repeat it.
struct Guard;

impl Guard {
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

impl Drop for Guard {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}
