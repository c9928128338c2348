//! All connections behind one socket: routes datagrams, ignores strangers (senders that prove no
//! key), and collects the outputs.
//!
//! A datagram is routed (SPEC §4.4) in this order:
//!
//! 1. connections known at its source address;
//! 2. attempts to find paths (`punch`);
//! 3. handshakes in progress;
//! 4. the first datagram of a first handshake message (H1);
//! 5. trial of its connection ID on all connections.
//!
//! A datagram that matches none of these is dropped and counted. The trials come last, so that a
//! flood of H1s with a valid mac1 does not exhaust the trials that find migrated peers. If the
//! datagram is neither an H1 nor a packet of a connection, the order does not matter.
//!
//! Invariant: a stranger without an access key costs one hash and a bounded share of one core, and
//! never gets an answer. A stranger with an access key costs at most one handshake step, in bounded
//! number.

mod accept;
mod cookies;
mod doors;
mod ephemeral_key_pool;
mod freshness;
mod half_open;
mod replay_cache;
mod routes;
mod slots;
mod suspension;
mod trials;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use thiserror::Error;
use wraith_crypto::identity::NodeId;
use wraith_noise::{AccessKey, Mac1Datagram, PACKET_BYTES_MIN, PacketOpenError};

use crate::config::EndpointConfig;
use crate::connection::{Connection, ConnectionArgs, DialArgs};
use crate::door::{Door, DoorId};
use crate::event::{ConnectionHandle, Ecn, Event, Transmit};
use crate::punch::Punches;
use crate::secret_rng::SecretRng;
use crate::streams::Role;
use crate::token_bucket::TokenBucket;
use crate::{BlockPool, PathAddr, Time};
use cookies::Cookies;
use doors::Doors;
use ephemeral_key_pool::EphemeralKeyPool;
use freshness::ClockReports;
use half_open::HalfOpens;
use routes::Routes;
use slots::Slots;

use trials::{FREE_TRIALS, trials};

/// ChaCha20 stream number of the punches' random numbers, so that punches do not affect any other
/// random value.
const PUNCH_STREAM: u64 = 1;

/// The reason a connection attempt could not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    /// The NodeId is not a valid public key.
    #[error("the NodeId is not a valid public key")]
    InvalidNodeId,
    /// The maximum number of connections is reached.
    #[error("too many connections")]
    TooMany,
}

/// The connections behind one socket. After any mutating call, the caller drains
/// [`Self::poll_transmit`] and [`Self::poll_event`], then sleeps until [`Self::poll_timeout`] or
/// the next datagram.
pub struct Endpoint {
    config: EndpointConfig,
    doors: Doors,
    ephemerals: EphemeralKeyPool,
    /// Random numbers for values that are not secret.
    rng: ChaCha20Rng,
    secrets: SecretRng,
    pool: BlockPool,
    connections: Slots,
    routes: Routes,
    trials: TokenBucket,
    /// Address and connection of the last datagram: most datagrams are for the same connection.
    last: Option<(PathAddr, ConnectionHandle)>,
    half_opens: HalfOpens,
    cookies: Cookies,
    answers: VecDeque<(PathAddr, Vec<u8>)>,
    clock_reports: ClockReports,
    punches: Punches,
    dirty: PendingOutputs,
    timers: BTreeSet<(Time, ConnectionHandle)>,
    armed: HashMap<ConnectionHandle, Time>,
    /// Time of the latest datagram, timeout or transmission.
    latest: Time,
    datagrams_dropped: u64,
}

/// Connections that may have outputs, each at most once per queue.
#[derive(Debug, Default)]
struct PendingOutputs {
    transmit: VecDeque<ConnectionHandle>,
    events: VecDeque<ConnectionHandle>,
    timers: VecDeque<ConnectionHandle>,
}

impl PendingOutputs {
    fn mark(&mut self, handle: ConnectionHandle) {
        for queue in [&mut self.transmit, &mut self.events, &mut self.timers] {
            // Usually the current connection was marked last.
            if queue.back() != Some(&handle) && !queue.contains(&handle) {
                queue.push_back(handle);
            }
        }
    }
}

impl Endpoint {
    /// Creates an endpoint that derives all its randomness from `seed`: 32 bytes from the system,
    /// or fixed in a test.
    pub fn new(config: EndpointConfig, seed: [u8; 32]) -> Self {
        let mut rng = ChaCha20Rng::from_seed(seed);
        let mut punch_rng = ChaCha20Rng::from_seed(seed);
        punch_rng.set_stream(PUNCH_STREAM);
        let blocks = config.transport.connection_window_max as usize / crate::BLOCK_BYTES;
        Self {
            doors: Doors::new(config.door.clone()),
            ephemerals: EphemeralKeyPool::default(),
            cookies: Cookies::new(ChaCha20Rng::from_rng(&mut rng)),
            punches: Punches::new(punch_rng),
            rng,
            secrets: SecretRng::new(seed, config.entropy.clone()),
            pool: BlockPool::new(blocks.clamp(8, 64)),
            connections: Slots::default(),
            routes: Routes::default(),
            trials: trials(),
            last: None,
            half_opens: HalfOpens::new(config.half_open_max),
            answers: VecDeque::new(),
            clock_reports: ClockReports::new(),
            dirty: PendingOutputs::default(),
            timers: BTreeSet::new(),
            armed: HashMap::new(),
            latest: Time::ZERO,
            datagrams_dropped: 0,
            config,
        }
    }

    /// Starts a connection to `peer` at `remote` with one of its access keys. [`Event::Connected`]
    /// or [`Event::Closed`] follows.
    pub fn connect(
        &mut self,
        now: Time,
        remote: impl Into<PathAddr>,
        peer: NodeId,
        access_key: &AccessKey,
    ) -> Result<ConnectionHandle, ConnectError> {
        if self.is_full() {
            return Err(ConnectError::TooMany);
        }
        let remote = remote.into();
        let parts = self.parts(Role::Initiator, peer, remote);
        let unix = self.unix_seconds(now);
        let ephemeral = self.ephemerals.take(&mut self.secrets);
        let dial =
            DialArgs { identity: &self.config.identity, access_key, ephemeral, unix_seconds: unix };
        let connection =
            Connection::initiate(now, parts, &dial).map_err(|_| ConnectError::InvalidNodeId)?;
        Ok(self.insert(connection, None, remote))
    }

    /// Handles any received datagram. Garbage is dropped silently. `datagram` serves as scratch
    /// space.
    pub fn handle_datagram(
        &mut self,
        now: Time,
        from: impl Into<PathAddr>,
        ecn: Option<Ecn>,
        datagram: &mut [u8],
    ) {
        self.advance(now);
        if !self.route(now, from.into(), ecn, datagram) {
            self.datagrams_dropped += 1;
        }
    }

    /// Handles all timers due by `now`.
    pub fn handle_timeout(&mut self, now: Time) {
        self.latest = self.latest.max(now);
        while let Some(&(at, handle)) = self.timers.first() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            self.armed.remove(&handle);
            if let Some(connection) = self.connections.get_mut(handle) {
                connection.handle_timeout(now);
                if let Some(access_key) = connection.wants_short_h1(now) {
                    self.shorten_h1(now, handle, &access_key);
                }
                self.dirty.mark(handle);
            }
        }
        if !self.punches.is_idle() {
            self.punches.handle_timeout(now);
        }
    }

    /// Gives a dial without an answer a short H1, with an ephemeral key of its own.
    #[cold]
    fn shorten_h1(&mut self, now: Time, handle: ConnectionHandle, access_key: &AccessKey) {
        let unix_seconds = self.unix_seconds(now);
        let ephemeral = self.ephemerals.take(&mut self.secrets);
        let identity = &self.config.identity;
        if let Some(connection) = self.connections.get_mut(handle) {
            connection.shorten_h1(&DialArgs { identity, access_key, ephemeral, unix_seconds });
        }
    }

    /// Fills `buf` (64 KiB) with datagrams to one address. The caller repeats until `None`. After a
    /// suspension of the host, it handles the timers first, so events may follow.
    pub fn poll_transmit(&mut self, now: Time, buf: &mut [u8]) -> Option<Transmit> {
        self.poll_transmit_to(now, buf, |_| true)
    }

    /// Like [`Self::poll_transmit`], but polls only connections whose peer's address is `open`; the
    /// others keep their output. Answers to handshakes and to challenges from other addresses may
    /// still be returned.
    pub fn poll_transmit_to(
        &mut self,
        now: Time,
        buf: &mut [u8],
        open: impl Fn(PathAddr) -> bool,
    ) -> Option<Transmit> {
        self.advance(now);
        if let Some((to, answer)) = self.answers.pop_front() {
            buf[..answer.len()].copy_from_slice(&answer);
            return Some(Transmit { to, ecn: None, len: answer.len(), segment: answer.len() });
        }
        if !self.punches.is_idle()
            && let Some((to, packet)) = self.punches.poll_transmit(now)
        {
            let len = packet.len();
            buf[..len].copy_from_slice(&packet);
            return Some(Transmit { to, ecn: None, len, segment: len });
        }
        let mut i = 0;
        while let Some(&handle) = self.dirty.transmit.get(i) {
            let connection = self.connections.get_mut(handle);
            if connection.as_ref().is_some_and(|c| !open(c.remote())) {
                i += 1;
                continue;
            }
            if let Some(transmit) = connection.and_then(|c| c.poll_transmit(now, buf)) {
                return Some(transmit);
            }
            self.dirty.transmit.remove(i);
        }
        None
    }

    /// Returns the next event of any connection. The caller repeats until `None`.
    pub fn poll_event(&mut self) -> Option<(ConnectionHandle, Event)> {
        while let Some(&handle) = self.dirty.events.front() {
            if let Some(event) = self.connections.get_mut(handle).and_then(Connection::poll_event) {
                return Some((handle, event));
            }
            self.dirty.events.pop_front();
            // A drained connection is removed after its last event.
            self.dirty.timers.push_back(handle);
        }
        None
    }

    /// Returns the time at which [`Self::handle_timeout`] must be called at the latest.
    pub fn poll_timeout(&mut self) -> Option<Time> {
        while let Some(handle) = self.dirty.timers.pop_front() {
            let Some(connection) = self.connections.get_mut(handle) else { continue };
            if connection.is_drained() {
                self.forget(handle);
                continue;
            }
            let next = connection.poll_timeout();
            self.arm(handle, next);
        }
        let connections = self.timers.first().map(|&(at, _)| at);
        match self.punches.timeout() {
            Some(at) => Some(connections.map_or(at, |connections| at.min(connections))),
            None => connections,
        }
    }

    /// Returns a connection for mutation. The caller drains the outputs afterwards.
    pub fn connection(&mut self, handle: ConnectionHandle) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(handle)?;
        self.dirty.mark(handle);
        Some(connection)
    }

    /// Returns [`Connection::is_live`], or true for a connection that is gone. Valid only after all
    /// outputs were drained.
    pub fn is_live(&self, handle: ConnectionHandle) -> bool {
        self.connections.get(handle).is_none_or(Connection::is_live)
    }

    /// Returns true if a peer has proven that it receives at `address`, which a connection uses or
    /// may move to.
    pub fn is_validated(&self, address: impl Into<PathAddr>) -> bool {
        let address = address.into();
        self.connections.iter().any(|connection| connection.is_validated(address))
    }

    /// Returns true if no connection is left, not even a closing one.
    pub fn is_drained(&self) -> bool {
        self.connections.len() == 0
    }

    /// Returns the number of datagrams that were dropped because they matched nothing.
    pub fn datagrams_dropped(&self) -> u64 {
        self.datagrams_dropped
    }

    /// Precomputes a part of the work of future handshakes. To be called while idle. Returns false
    /// if nothing is left to prepare.
    pub fn prepare(&mut self) -> bool {
        self.ephemerals.prepare(&mut self.secrets)
    }

    /// Opens another door, or replaces all rules of an open one.
    pub fn open_door(&mut self, id: DoorId, door: Door) {
        self.doors.open(id, door);
    }

    /// Closes a door: its access keys get no answer any more, and handshakes that began at it fail.
    /// Established connections stay.
    pub fn close_door(&mut self, id: DoorId) {
        self.doors.close(id);
        self.half_opens.close_door(id);
    }

    /// Replaces the access keys of an open door.
    pub fn set_access_keys(&mut self, id: DoorId, access_keys: Vec<AccessKey>) {
        self.doors.change(id, |door| door.access_keys = access_keys);
    }

    /// Replaces the allowlist of an open door; `None` admits every peer with an access key.
    pub fn set_admitted(&mut self, id: DoorId, admitted: Option<HashSet<NodeId>>) {
        self.doors.change(id, |door| door.admitted = admitted);
    }

    /// Returns the attempts to find paths. The caller drains the outputs afterwards.
    pub fn punches(&mut self) -> &mut Punches {
        &mut self.punches
    }

    /// Returns the door by which the peer of a connection came; `None` if this side dialled, or if
    /// the connection is gone.
    pub fn door(&self, handle: ConnectionHandle) -> Option<DoorId> {
        self.connections.door(handle)
    }

    fn is_full(&self) -> bool {
        self.connections.len() >= self.config.connections_max
    }

    fn route(&mut self, now: Time, from: PathAddr, ecn: Option<Ecn>, datagram: &mut [u8]) -> bool {
        // Every handshake datagram is longer.
        if datagram.len() < PACKET_BYTES_MIN {
            return false;
        }
        match self.route_by_address(now, from, ecn, datagram) {
            Some((handle, authentic)) => authentic && self.on_taken(from, handle),
            None => {
                (!self.punches.is_idle() && self.punches.handle(now, from, datagram))
                    || self.route_handshake(now, from, datagram)
                    || self.route_by_trial(now, from, ecn, datagram)
            }
        }
    }

    /// Tries a datagram on the connections known at its source address, that of the last datagram
    /// first. Returns the connection whose ID it carries and whether it was authentic, or `None`.
    fn route_by_address(
        &mut self,
        now: Time,
        from: PathAddr,
        ecn: Option<Ecn>,
        datagram: &mut [u8],
    ) -> Option<(ConnectionHandle, bool)> {
        let Self { connections, routes, trials, last, .. } = self;
        let mut offer = |handle| {
            let connection = connections.get_mut(handle)?;
            match connection.handle_packet(now, from, ecn, datagram) {
                Ok(()) => Some((handle, true)),
                Err(PacketOpenError::Unauthentic) => Some((handle, false)),
                Err(PacketOpenError::OtherConnection) => None,
            }
        };
        let last = last.filter(|(remote, _)| *remote == from).map(|(_, handle)| handle);
        last.and_then(&mut offer).or_else(|| {
            let others = routes.at(from).iter().copied().filter(|handle| Some(*handle) != last);
            let tried =
                others.enumerate().take_while(|(i, _)| *i < FREE_TRIALS || trials.take(now, 1));
            tried.map(|(_, handle)| handle).find_map(offer)
        })
    }

    /// Finds the connection of a packet from an unknown address: the peer is migrating.
    fn route_by_trial(
        &mut self,
        now: Time,
        from: PathAddr,
        ecn: Option<Ecn>,
        datagram: &mut [u8],
    ) -> bool {
        if !self.trials.take(now, self.connections.len()) {
            return false;
        }
        let Some((handle, connection)) = self
            .connections
            .iter_mut()
            .find(|(_, connection)| connection.has_connection_id(datagram))
        else {
            return false;
        };
        if connection.handle_packet(now, from, ecn, datagram).is_err() {
            return false;
        }
        self.routes.add(from, handle, connection.remote());
        self.on_taken(from, handle)
    }

    /// Records an authentic datagram from `from` for this connection. Returns true.
    fn on_taken(&mut self, from: PathAddr, handle: ConnectionHandle) -> bool {
        self.last = Some((from, handle));
        self.dirty.mark(handle);
        true
    }

    fn route_handshake(&mut self, now: Time, from: PathAddr, datagram: &[u8]) -> bool {
        let Some(datagram) = &Mac1Datagram::of(datagram) else { return false };
        let Self { connections, routes, config, .. } = self;
        let taken = routes.at(from).iter().copied().find(|handle| {
            connections.get_mut(*handle).is_some_and(|connection| {
                connection.handle_answer(now, &config.identity, datagram.bytes())
                    || connection.handle_repeated_h3(datagram)
            })
        });
        if let Some(handle) = taken {
            self.dirty.mark(handle);
            return true;
        }
        let is_full = self.is_full();
        (!is_full && self.handle_h3(now, from, datagram))
            || self.handle_second_of_h1(now, from, datagram)
            || (!is_full && self.handle_first_of_h1(now, from, datagram))
    }

    fn parts(&mut self, role: Role, peer: NodeId, remote: PathAddr) -> ConnectionArgs {
        ConnectionArgs {
            role,
            config: self.config.transport.clone(),
            pool: self.pool.clone(),
            peer,
            remote,
            rng: ChaCha20Rng::from_rng(&mut self.rng),
            secrets: self.secrets.child(),
        }
    }

    fn insert(
        &mut self,
        connection: Connection,
        door: Option<DoorId>,
        remote: PathAddr,
    ) -> ConnectionHandle {
        let handle = self.connections.insert(connection, door);
        self.routes.add(remote, handle, remote);
        self.dirty.mark(handle);
        handle
    }

    fn forget(&mut self, handle: ConnectionHandle) {
        self.routes.forget(handle);
        self.connections.remove(handle);
        self.arm(handle, None);
    }

    fn arm(&mut self, handle: ConnectionHandle, next: Option<Time>) {
        if self.armed.get(&handle).copied() == next {
            return;
        }
        if let Some(old) = self.armed.remove(&handle) {
            self.timers.remove(&(old, handle));
        }
        if let Some(at) = next {
            self.armed.insert(handle, at);
            self.timers.insert((at, handle));
        }
    }

    fn unix_seconds(&self, now: Time) -> u64 {
        self.config.wall_clock.unix_seconds(now)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("connections", &self.connections.len())
            .finish_non_exhaustive()
    }
}
