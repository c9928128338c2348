//! A host of the simulated internet: its interfaces, its endpoint, and the party that plays one
//! side of an exchange.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::time::Duration;

use wraith_core::{
    ConnectionHandle, Ecn, Endpoint, EndpointConfig, Event, PathAddr, PunchEvent, PunchId, Time,
    TransportConfig, WallClock,
};
use wraith_crypto::identity::{NodeId, SecretIdentity};

use super::Realm;
use crate::checks::{Checks, OUTPUTS_MAX};
use crate::link::{Datagram, Path};
use crate::{Application, Party, Rng};

/// Represents relays on access lines; the port is the relay's number.
pub(super) const RELAY_IP: IpAddr = IpAddr::V4(Ipv4Addr::new(240, 0, 0, 1));
/// Wall-clock time at the start of a simulation.
const UNIX_TIME_AT_ZERO: u64 = 1_800_000_000;

#[derive(Debug)]
pub(super) struct Interface {
    pub(super) realm: Realm,
    pub(super) address: SocketAddr,
    pub(super) up: Path,
    pub(super) down: Path,
    pub(super) works: bool,
}

/// Record of a host's events.
#[derive(Debug, Default)]
pub struct HostRecord {
    /// Paths taken by its connection, with their times.
    pub paths: Vec<(Time, PathAddr)>,
    /// Failed migrations.
    pub failed: Vec<(Time, PathAddr)>,
    /// Addresses at which the peer reported to see this host, the newest last.
    pub observed: Vec<SocketAddr>,
    /// Latest list of the peer's further addresses.
    pub candidates: Vec<SocketAddr>,
    /// Results of punches and observations, with their times.
    pub punches: Vec<(Time, PunchId, PunchEvent)>,
    /// Number of sent datagrams.
    pub sent: u64,
    /// Longest time without a new byte to read, since the last reset.
    pub gap: Duration,
    bytes: u64,
    progress: Time,
}

impl HostRecord {
    /// Measures gaps from `now` on.
    pub fn watch_gap(&mut self, now: Time) {
        (self.gap, self.progress) = (Duration::ZERO, now);
    }

    fn on_bytes(&mut self, now: Time, bytes: u64) {
        if bytes != self.bytes {
            self.gap = self.gap.max(now - self.progress);
            (self.bytes, self.progress) = (bytes, now);
        }
    }
}

#[derive(Debug)]
pub(super) struct Host {
    pub(super) endpoint: Endpoint,
    pub(super) id: NodeId,
    pub(super) interfaces: Vec<Interface>,
    pub(super) party: Option<(ConnectionHandle, Application)>,
    pub(super) checks: Checks,
    pub(super) wake: Option<Time>,
    pub(super) seen: HostRecord,
    pub(super) udp_blocked: bool,
    /// Total sleep time so far, and the end of the current sleep.
    slept: Duration,
    asleep_until: Time,
}

impl Host {
    pub(super) fn new(name: &'static str, transport: TransportConfig, mut rng: Rng) -> Self {
        let identity = SecretIdentity::from_seed(rng.seed());
        let id = identity.node_id();
        let checks = Checks::new(name, usize::from(transport.max_mtu));
        let config = EndpointConfig {
            transport,
            wall_clock: WallClock::starting_at(UNIX_TIME_AT_ZERO),
            ..EndpointConfig::open(identity)
        };
        Self {
            endpoint: Endpoint::new(config, rng.seed()),
            id,
            interfaces: Vec::new(),
            party: None,
            checks,
            wake: None,
            seen: HostRecord::default(),
            udp_blocked: false,
            slept: Duration::ZERO,
            asleep_until: Time::ZERO,
        }
    }

    pub(super) fn set_party(&mut self, handle: ConnectionHandle, party: Application) {
        self.party = Some((handle, party));
    }

    /// Returns the time of its own clock, which stops while the host sleeps.
    pub(super) fn clock(&self, now: Time) -> Time {
        now.max(self.asleep_until) - self.slept
    }

    pub(super) fn is_asleep(&self, now: Time) -> bool {
        now < self.asleep_until
    }

    pub(super) fn sleep(&mut self, now: Time, time: Duration) {
        self.asleep_until = now + time;
        self.slept += time;
        self.wake = Some(self.asleep_until);
    }

    pub(super) fn receive(&mut self, now: Time, datagram: Datagram) {
        let Datagram { from, ecn, mut bytes, .. } = datagram;
        let from = match NonZeroU32::new(u32::from(from.port())) {
            Some(number) if from.ip() == RELAY_IP => PathAddr::Via(number),
            _ => PathAddr::Ip(from),
        };
        self.checks.on_received(from, bytes.len());
        let time = self.clock(now);
        self.endpoint.handle_datagram(time, from, ecn, &mut bytes);
    }

    /// Drains the endpoint. `answer` makes the party of an incoming connection.
    pub(super) fn drain(
        &mut self,
        now: Time,
        buffer: &mut [u8],
        mut answer: impl FnMut(NodeId) -> Application,
    ) {
        if self.is_asleep(now) {
            return;
        }
        let time = self.clock(now);
        let mut outputs = 0;
        loop {
            let before = outputs;
            while let Some((handle, event)) = self.endpoint.poll_event() {
                outputs += 1;
                self.on_event(now, handle, event, &mut answer);
            }
            while let Some((id, event)) = self.endpoint.punches().poll_event() {
                outputs += 1;
                self.seen.punches.push((now, id, event));
            }
            if let Some((handle, party)) = &mut self.party
                && party.wants_driving(time)
                && let Some(connection) = self.endpoint.connection(*handle)
            {
                party.drive(time, connection);
            }
            while self.transmit(now, buffer) {
                outputs += 1;
                assert!(outputs < OUTPUTS_MAX, "datagrams without end");
            }
            if outputs == before {
                break;
            }
        }
        if let Some((handle, party)) = &self.party {
            self.checks.on_connection(time, self.endpoint.is_live(*handle));
            self.seen.on_bytes(now, party.bytes_read());
        }
        let timeout = self.endpoint.poll_timeout();
        self.checks.on_drained(time, timeout);
        let party = self.party.as_ref().and_then(|(_, party)| party.wake());
        self.wake = timeout.into_iter().chain(party).min().map(|at| at + self.slept);
    }

    fn on_event(
        &mut self,
        now: Time,
        handle: ConnectionHandle,
        event: Event,
        answer: &mut impl FnMut(NodeId) -> Application,
    ) {
        let Some(connection) = self.endpoint.connection(handle) else {
            panic!("{event:?} of a connection that does not exist");
        };
        match &event {
            Event::Connected => self.checks.on_validated(connection.remote()),
            Event::PathChanged { remote } => {
                self.checks.on_validated(*remote);
                self.seen.paths.push((now, *remote));
            }
            Event::MigrationFailed { remote } => self.seen.failed.push((now, *remote)),
            Event::PeerCandidates(candidates) => self.seen.candidates.clone_from(candidates),
            Event::ObservedAddress(address) => self.seen.observed.push(*address),
            _ => {}
        }
        let peer = connection.peer();
        let (_, party) = self.party.get_or_insert_with(|| (handle, answer(peer)));
        party.on_event(now - self.slept, connection, event);
    }

    fn transmit(&mut self, now: Time, buffer: &mut [u8]) -> bool {
        let time = self.clock(now);
        let Some(transmit) = self.endpoint.poll_transmit(time, buffer) else { return false };
        let to = transmit.to;
        if !self.checks.is_validated(to) && self.endpoint.is_validated(to) {
            self.checks.on_validated(to);
        }
        self.checks.on_transmit(&transmit);
        for datagram in buffer[..transmit.len].chunks(transmit.segment) {
            self.seen.sent += 1;
            self.send(now, to, transmit.ecn, datagram);
        }
        true
    }

    fn send(&mut self, now: Time, to: PathAddr, ecn: Option<Ecn>, datagram: &[u8]) {
        let (to, relayed) = match to {
            PathAddr::Ip(address) => (address, false),
            PathAddr::Via(number) => {
                let port = u16::try_from(number.get()).expect("few relays");
                (SocketAddr::new(RELAY_IP, port), true)
            }
        };
        let mut interfaces = self.interfaces.iter_mut().filter(|interface| interface.works);
        let of_family = |i: &&mut Interface| relayed || i.address.is_ipv4() == to.is_ipv4();
        if let Some(interface) = interfaces.find(of_family) {
            let datagram =
                Datagram { ecn, ..Datagram::new(interface.address, to, datagram.to_vec()) };
            interface.up.push(now, datagram);
        }
    }
}
