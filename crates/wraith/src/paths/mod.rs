//! The paths to and from a socket: addresses of this machine, port mappings, relays, and observed
//! addresses (those that other hosts see). The roles of a node (offers, listeners, services,
//! dialling operations) share one socket and its paths; each role has a [`SocketPaths`] with a door of
//! its own.
//!
//! ```text
//!   shared         which socket a role gets
//!   mapping        a port mapped by the router
//!   ip_carrier     UDP as a carrier: the addresses of the socket
//!   addresses      selection and order of these
//!   relays         relays as a carrier: connections to them, and mailboxes there
//!   own_addresses  the addresses of this machine
//!   observed       our addresses as relays and DHT nodes see us
//!   path_manager   moves a connection from a relay to a direct path
//!   presence       how contacts find the socket
//!   symmetric_nat  hole punching if one NAT varies its ports
//!   peer_relays    which relays a peer may choose
//! ```
//!
//! Invariants:
//!
//! - For a socket bound to a specific address, no router, relay or DHT node is contacted: the
//!   caller has chosen the path.
//! - If only relays are allowed, none of this machine's addresses is sent to the peer.
//! - If only direct paths are allowed, no relay is used.
//! - The end of a role ends its own connections and tasks only. The last role closes the socket.

pub(crate) mod addresses;
mod ip_carrier;
mod observed;
mod own_addresses;
mod path_manager;
mod peer_relays;
mod presence;
mod relays;
mod shared;
mod symmetric_nat;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use wraith_discovery::contact::{ContactEvent, ContactEvents};
use wraith_discovery::{CustomWay, MakeReach, Reach};
use wraith_portmap::{PortMapping, Status};
use wraith_transport::mover::SocketPool;
use wraith_transport::{Connection, Door, Endpoint, PeerStart, PunchEvent, Role};

use self::ip_carrier::IpCarrier;
use self::presence::CurrentPresence;
use self::relays::RelayTable;
use crate::carrier::{Carrier, OpenCarrier};
use crate::error::{Error, ErrorKind, plain};
use crate::event_publisher::EventPublisher;
use crate::node_core::{NodeCore, Socket};

pub(crate) use self::presence::{Contacts, Presence, node_ids, pairs_of};
pub(crate) use self::relays::RelayReports;
pub(crate) use self::shared::{Binding, SharedSockets};

/// How long a ticket that a user waits for may wait for a router and a relay. A router that grants
/// ports answers within milliseconds, or with UPnP after the second over which devices spread their
/// answers. A relay takes three round trips.
const TICKET_WAIT: Duration = Duration::from_secs(2);

/// The paths of one role (see the module docs). Clones are handles of the same role; dropping the
/// last one ends the role's connections and tasks.
#[derive(Clone, Debug)]
pub(crate) struct SocketPaths {
    inner: Arc<Inner>,
    /// The role's door.
    endpoint: Endpoint,
    tasks: Arc<Tasks>,
    /// `None` in the handles of its own tasks.
    guard: Option<Arc<RoleGuard>>,
}

type Tasks = Mutex<JoinSet<()>>;

/// Ends the tasks of a role, which keep the rest alive.
#[derive(Debug)]
struct RoleGuard {
    inner: Arc<Inner>,
    tasks: Arc<Tasks>,
    /// [`SocketPaths::close`] was called.
    has_left: AtomicBool,
}

impl RoleGuard {
    /// Returns true for the first call of the last role of the socket.
    fn leave(&self) -> bool {
        lock(&self.tasks).abort_all();
        !self.has_left.swap(true, Ordering::AcqRel) && self.inner.leave()
    }
}

impl Drop for RoleGuard {
    fn drop(&mut self) {
        if self.leave() {
            self.inner.end();
        }
    }
}

/// A socket and its paths, for all its roles.
#[derive(Debug)]
struct Inner {
    core: Arc<NodeCore>,
    /// The first door, which admits no peer. Closing it closes the socket.
    endpoint: Endpoint,
    /// Why the usual port is not bound, if that was tried.
    usual_taken: Option<Error>,
    /// Number of roles. Once it has fallen to 0, the socket gets no other role.
    roles: Mutex<usize>,
    /// Asks the router and waits at relays.
    accepts: AtomicBool,
    ip: Arc<IpCarrier>,
    relays: Arc<RelayTable>,
    /// The allowed ones, for both directions.
    carriers: Vec<Arc<dyn Carrier>>,
    sockets: SocketPool,
    /// A task that closes idle sockets is running.
    closes_sockets: AtomicBool,
    presence: CurrentPresence,
    /// Counts changes of our reachable addresses.
    changed: watch::Sender<u64>,
    /// The tasks that serve all roles.
    tasks: Arc<Tasks>,
}

impl Inner {
    /// Binds a socket for its first role.
    fn bind(core: &Arc<NodeCore>, address: SocketAddr) -> Result<Self, Error> {
        let (changed, settings) = (watch::Sender::new(0), &core.paths);
        let (mut carriers, mut movers) = (Vec::<Arc<dyn Carrier>>::new(), Vec::new());
        for factory in core.carriers.iter().filter(|_| !settings.relay_only) {
            let failed =
                |kind, why: &str| Error::new(kind, format!("cannot open a carrier: {why}"));
            let signal = changed.clone();
            let opened = factory.open(Arc::new(move || signal.send_modify(|count| *count += 1)));
            let opened = opened.map_err(|why| failed(ErrorKind::Other, &plain(&why)));
            let OpenCarrier { carrier, mover } = opened?;
            let invalid = |why: &str| failed(ErrorKind::InvalidInput, why);
            CustomWay::new(carrier.kind(), []).map_err(|why| invalid(&why.to_string()))?;
            if carriers.iter().any(|other| other.kind() == carrier.kind()) {
                return Err(invalid("another one has the same kind"));
            }
            carriers.push(carrier);
            movers.push(mover);
        }
        let Socket { endpoint, relays, further } = core.bind(address, Door::default(), movers)?;
        let ip = Arc::new(IpCarrier::new(endpoint.local_addr()));
        let relays = Arc::new(RelayTable::new(relays, settings.clone(), core.identity.clone()));
        carriers.extend((!settings.relay_only).then(|| Arc::clone(&ip) as _));
        carriers.extend((!settings.direct_only).then(|| Arc::clone(&relays) as _));
        Ok(Self {
            core: Arc::clone(core),
            endpoint,
            usual_taken: None,
            roles: Mutex::new(1),
            accepts: AtomicBool::default(),
            ip,
            relays,
            carriers,
            sockets: further,
            closes_sockets: AtomicBool::default(),
            presence: CurrentPresence::default(),
            changed,
            tasks: Arc::default(),
        })
    }

    /// Adds a role. Returns false if the socket has no role any more.
    fn join(&self) -> bool {
        let mut roles = lock(&self.roles);
        *roles += usize::from(*roles > 0);
        *roles > 0
    }

    /// Removes a role. Returns true if it was the last.
    fn leave(&self) -> bool {
        let mut roles = lock(&self.roles);
        *roles -= 1;
        *roles == 0
    }

    fn end(&self) {
        lock(&self.tasks).abort_all();
        self.relays.close();
    }
}

/// Ends the tasks of a socket, which keep it alive, on drop.
struct EndOnDrop<'a>(&'a Inner);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl SocketPaths {
    /// Opens a door of the socket for a role, which the socket counts already.
    fn of_role(inner: Arc<Inner>, door: Door) -> Self {
        let (endpoint, tasks) = (inner.endpoint.open_door(door), Arc::<Tasks>::default());
        let guard = RoleGuard {
            inner: Arc::clone(&inner),
            tasks: Arc::clone(&tasks),
            has_left: AtomicBool::default(),
        };
        Self { inner, endpoint, tasks, guard: Some(Arc::new(guard)) }
    }

    /// Makes the socket reachable for peers that dial: asks the router for a port, and waits at the
    /// relays. `publisher` gets events about unusable relays.
    pub fn accept_callers(&self, publisher: &Arc<EventPublisher>, reports: RelayReports) {
        let (settings, bound) = (&self.inner.core.paths, self.endpoint.local_addr());
        if !bound.ip().is_unspecified() {
            return;
        }
        self.inner.relays.report_to(publisher, reports);
        if self.inner.accepts.swap(true, Ordering::AcqRel) {
            return;
        }
        let _entered = self.inner.core.runtime.enter();
        if let Some(port) = NonZeroU16::new(bound.port()).filter(|_| settings.port_mapping) {
            let mapping = PortMapping::request(port);
            self.watch_mapping(&mapping);
            *lock(&self.inner.ip.mapping) = Some(mapping);
        }
        if !settings.direct_only {
            for server in &settings.relays {
                let (all, server) = (self.of_all_roles(), server.clone());
                let paths = all.clone();
                all.spawn(async move { paths.register_at(&server).await });
            }
        }
    }

    /// Returns true if no connection of a user keeps the role alive, and no other handle.
    pub fn is_last_handle(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| Arc::strong_count(guard) == 1)
    }

    /// Returns a handle for a task of its own.
    fn unguarded(&self) -> Self {
        Self { guard: None, ..self.clone() }
    }

    /// Returns a handle for a task that serves all roles of the socket.
    fn of_all_roles(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            endpoint: self.inner.endpoint.clone(),
            tasks: Arc::clone(&self.inner.tasks),
            guard: None,
        }
    }

    /// Returns the role's door.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns whether direct connections are allowed, in both directions.
    pub fn allows_direct(&self) -> bool {
        !self.inner.core.paths.relay_only
    }

    /// Returns whether relays are allowed.
    pub fn allows_relays(&self) -> bool {
        !self.inner.core.paths.direct_only
    }

    /// Returns the carrier of these ways, if it may be used.
    pub fn carrier(&self, kind: u16) -> Option<Arc<dyn Carrier>> {
        self.inner.carriers.iter().find(|carrier| carrier.kind() == kind).cloned()
    }

    /// Returns our current ways. `observed_ip` is our IP address as seen by a server.
    pub fn reach(&self, observed_ip: Option<IpAddr>) -> Reach {
        let own_ways = self.inner.carriers.iter().flat_map(|carrier| carrier.own_ways(observed_ip));
        Reach::default().with(own_ways)
    }

    /// Returns a function that evaluates [`Self::reach`] later.
    pub fn make_reach(&self) -> MakeReach {
        let paths = self.unguarded();
        Box::new(move |observed_ip| paths.reach(observed_ip))
    }

    /// Returns the addresses for dialling us, the most useful first.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        if self.allows_direct() { self.inner.ip.addresses(None) } else { Vec::new() }
    }

    /// Returns a receiver that signals each change of our reachable addresses.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changed.subscribe()
    }

    fn notify_changed(&self) {
        self.inner.changed.send_modify(|count| *count += 1);
    }

    fn watch_mapping(&self, mapping: &PortMapping) {
        let (all, mut status) = (self.of_all_roles(), mapping.status());
        let (paths, mut before) = (all.clone(), None);
        all.spawn(async move {
            while status.changed().await.is_ok() {
                let now = status.borrow_and_update().external();
                if now != before {
                    before = now;
                    paths.notify_changed();
                }
            }
        });
    }

    /// Waits briefly for the router and the relays, for a ticket that is shown only once.
    pub async fn wait_until_ready(&self) {
        let mapping = lock(&self.inner.ip.mapping).as_ref().map(PortMapping::status);
        let router = async {
            if let Some(mut status) = mapping {
                // A mapping task that has ended will not answer.
                let _ = status.wait_for(|status| *status != Status::Requesting).await;
            }
        };
        let waits = self.allows_relays() && self.inner.endpoint.local_addr().ip().is_unspecified();
        let wanted = if waits { self.inner.core.paths.relays.len() } else { 0 };
        let relays = self.inner.relays.wait_until_tried(wanted);
        // A router or relay that does not answer is not in the ticket.
        drop(timeout(TICKET_WAIT, async { tokio::join!(router, relays) }).await);
    }

    /// Keeps `connection` on its best path and reports the path, until the connection ends.
    pub fn manage_path(
        &self,
        connection: &Connection,
        role: Role,
        publisher: &Arc<EventPublisher>,
        receiver: Option<u64>,
    ) {
        let remote = connection.remote();
        if let Some(name) = self.inner.relays.name_of(&remote) {
            self.inner.core.routes.add_relay(remote, name);
        }
        let (paths, publisher, path) = (self.unguarded(), Arc::clone(publisher), connection.path());
        let events = path.events();
        self.spawn(path_manager::manage_path(paths, path, events, role, publisher, receiver));
    }

    /// Manages the path of a connection that its user owns, until the connection ends. The role's
    /// socket and relays live as long, also if the role ends before.
    pub fn keep_open(&self, connection: &Connection, role: Role, publisher: &Arc<EventPublisher>) {
        self.manage_path(connection, role, publisher, None);
        let (paths, mut events) = (self.clone(), connection.path().events());
        self.inner.core.runtime.spawn(async move {
            while events.next().await.is_ok() {}
            drop(paths);
        });
    }

    /// Opens our NAT for a peer that has the same secret and punches at the same time. Returns the
    /// best address at which the peer answers.
    ///
    /// `more`: the peer has not started yet, and finds our record within a minute. The channel
    /// yields addresses of the peer that are found meanwhile.
    pub async fn punch(
        &self,
        secret: [u8; 32],
        role: Role,
        candidates: Vec<SocketAddr>,
        mut more: Option<&mut UnboundedReceiver<Vec<SocketAddr>>>,
    ) -> Option<SocketAddr> {
        if !self.allows_direct() || candidates.is_empty() {
            return None;
        }
        let start = if more.is_some() { PeerStart::WithinAMinute } else { PeerStart::Now };
        let mut punch = self.inner.endpoint.punch(secret, role, start, candidates);
        loop {
            tokio::select! {
                event = punch.next() => match event.ok().flatten()? {
                    PunchEvent::Punched { remote, .. } => {
                        self.inner.core.routes.add_punched(remote);
                    }
                    PunchEvent::Ended { best, .. } => return best,
                    _ => {}
                },
                Some(candidates) = async { more.as_mut()?.recv().await } => {
                    punch.add_candidates(candidates);
                }
            }
        }
    }

    /// Runs [`Self::punch`] in the background, for a peer that dials afterwards. The peer may have
    /// a port whose NAT mapping has expired; it then gets the new one.
    pub fn punch_for_caller(&self, secret: [u8; 32], candidates: Vec<SocketAddr>) {
        let paths = self.unguarded();
        self.spawn(async move {
            paths.observe().await;
            paths.punch(secret, Role::Responder, candidates, None).await;
        });
    }

    /// Runs [`Self::punch_for_caller`] for each of these calls.
    pub fn punch_for_callers(&self, mut events: ContactEvents) {
        let paths = self.unguarded();
        self.spawn(async move {
            while let Some(event) = events.next().await {
                if let ContactEvent::PunchRequest(_, call) = event {
                    paths.punch_for_caller(call.punch_secret, call.reach.addresses());
                }
            }
        });
    }

    /// Spawns a task that ends at the latest with this role, or with the last role of the socket
    /// for a [handle of all](Self::of_all_roles).
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(work, &self.inner.core.runtime);
    }

    /// Ends the role: delivers the finished streams of its connections, closes these, and ends its
    /// tasks. The last role of the socket also releases the port mapping, leaves the relays and
    /// closes the socket. Takes at most some seconds.
    pub async fn close(&self) {
        self.endpoint.start_close();
        self.endpoint.closed().await;
        let Some(guard) = &self.guard else { return };
        if !guard.leave() {
            return;
        }
        // Also if this future is dropped.
        let ending = EndOnDrop(&self.inner);
        self.inner.relays.leave().await;
        drop(ending);
        self.inner.endpoint.start_close();
        self.inner.endpoint.closed().await;
        let mapping = lock(&self.inner.ip.mapping).take();
        if let Some(mapping) = mapping {
            mapping.release().await;
        }
    }
}

/// Ignores poisoning: the data behind these locks is consistent at all times.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
