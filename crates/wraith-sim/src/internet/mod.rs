//! A simulated internet: hosts behind NATs, address realms joined by gateways, relays, and real
//! core endpoints.
//!
//! ```text
//!   host ─ access ─┐                               ┌─ access ─ host
//!                  ├─ home gateway ─ carrier's ─ public
//!   host ─ access ─┘                  (realm 0)    └─ third parties, of whom only the packets are counted
//!   host ═════════════════ relay ════════════════════ host       an address that is a number
//! ```
//!
//! An access line is a list of boxes (effects) in each direction; only these take time. In
//! contrast, [`World`](crate::World) joins two endpoints by one path, to test the effects of a path
//! with many packets. This module tests many paths with few packets. Invariants: the same seed
//! gives the same run; the checks of `checks.rs` hold for every endpoint at every moment.

mod behaviours;
mod host;
mod nat;
mod traversal;

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng as _;
use wraith_core::punch::Reflector;
use wraith_core::{
    AccessKey, Connection, ConnectionHandle, Endpoint, PathAddr, Role, Time, TransportConfig,
};
use wraith_crypto::identity::NodeId;

pub use behaviours::NatBehaviours;
pub use host::HostRecord;
pub use nat::{Behaviour, EndpointDependence, Nat, PortAllocation};
pub use traversal::{Network, Report, matrix, traverse, traverse_with};

use crate::link::{Datagram, Hops, Path};
use crate::{Application, Exchange, Party, Rng};
use host::{Host, Interface, RELAY_IP};

/// Maximum number of gateways on the path of one datagram: two up, two down, and hairpins.
const GATEWAYS_MAX: usize = 8;
/// Random streams; those of paths count from 0.
const HOST_STREAM: u64 = 1 << 32;
const NAT_STREAM: u64 = 2 << 32;
const REFLECTOR_STREAM: u64 = 4 << 32;
const PATTERN_STREAM: u64 = 3 << 32;

/// Index of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HostIndex(pub(crate) usize);

/// An address realm: the public one, or one behind a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Realm(usize);

/// The public realm.
pub const PUBLIC: Realm = Realm(0);

#[derive(Debug)]
struct Gateway {
    nat: Nat,
    inside: Realm,
    outside: Realm,
}

/// A relay between two hosts, with the same number at both.
#[derive(Debug)]
struct Relay {
    ends: [HostIndex; 2],
    /// From the first end to the second, and back.
    paths: [Path; 2],
    works: bool,
}

/// A simulated internet; see the module.
#[derive(Debug)]
pub struct Internet {
    seed: u64,
    now: Time,
    hosts: Vec<Host>,
    gateways: Vec<Gateway>,
    relays: Vec<Relay>,
    realms: usize,
    paths: u64,
    /// Datagrams to unassigned public addresses.
    unroutable: BTreeMap<SocketAddr, u64>,
    reflectors: Vec<(SocketAddr, Reflector)>,
    reflector_rng: ChaCha20Rng,
    /// Whether only relays carry datagrams.
    cut: bool,
    plans: HashMap<NodeId, Arc<Exchange>>,
    buffer: Vec<u8>,
}

impl Internet {
    /// Creates an empty internet.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Time::ZERO,
            hosts: Vec::new(),
            gateways: Vec::new(),
            relays: Vec::new(),
            realms: 1,
            paths: 0,
            unroutable: BTreeMap::new(),
            reflectors: Vec::new(),
            reflector_rng: ChaCha20Rng::from_seed(Rng::new(seed, REFLECTOR_STREAM).seed()),
            cut: false,
            plans: HashMap::new(),
            buffer: vec![0; 64 * 1024],
        }
    }

    /// Adds a realm behind a gateway with this behaviour, which has `address` in `outside`.
    pub fn add_gateway(
        &mut self,
        outside: Realm,
        address: impl Into<std::net::IpAddr>,
        behaviour: Behaviour,
    ) -> Realm {
        let rng = Rng::new(self.seed, NAT_STREAM + self.gateways.len() as u64);
        let inside = Realm(self.realms);
        self.realms += 1;
        self.gateways.push(Gateway {
            nat: Nat::new(behaviour, address.into(), rng),
            inside,
            outside,
        });
        inside
    }

    /// Adds a host without an address.
    pub fn add_host(&mut self, name: &'static str, transport: TransportConfig) -> HostIndex {
        let index = self.hosts.len();
        let rng = Rng::new(self.seed, HOST_STREAM + index as u64);
        self.hosts.push(Host::new(name, transport, rng));
        HostIndex(index)
    }

    /// Gives a host an address in a realm, with these boxes from it and to it. The host sends from
    /// the first interface of a family.
    pub fn add_interface(
        &mut self,
        host: HostIndex,
        (realm, address): (Realm, SocketAddr),
        [up, down]: [Hops; 2],
    ) {
        let [up, down] = [up, down].map(|hops| self.path(hops));
        let interface = Interface { realm, address, up, down, works: true };
        self.hosts[host.0].interfaces.push(interface);
    }

    /// Adds a public reflector, which reports the observed address to hosts that share `secret`
    /// with it.
    pub fn add_reflector(&mut self, address: SocketAddr, secret: &[u8; 32]) {
        self.reflectors.push((address, Reflector::new(secret)));
    }

    /// Adds a relay between `a` and `b`, with these boxes in each direction beside their access
    /// lines. Returns its address at both.
    pub fn add_relay(&mut self, ends: [HostIndex; 2], hops: [Hops; 2]) -> PathAddr {
        let paths = hops.map(|hops| self.path(hops));
        self.relays.push(Relay { ends, paths, works: true });
        let number = u32::try_from(self.relays.len()).expect("few relays");
        let via = PathAddr::Via(NonZeroU32::new(number).expect("at least one"));
        ends.iter().for_each(|end| self.hosts[end.0].checks.on_validated(via));
        via
    }

    fn path(&mut self, hops: Hops) -> Path {
        self.paths += 1;
        Path::new(Rng::new(self.seed, self.paths).bits(), hops)
    }

    /// Sets whether all datagrams are dropped except those over relays.
    pub fn cut(&mut self, cut: bool) {
        self.cut = cut;
    }

    /// Sets whether this host's datagrams are dropped except those over relays.
    pub fn block_udp(&mut self, host: HostIndex, blocked: bool) {
        self.hosts[host.0].udp_blocked = blocked;
    }

    /// Puts a host to sleep for `time`: it receives and sends nothing, and its clock stops.
    pub fn put_to_sleep(&mut self, host: HostIndex, time: Duration) {
        self.hosts[host.0].sleep(self.now, time);
    }

    /// Sets whether relays drop everything.
    pub fn stop_relays(&mut self, stopped: bool) {
        self.relays.iter_mut().for_each(|relay| relay.works = !stopped);
    }

    /// Sets whether an interface of a host works. Interfaces are numbered in the order in which
    /// they were added.
    pub fn set_interface(&mut self, host: HostIndex, index: usize, works: bool) {
        self.hosts[host.0].interfaces[index].works = works;
    }

    /// Clears the mappings of every gateway.
    pub fn forget_mappings(&mut self) {
        self.gateways.iter_mut().for_each(|gateway| gateway.nat.forget());
    }

    /// Connects `a` to `b` at `to`; both play their side of `plan`.
    pub fn connect(&mut self, a: HostIndex, b: HostIndex, to: PathAddr, plan: Exchange) {
        let plan = Arc::new(plan);
        let peer = self.hosts[b.0].id;
        let seed = self.seed ^ PATTERN_STREAM;
        let host = &mut self.hosts[a.0];
        let handle = host
            .endpoint
            .connect(self.now, to, peer, &AccessKey::public(peer))
            .expect("a valid NodeId");
        host.checks.on_validated(to);
        host.set_party(handle, Application::new(Role::Initiator, seed, plan.clone()));
        self.plans.insert(host.id, plan);
        self.drain(a);
    }

    /// Returns the simulated time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the record of a host.
    pub fn seen(&self, host: HostIndex) -> &HostRecord {
        &self.hosts[host.0].seen
    }

    /// Returns the record of a host for resetting it.
    pub fn seen_mut(&mut self, host: HostIndex) -> &mut HostRecord {
        &mut self.hosts[host.0].seen
    }

    /// Returns the party at a host.
    pub fn party(&self, host: HostIndex) -> Option<&Application> {
        self.hosts[host.0].party.as_ref().map(|(_, party)| party)
    }

    /// Returns the addresses of a host's working interfaces.
    pub fn addresses(&self, host: HostIndex) -> Vec<SocketAddr> {
        let interfaces = self.hosts[host.0].interfaces.iter();
        interfaces.filter(|i| i.works).map(|interface| interface.address).collect()
    }

    /// Returns the number of datagrams to unassigned public addresses, by address.
    pub fn unroutable(&self) -> &BTreeMap<SocketAddr, u64> {
        &self.unroutable
    }

    /// Allows a host to send freely to `address`: its own side chose it, or got it in another
    /// trusted way.
    pub fn trust(&mut self, host: HostIndex, address: PathAddr) {
        self.hosts[host.0].checks.on_validated(address);
    }

    /// Returns the address to which a host's connection sends, while it has one.
    pub fn remote(&mut self, host: HostIndex) -> Option<PathAddr> {
        let host = &mut self.hosts[host.0];
        let (handle, _) = host.party.as_ref()?;
        Some(host.endpoint.connection(*handle)?.remote())
    }

    /// Allows a host to punch from now on: it may send a few packets to unvalidated addresses.
    pub fn allow_punching(&mut self, host: HostIndex) {
        self.hosts[host.0].checks.on_punch();
    }

    /// Calls `act` on a host's endpoint and drains it.
    pub fn with_endpoint<R>(
        &mut self,
        host: HostIndex,
        act: impl FnOnce(Time, &mut Endpoint) -> R,
    ) -> R {
        let time = self.hosts[host.0].clock(self.now);
        let result = act(time, &mut self.hosts[host.0].endpoint);
        self.drain(host);
        result
    }

    /// Calls `act` on the connection of a host's party and drains the endpoint. Returns `None` if
    /// there is none.
    pub fn with_connection<R>(
        &mut self,
        host: HostIndex,
        act: impl FnOnce(Time, &mut Connection) -> R,
    ) -> Option<R> {
        let handle = self.handle(host)?;
        self.with_endpoint(host, |now, endpoint| {
            endpoint.connection(handle).map(|connection| act(now, connection))
        })
    }

    /// Returns the connection of a host's party.
    pub fn handle(&self, host: HostIndex) -> Option<ConnectionHandle> {
        self.hosts[host.0].party.as_ref().map(|(handle, _)| *handle)
    }

    /// Migrates a host's connection to `to`, which must be a known address of its peer.
    pub fn migrate_to(&mut self, host: HostIndex, to: PathAddr) -> bool {
        self.trust(host, to);
        self.with_connection(host, |now, connection| connection.migrate_to(now, to)) == Some(true)
    }

    /// Injects a datagram from the forged address `from` to `to` into `realm`.
    pub fn inject(&mut self, realm: Realm, from: SocketAddr, to: SocketAddr, bytes: Vec<u8>) {
        self.route(realm, Datagram::new(from, to, bytes));
    }

    /// Advances to the next event. Returns false if there is none.
    pub fn step(&mut self) -> bool {
        let Some(next) = self.next_moment() else { return false };
        self.now = self.now.max(next);
        let now = self.now;
        for i in 0..self.relays.len() {
            for direction in 0..2 {
                while let Some(datagram) = self.relays[i].paths[direction].pop(now) {
                    let to = self.relays[i].ends[1 - direction];
                    if self.relays[i].works {
                        self.hosts[to.0].interfaces[0].down.push(now, datagram);
                    }
                }
            }
        }
        for index in 0..self.hosts.len() {
            for i in 0..self.hosts[index].interfaces.len() {
                while let Some(datagram) = self.hosts[index].interfaces[i].up.pop(now) {
                    self.leave(HostIndex(index), i, datagram);
                }
                while let Some(datagram) = self.hosts[index].interfaces[i].down.pop(now) {
                    let host = &mut self.hosts[index];
                    if host.interfaces[i].works && !host.is_asleep(now) {
                        host.receive(now, datagram);
                        self.drain(HostIndex(index));
                    }
                }
            }
            let host = &mut self.hosts[index];
            if host.wake.is_some_and(|at| at <= now) && !host.is_asleep(now) {
                let time = host.clock(now);
                host.endpoint.handle_timeout(time);
                self.drain(HostIndex(index));
            }
        }
        true
    }

    /// Steps until `done`, or until `deadline`. Returns whether it was done.
    pub fn run_until(&mut self, deadline: Time, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        while !done(self) {
            if self.next_moment().is_none_or(|next| next > deadline) {
                self.now = self.now.max(deadline);
                return done(self);
            }
            self.step();
        }
        true
    }

    /// Lets `time` pass.
    pub fn run_for(&mut self, time: Duration) {
        let deadline = self.now + time;
        self.run_until(deadline, |_| false);
    }

    fn next_moment(&self) -> Option<Time> {
        let hosts = self.hosts.iter().flat_map(|host| {
            let paths = host.interfaces.iter().flat_map(|i| [i.up.next(), i.down.next()]);
            paths.flatten().chain(host.wake)
        });
        let relays = self.relays.iter().flat_map(|relay| &relay.paths).filter_map(Path::next);
        hosts.chain(relays).min()
    }

    /// Handles a datagram that has passed the access line of its host.
    fn leave(&mut self, host: HostIndex, interface: usize, datagram: Datagram) {
        if !self.hosts[host.0].interfaces[interface].works {
            return;
        }
        if datagram.to.ip() != RELAY_IP {
            let realm = self.hosts[host.0].interfaces[interface].realm;
            if !self.cut && !self.hosts[host.0].udp_blocked {
                self.route(realm, datagram);
            }
            return;
        }
        let number = usize::from(datagram.to.port());
        let relay = &mut self.relays[number - 1];
        let from_first = relay.ends[0] == host;
        let datagram = Datagram { from: datagram.to, ..datagram };
        relay.paths[usize::from(!from_first)].push(self.now, datagram);
    }

    /// Routes a datagram from `realm` through gateways to the access line of its destination, or
    /// drops it.
    fn route(&mut self, mut realm: Realm, mut datagram: Datagram) {
        let now = self.now;
        for _ in 0..GATEWAYS_MAX {
            let to = datagram.to;
            let mut interfaces = self.hosts.iter_mut().flat_map(|host| &mut host.interfaces);
            if let Some(interface) = interfaces.find(|i| i.realm == realm && i.address == to) {
                return interface.down.push(now, datagram);
            }
            if realm == PUBLIC && self.reflectors.iter().any(|(at, _)| *at == to) {
                return self.reflect(datagram);
            }
            if let Some(i) =
                self.gateways.iter().position(|g| g.outside == realm && self.owns(g, to))
            {
                let gateway = &mut self.gateways[i];
                let Some(inside) = gateway.nat.inbound(now, datagram.from, to) else { return };
                (datagram.to, realm) = (inside, gateway.inside);
            } else if let Some(gateway) = self.gateways.iter_mut().find(|g| g.inside == realm) {
                if gateway.nat.outside() == to.ip() && !gateway.nat.behaviour().hairpin {
                    return;
                }
                datagram.from = gateway.nat.outbound(now, datagram.from, to);
                realm = gateway.outside;
            } else {
                if realm == PUBLIC {
                    *self.unroutable.entry(to).or_default() += 1;
                }
                return;
            }
        }
    }

    fn reflect(&mut self, datagram: Datagram) {
        let Datagram { from, to, bytes, .. } = datagram;
        let reflectors = self.reflectors.iter().filter(|(at, _)| *at == to);
        let rng = &mut self.reflector_rng;
        let answer = reflectors.filter_map(|(_, r)| r.answer(from, &bytes, rng)).next();
        if let Some(answer) = answer {
            self.route(PUBLIC, Datagram::new(to, from, answer.packet));
        }
    }

    fn owns(&self, gateway: &Gateway, address: SocketAddr) -> bool {
        if gateway.nat.behaviour().ports != PortAllocation::Untranslated {
            return gateway.nat.outside() == address.ip();
        }
        let mut interfaces = self.hosts.iter().flat_map(|host| &host.interfaces);
        interfaces.any(|i| i.realm == gateway.inside && i.address.ip() == address.ip())
    }

    /// Drains a host: events to its party, datagrams to its access lines, until neither has more;
    /// then its timer.
    fn drain(&mut self, index: HostIndex) {
        let Self { now, seed, plans, buffer, .. } = self;
        let host = &mut self.hosts[index.0];
        host.drain(*now, buffer, |peer| {
            let plan = plans.get(&peer).expect("an incoming connection without an initiator");
            Application::new(Role::Responder, *seed ^ PATTERN_STREAM, plan.clone())
        });
    }
}
