//! Endpoints joined by links, and simulated time.
//!
//! A [`World`] holds real core endpoints, the paths between them, and the parties that use them.
//! [`World::step`] advances to the next event, executes it, and drains every affected endpoint.
//! Each step verifies the invariants of `checks.rs`. Nothing depends on the clock, on the order of
//! a hash map, or on threads. The same seed gives the same datagrams, bit for bit, and
//! [`World::fingerprint`] lets a test compare them.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use wraith_core::{
    AccessKey, Connection, ConnectionHandle, ConnectionStats, DoorId, Endpoint, EndpointConfig,
    Event, Role, Time, Transmit, TransportConfig,
};
use wraith_crypto::identity::{NodeId, SecretIdentity};

use crate::checks::{Checks, OUTPUTS_MAX};
use crate::clock::HostClock;
use crate::flood::Flood;
use crate::forwarder::{self, Forwarder};
use crate::hostile::{self, Hostile};
use crate::link::{Datagram, Hops, Path};
use crate::party::Party;
use crate::{Application, Rng};

/// Buffer length for `poll_transmit`: the largest UDP datagram, or a full GSO batch.
const TRANSMIT_BYTES: usize = 64 * 1024;
/// Wall-clock time at the start of a simulation: arbitrary, the same for all.
const UNIX_TIME_AT_ZERO: u64 = 1_800_000_000;
/// Random streams: those of paths count from 0, those of endpoints and others from these numbers.
const ENDPOINT_STREAM: u64 = 1 << 32;
const IDENTITY_STREAM: u64 = 2 << 32;
const PATTERN_STREAM: u64 = 3 << 32;
const DRIVER_STREAM: u64 = 6 << 32;
const HOSTILE_STREAM: u64 = 7 << 32;
const FLOOD_STREAM: u64 = 8 << 32;
/// Minimum one-way delay between a hostile peer and its target.
const HOSTILE_DELAY: Duration = Duration::from_micros(200);
/// Delay of a replayed datagram.
const REPLAY_AFTER: Duration = Duration::from_micros(700);

/// Index of an endpoint in its world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(usize);

/// Behaviour of the loop around an endpoint; perfect by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Driver {
    /// Handles all datagrams of a moment before it drains the endpoint, instead of draining after
    /// each.
    pub batches: bool,
    /// Serves timers up to this much too late, as operating systems do.
    pub late_by: Duration,
}

/// Endpoints, links, and the time; see the module.
#[derive(Debug)]
pub struct World<P: Party = Application> {
    seed: u64,
    now: Time,
    nodes: Vec<Node<P>>,
    wires: Vec<Wire>,
    plans: HashMap<(NodeIndex, NodeId), P::Plan>,
    injected: BTreeMap<(Time, u64), (Destination, Datagram)>,
    injections: u64,
    replays_from: Option<SocketAddr>,
    hostiles: Vec<Hostile>,
    flood: Option<Flood>,
    forwarder: Option<Forwarder>,
    driver: Driver,
    driver_rng: Rng,
    fingerprint: u64,
    transmitted: u64,
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Node<P> {
    endpoint: Endpoint,
    address: SocketAddr,
    id: NodeId,
    parties: BTreeMap<ConnectionHandle, P>,
    checks: Checks,
    wake: Option<Time>,
    clock: HostClock,
    /// Whether it got datagrams since it was drained.
    has_input: bool,
    default_wire: Option<usize>,
    learned: HashMap<SocketAddr, usize>,
}

impl<P> Node<P> {
    /// Returns the time at which the endpoint is driven next.
    fn due(&self) -> Option<Time> {
        self.wake.map(|at| self.clock.awake_at(at))
    }
}

/// Destination of a datagram that no link carries.
#[derive(Clone, Copy, Debug)]
enum Destination {
    Node(NodeIndex),
    Hostile(usize),
}

/// One direction of a link. The directions of a link are adjacent: `i` and `i ^ 1`.
#[derive(Debug)]
struct Wire {
    path: Path,
    to: NodeIndex,
}

impl World {
    /// Creates an empty world at time zero. Its parties exchange data by a plan.
    pub fn new(seed: u64) -> Self {
        Self::with_parties(seed)
    }
}

impl<P: Party> World<P> {
    /// Creates an empty world at time zero, for parties of the caller.
    pub fn with_parties(seed: u64) -> Self {
        Self {
            seed,
            now: Time::ZERO,
            nodes: Vec::new(),
            wires: Vec::new(),
            plans: HashMap::new(),
            injected: BTreeMap::new(),
            injections: 0,
            replays_from: None,
            hostiles: Vec::new(),
            flood: None,
            forwarder: None,
            driver: Driver::default(),
            driver_rng: Rng::new(seed, DRIVER_STREAM),
            fingerprint: 0xcbf2_9ce4_8422_2325,
            transmitted: 0,
            buffer: vec![0; TRANSMIT_BYTES],
        }
    }

    /// Sets the driver of every endpoint from now on.
    pub fn set_driver(&mut self, driver: Driver) {
        self.driver = driver;
    }

    /// Adds an endpoint. Its identity, address and randomness follow from the seed and its index.
    pub fn add_endpoint(&mut self, name: &'static str, transport: TransportConfig) -> NodeIndex {
        let index = self.nodes.len();
        let identity = Rng::new(self.seed, IDENTITY_STREAM + index as u64).seed();
        let identity = SecretIdentity::from_seed(identity);
        let checks = Checks::new(name, usize::from(transport.max_mtu));
        let id = identity.node_id();
        let clock = HostClock::starting_at(UNIX_TIME_AT_ZERO);
        let config = EndpointConfig {
            transport,
            wall_clock: clock.wall(),
            ..EndpointConfig::open(identity)
        };
        let seed = Rng::new(self.seed, ENDPOINT_STREAM + index as u64).seed();
        let octet = u8::try_from(index + 1).expect("a world has few endpoints");
        self.nodes.push(Node {
            endpoint: Endpoint::new(config, seed),
            address: SocketAddr::from(([10, 0, 0, octet], 1000)),
            id,
            parties: BTreeMap::new(),
            checks,
            wake: None,
            clock,
            has_input: false,
            default_wire: None,
            learned: HashMap::new(),
        });
        NodeIndex(index)
    }

    /// Sets the accept filter of `node`: clients need one of these access keys.
    pub fn set_access_keys(&mut self, node: NodeIndex, access_keys: Vec<AccessKey>) {
        self.nodes[node.0].endpoint.set_access_keys(DoorId::FIRST, access_keys);
    }

    /// Sets the wall clock of `node` to this time, from which it goes on.
    pub fn set_clock(&mut self, node: NodeIndex, unix_seconds: u64) {
        self.nodes[node.0].clock.set(self.now, unix_seconds);
    }

    /// Suspends the host of `node`: until then it serves no timer. The first datagrams to it wait
    /// in its socket, and later ones are lost. Its clocks go on.
    pub fn suspend(&mut self, node: NodeIndex, time: Duration) {
        self.nodes[node.0].clock.suspend_until(self.now + time);
    }

    /// Returns the NodeId of `node`.
    pub fn id(&self, node: NodeIndex) -> NodeId {
        self.nodes[node.0].id
    }

    /// Joins `a` and `b` by the boxes `up`, from `a` to `b`, and `down`, back.
    pub fn link(&mut self, (a, up): (NodeIndex, Hops), (b, down): (NodeIndex, Hops)) {
        for (from, to, hops) in [(a, b, up), (b, a, down)] {
            let wire = self.wires.len();
            let seed = Rng::new(self.seed, wire as u64).bits();
            self.wires.push(Wire { path: Path::new(seed, hops), to });
            self.nodes[from.0].default_wire.get_or_insert(wire);
            let address = self.nodes[to.0].address;
            self.nodes[from.0].learned.insert(address, wire);
        }
    }

    /// Connects `a` to `b`; both play their side of `plan`.
    pub fn connect(
        &mut self,
        a: NodeIndex,
        b: NodeIndex,
        plan: impl Into<P::Plan>,
    ) -> ConnectionHandle {
        let plan = plan.into();
        let (remote, peer) = (self.nodes[b.0].address, self.nodes[b.0].id);
        let node = &mut self.nodes[a.0];
        let handle = node
            .endpoint
            .connect(self.now, remote, peer, &AccessKey::public(peer))
            .expect("a valid NodeId");
        node.checks.on_validated(remote.into());
        let party = P::new(Role::Initiator, self.seed ^ PATTERN_STREAM, plan.clone());
        node.parties.insert(handle, party);
        self.plans.insert((b, node.id), plan);
        self.drain(a);
        handle
    }

    /// Injects `bytes` of a stranger at `from`, which arrive at `to` at time `at`. An answer to the
    /// stranger fails the simulation.
    pub fn inject(&mut self, at: Time, to: NodeIndex, from: SocketAddr, bytes: Vec<u8>) {
        self.nodes[to.0].checks.on_stranger(from.into());
        let datagram = Datagram::new(from, self.nodes[to.0].address, bytes);
        self.enqueue(at, Destination::Node(to), datagram);
    }

    /// Adds a hostile peer that attacks `target`: see `hostile.rs`. It falls silent after some
    /// seconds.
    pub fn add_hostile(&mut self, target: NodeIndex) {
        let number = self.hostiles.len();
        let rng = Rng::new(self.seed, HOSTILE_STREAM + number as u64);
        let number = u8::try_from(number).expect("a world has few hostile peers");
        let node = &mut self.nodes[target.0];
        let hostile = Hostile::new(rng, number, node.address, node.id, UNIX_TIME_AT_ZERO);
        hostile.forged().for_each(|address| node.checks.on_forged(address.into()));
        self.hostiles.push(hostile);
    }

    /// Adds a host that floods `target` with `per_second` valid H1s from `sources` forged
    /// addresses, one after the other. None of these addresses may get more bytes than came from
    /// it.
    pub fn set_flood(&mut self, target: NodeIndex, per_second: u32, sources: u32) {
        let node = &self.nodes[target.0];
        let rng = Rng::new(self.seed, FLOOD_STREAM);
        let how = (per_second, sources);
        self.flood = Some(Flood::new(rng, node.address, node.id, UNIX_TIME_AT_ZERO, how));
    }

    /// Adds an on-path attacker between the two endpoints; see [`Forwarder`].
    pub fn set_forwarder(&mut self, forwarder: Forwarder) {
        assert_eq!(self.nodes.len(), 2, "a forwarder stands between two");
        self.forwarder = Some(forwarder);
    }

    fn enqueue(&mut self, at: Time, to: Destination, datagram: Datagram) {
        self.injections += 1;
        self.injected.insert((at.max(self.now), self.injections), (to, datagram));
    }

    /// Adds an attacker at `from` that replays everything that any endpoint receives. If `silence`,
    /// an answer to it fails the simulation. Otherwise it may get as much as any unvalidated
    /// address. A datagram that came too early to be decrypted, such as a packet that overtook H3,
    /// is authentic and new when its copy arrives.
    pub fn replay_everything_from(&mut self, from: SocketAddr, silence: bool) {
        self.replays_from = Some(from);
        for node in self.nodes.iter_mut().filter(|_| silence) {
            node.checks.on_stranger(from.into());
        }
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns a hash of all datagrams and their times. It is equal for two runs exactly if these
    /// were equal (except for collisions).
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Returns the number of datagrams that all endpoints have sent.
    pub fn transmitted(&self) -> u64 {
        self.transmitted
    }

    /// Returns the number of datagrams that `node` received and dropped without a connection.
    pub fn datagrams_dropped(&self, node: NodeIndex) -> u64 {
        self.nodes[node.0].endpoint.datagrams_dropped()
    }

    /// Returns the address of `node`.
    pub fn address(&self, node: NodeIndex) -> SocketAddr {
        self.nodes[node.0].address
    }

    /// Returns the parties at `node`.
    pub fn parties(&self, node: NodeIndex) -> impl Iterator<Item = &P> {
        self.nodes[node.0].parties.values()
    }

    /// Returns the connections at `node` that have had a party.
    pub fn handles(&self, node: NodeIndex) -> Vec<ConnectionHandle> {
        self.nodes[node.0].parties.keys().copied().collect()
    }

    /// Returns the statistics of a connection, while it exists.
    pub fn stats(&mut self, node: NodeIndex, handle: ConnectionHandle) -> Option<ConnectionStats> {
        Some(self.nodes[node.0].endpoint.connection(handle)?.stats())
    }

    /// Returns whether no endpoint holds a connection any more.
    pub fn is_drained(&self) -> bool {
        self.nodes.iter().all(|node| node.endpoint.is_drained())
    }

    /// Calls `act` on a connection and drains the endpoint.
    pub fn with_connection(
        &mut self,
        node: NodeIndex,
        handle: ConnectionHandle,
        act: impl FnOnce(Time, &mut Connection),
    ) {
        if let Some(connection) = self.nodes[node.0].endpoint.connection(handle) {
            act(self.now, connection);
        }
        self.drain(node);
    }

    /// Advances to the next event. Returns false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(next) = self.next_moment() else { return false };
        self.now = self.now.max(next);
        let now = self.now;
        for wire in 0..self.wires.len() {
            while let Some(datagram) = self.wires[wire].path.pop(now) {
                self.deliver(wire, datagram);
            }
        }
        while let Some(entry) = self.injected.first_entry().filter(|e| e.key().0 <= now) {
            let (to, datagram) = entry.remove();
            match to {
                Destination::Node(node) => self.receive(node, datagram),
                Destination::Hostile(i) => {
                    if let Some(answer) = self.hostiles[i].receive(datagram) {
                        self.send_to_target(now, answer);
                    }
                }
            }
        }
        for i in 0..self.hostiles.len() {
            while self.hostiles[i].wake().is_some_and(|at| at <= now) {
                let (arrival, datagram) = self.hostiles[i].act(now);
                self.send_to_target(arrival, datagram);
            }
        }
        while self.flood.as_ref().and_then(Flood::wake).is_some_and(|at| at <= now) {
            for datagram in self.flood.as_mut().map(Flood::act).into_iter().flatten() {
                if let Some(target) = self.node_at(datagram.to) {
                    self.nodes[target.0].checks.on_flooded(datagram.from.into());
                }
                self.send_to_target(now, datagram);
            }
        }
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            let due = node.due().is_some_and(|at| at <= now);
            if due {
                node.endpoint.handle_timeout(now);
            }
            if due || node.has_input {
                self.drain(NodeIndex(index));
            }
        }
        true
    }

    /// Steps until `done` or until `deadline`. Returns whether it was done.
    pub fn run_until(&mut self, deadline: Time, mut done: impl FnMut(&Self) -> bool) -> bool {
        while !done(self) {
            if self.next_moment().is_none_or(|next| next > deadline) {
                return false;
            }
            self.step();
        }
        true
    }

    fn next_moment(&self) -> Option<Time> {
        let wires = self.wires.iter().filter_map(|wire| wire.path.next());
        let nodes = self.nodes.iter().filter_map(Node::due);
        let injected = self.injected.keys().next().map(|(at, _)| *at);
        let hostiles = self.hostiles.iter().filter_map(Hostile::wake);
        let flood = self.flood.as_ref().and_then(Flood::wake);
        wires.chain(nodes).chain(injected).chain(hostiles).chain(flood).min()
    }

    /// Schedules a hostile peer's datagram to arrive at `at`, not before the next step.
    fn send_to_target(&mut self, at: Time, datagram: Datagram) {
        if let Some(node) = self.node_at(datagram.to) {
            self.enqueue(at + HOSTILE_DELAY, Destination::Node(node), datagram);
        }
    }

    fn node_at(&self, address: SocketAddr) -> Option<NodeIndex> {
        self.nodes.iter().position(|node| node.address == address).map(NodeIndex)
    }

    fn deliver(&mut self, wire: usize, datagram: Datagram) {
        let to = self.wires[wire].to;
        if datagram.to != self.nodes[to.0].address {
            return;
        }
        self.nodes[to.0].learned.insert(datagram.from, wire ^ 1);
        if let Some(from) = self.replays_from {
            let copy = Datagram { from, ..datagram.clone() };
            self.enqueue(self.now + REPLAY_AFTER, Destination::Node(to), copy);
        }
        self.receive(to, datagram);
    }

    fn receive(&mut self, to: NodeIndex, mut datagram: Datagram) {
        let node = &mut self.nodes[to.0];
        if node.clock.is_suspended(self.now) {
            if let Some(woken) = node.clock.keep_in_socket() {
                self.enqueue(woken, Destination::Node(to), datagram);
            }
            return;
        }
        node.checks.on_received(datagram.from.into(), datagram.bytes.len());
        let Datagram { from, ecn, bytes, .. } = &mut datagram;
        node.endpoint.handle_datagram(self.now, *from, *ecn, bytes);
        node.has_input = true;
        if !self.driver.batches {
            self.drain(to);
        }
    }

    /// Drains an endpoint: events to its parties, datagrams to the wires, until neither has more;
    /// then its timer.
    fn drain(&mut self, index: NodeIndex) {
        let mut outputs = 0;
        loop {
            let before = outputs;
            while let Some((handle, event)) = self.nodes[index.0].endpoint.poll_event() {
                outputs += 1;
                assert!(outputs < OUTPUTS_MAX, "events without end, the last was {event:?}");
                self.on_event(index, handle, event);
            }
            let node = &mut self.nodes[index.0];
            for (handle, party) in &mut node.parties {
                if party.wants_driving(self.now)
                    && let Some(connection) = node.endpoint.connection(*handle)
                {
                    party.drive(self.now, connection);
                }
            }
            while self.transmit(index) {
                outputs += 1;
                assert!(outputs < OUTPUTS_MAX, "datagrams without end");
            }
            if outputs == before {
                break;
            }
        }
        let node = &mut self.nodes[index.0];
        for handle in node.parties.keys() {
            node.checks.on_connection(self.now, node.endpoint.is_live(*handle));
        }
        let timeout = node.endpoint.poll_timeout();
        node.checks.on_drained(self.now, timeout);
        let wakes = node.parties.values().filter_map(Party::wake);
        let late = self.driver_rng.up_to(self.driver.late_by);
        node.wake = timeout.into_iter().chain(wakes).min().map(|at| at + late);
        node.has_input = false;
    }

    fn on_event(&mut self, index: NodeIndex, handle: ConnectionHandle, event: Event) {
        let node = &mut self.nodes[index.0];
        let Some(connection) = node.endpoint.connection(handle) else {
            panic!("{event:?} of a connection that does not exist");
        };
        let peer = connection.peer();
        let is_hostile = self.hostiles.iter().any(|hostile| hostile.id() == peer);
        match &event {
            Event::Connected => node.checks.on_validated(connection.remote()),
            Event::PathChanged { remote } => node.checks.on_validated(*remote),
            _ => {}
        }
        if is_hostile {
            if event == Event::Connected {
                hostile::send_bait(connection);
            }
            return;
        }
        if event == Event::Connected {
            node.parties.entry(handle).or_insert_with(|| {
                let plan = self.plans.get(&(index, peer));
                let plan = plan.expect("an incoming connection without an initiator").clone();
                P::new(Role::Responder, self.seed ^ PATTERN_STREAM, plan)
            });
        }
        let party = node.parties.get_mut(&handle).expect("the first event is Connected");
        party.on_event(self.now, connection, event);
    }

    fn transmit(&mut self, index: NodeIndex) -> bool {
        let node = &mut self.nodes[index.0];
        let Some(transmit) = node.endpoint.poll_transmit(self.now, &mut self.buffer) else {
            return false;
        };
        if !node.checks.is_validated(transmit.to) && node.endpoint.is_validated(transmit.to) {
            node.checks.on_validated(transmit.to);
        }
        node.checks.on_transmit(&transmit);
        let to = transmit.to.ip().expect("every endpoint of a world has an IP address");
        let from = node.address;
        for range in segments(&transmit) {
            let bytes = &self.buffer[range];
            self.transmitted += 1;
            mix(&mut self.fingerprint, self.now.as_nanos());
            let sample = bytes.last_chunk::<8>().copied().unwrap_or_default();
            mix(&mut self.fingerprint, u64::from_le_bytes(sample));
            let datagram = Datagram { from, to, ecn: transmit.ecn, bytes: bytes.to_vec() };
            self.carry(index, datagram);
        }
        true
    }

    /// Sends a datagram of `index`: to a hostile peer or the forwarder, or into a link.
    fn carry(&mut self, index: NodeIndex, datagram: Datagram) {
        let (now, to) = (self.now, datagram.to);
        if let Some(i) = self.hostiles.iter().position(|hostile| hostile.receives_at(to)) {
            return self.enqueue(now + HOSTILE_DELAY, Destination::Hostile(i), datagram);
        }
        if let Some(forwarder) = self.forwarder {
            let other = NodeIndex(1 - index.0);
            let goal = if to == forwarder::ADDRESS { Some(other) } else { self.node_at(to) };
            if let Some(goal) = goal.filter(|_| forwarder.takes(now, to, datagram.bytes.len())) {
                let copy = Datagram { from: forwarder::ADDRESS, ..datagram.clone() };
                self.enqueue(now + forwarder::DELAY, Destination::Node(goal), copy);
            }
            if to == forwarder::ADDRESS {
                return;
            }
        }
        let node = &self.nodes[index.0];
        if let Some(wire) = node.learned.get(&to).copied().or(node.default_wire) {
            self.wires[wire].path.push(now, datagram);
        }
    }
}

/// Returns the range of each datagram of a batch within the buffer.
fn segments(transmit: &Transmit) -> impl Iterator<Item = Range<usize>> + use<> {
    let Transmit { len, segment, .. } = *transmit;
    (0..len).step_by(segment).map(move |start| start..len.min(start + segment))
}

/// FNV-1a, by words.
fn mix(state: &mut u64, word: u64) {
    *state = (*state ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
}
