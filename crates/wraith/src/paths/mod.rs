//! The paths to and from a socket: addresses of this machine, port mappings, relays, and observed
//! addresses (those that other hosts see). There is one [`SocketPaths`] per socket, from the first
//! ticket that names the socket to the end.
//!
//! ```text
//!   mapping        a port mapped by the router
//!   relays         connections to relays, and mailboxes there
//!   own_addresses  the addresses of this machine
//!   observed       our addresses as relays and DHT nodes see us
//!   path_manager   moves a connection from a relay to a direct path
//!   symmetric_nat  hole punching if one NAT varies its ports
//!   proxies        how relays and rendezvous servers are reached
//!   peer_relays    which relays a peer may choose
//! ```
//!
//! Invariants:
//!
//! - For a socket bound to a specific address, no router, relay or DHT node is contacted: the
//!   caller has chosen the path.
//! - If only relays are allowed, none of this machine's addresses is sent to the peer.
//! - If only direct paths are allowed, no relay is used.

pub(crate) mod addresses;
mod observed;
mod own_addresses;
mod path_manager;
mod peer_relays;
mod proxies;
mod relays;
mod symmetric_nat;

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use wraith_discovery::contact::{ContactEvent, ContactEvents};
use wraith_discovery::{MakeReach, Reach, RelayAddr};
use wraith_portmap::{PortMapping, Status};
use wraith_transport::mover::SocketPool;
use wraith_transport::{Connection, Endpoint, Punch, PunchEvent, Role};

use self::addresses::{guess, reachable, with_seen};
use self::observed::ObservedAddresses;
use self::relays::RelayTable;
use crate::event_publisher::EventPublisher;
use crate::node::{Node, Socket};

pub use self::peer_relays::{PeerRelays, UnknownPeerRelays};
pub use self::proxies::Proxies;
pub use self::relays::RelayServer;
pub(crate) use self::relays::{RelayReports, is_final};

/// How long a ticket that a user waits for may wait for a router and a relay. A router that grants
/// ports answers within milliseconds, or with UPnP after the second over which devices spread their
/// answers. A relay takes three round trips.
const TICKET_WAIT: Duration = Duration::from_secs(2);

/// The allowed paths of a node, in both directions.
#[derive(Clone, Debug)]
pub(crate) struct PathSettings {
    /// Ask the router for a port mapping.
    pub port_mapping: bool,
    /// Relays at which the node waits.
    pub relays: Vec<RelayServer>,
    /// Use no relay, even if a peer names one.
    pub direct_only: bool,
    /// Use relays only.
    pub relay_only: bool,
    /// Which relays a peer may choose. `None`: public ones, but only own ones if the user wants
    /// relays only and no proxy hides this machine from the relay.
    pub peer_relays: Option<PeerRelays>,
    /// Whether an own relay that asks for the NodeId gets it.
    pub relay_identity: bool,
    /// How relays and rendezvous servers are reached.
    pub proxies: Arc<Proxies>,
}

impl Default for PathSettings {
    fn default() -> Self {
        Self {
            port_mapping: false,
            relays: Vec::new(),
            direct_only: false,
            relay_only: false,
            peer_relays: None,
            relay_identity: false,
            proxies: Arc::new(Proxies::none()),
        }
    }
}

/// The paths of a socket (see the module docs). Clones are handles of the same paths; dropping the
/// last one ends everything.
#[derive(Clone, Debug)]
pub(crate) struct SocketPaths {
    inner: Arc<Inner>,
    /// `None` in the handles of its own tasks.
    _guard: Option<Arc<Guard>>,
}

/// Ends the tasks, which keep the rest alive.
#[derive(Debug)]
struct Guard(Arc<Inner>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Inner {
    fn end(&self) {
        lock(&self.tasks).abort_all();
        self.relays.close();
    }
}

#[derive(Debug)]
struct Inner {
    node: Node,
    endpoint: Endpoint,
    mapping: Mutex<Option<PortMapping>>,
    relays: RelayTable,
    sockets: SocketPool,
    /// A task that closes idle sockets is running.
    closes_sockets: AtomicBool,
    observed: ObservedAddresses,
    /// Counts changes of our reachable addresses.
    changed: watch::Sender<u64>,
    /// The tasks of connections and relays; they end with this.
    tasks: Mutex<JoinSet<()>>,
}

impl SocketPaths {
    /// Creates the paths of a dialled socket and starts to open them. `publisher` gets events about
    /// unusable relays.
    pub fn for_accepting(
        node: &Node,
        socket: Socket,
        publisher: &Arc<EventPublisher>,
        reports: RelayReports,
    ) -> Self {
        let paths = Self::for_dialling(node, socket);
        let (settings, bound) = (node.path_settings(), paths.endpoint().local_addr());
        if !bound.ip().is_unspecified() {
            return paths;
        }
        let _entered = node.runtime().enter();
        if let Some(port) = NonZeroU16::new(bound.port()).filter(|_| settings.port_mapping) {
            let mapping = PortMapping::request(port);
            paths.watch_mapping(&mapping);
            *lock(&paths.inner.mapping) = Some(mapping);
        }
        if !settings.direct_only {
            for server in &settings.relays {
                let (theirs, server, publisher) =
                    (paths.unguarded(), server.clone(), Arc::clone(publisher));
                paths.spawn(async move { theirs.register_at(&server, &publisher, reports).await });
            }
        }
        paths
    }

    /// Creates the paths of a socket that only dials. Nothing is opened before it is needed.
    pub fn for_dialling(node: &Node, socket: Socket) -> Self {
        let inner = Arc::new(Inner {
            node: node.clone(),
            endpoint: socket.endpoint,
            mapping: Mutex::default(),
            relays: RelayTable::new(socket.relays),
            sockets: socket.further,
            closes_sockets: AtomicBool::default(),
            observed: ObservedAddresses::default(),
            changed: watch::Sender::new(0),
            tasks: Mutex::default(),
        });
        Self { _guard: Some(Arc::new(Guard(Arc::clone(&inner)))), inner }
    }

    /// Returns a handle for a task of its own.
    fn unguarded(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), _guard: None }
    }

    /// Returns the socket's endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.inner.endpoint
    }

    /// Returns whether direct connections are allowed, in both directions.
    pub fn allows_direct(&self) -> bool {
        !self.inner.node.path_settings().relay_only
    }

    /// Returns whether relays are allowed.
    pub fn allows_relays(&self) -> bool {
        !self.inner.node.path_settings().direct_only
    }

    /// Returns our current addresses and mailboxes. `observed_ip` is our IP address as seen by a
    /// server; it is usable if the router forwards the port.
    pub fn reach(&self, observed_ip: Option<IpAddr>) -> Reach {
        Reach { addresses: self.addresses(observed_ip), relays: self.mailboxes() }
    }

    /// Returns a function that evaluates [`Self::reach`] later.
    pub fn make_reach(&self) -> MakeReach {
        let paths = self.unguarded();
        Box::new(move |observed_ip| paths.reach(observed_ip))
    }

    /// Returns the addresses for dialling us, the most useful first.
    pub fn addresses(&self, observed_ip: Option<IpAddr>) -> Vec<SocketAddr> {
        if !self.allows_direct() {
            return Vec::new();
        }
        let bound = self.inner.endpoint.local_addr();
        let own = reachable(bound);
        if !bound.ip().is_unspecified() {
            return own;
        }
        let mut seen: Vec<_> = self.mapped().into_iter().chain(self.inner.observed.all()).collect();
        seen.extend(observed_ip.and_then(|ip| guess(own.iter().chain(&seen), ip, bound.port())));
        with_seen(own, seen)
    }

    /// Returns the mailboxes at which we wait, the nearest relay first.
    fn mailboxes(&self) -> Vec<RelayAddr> {
        if self.allows_relays() { self.inner.relays.mailboxes() } else { Vec::new() }
    }

    /// Returns the external address of our port mapping.
    fn mapped(&self) -> Option<SocketAddr> {
        lock(&self.inner.mapping).as_ref().and_then(|mapping| mapping.status().borrow().external())
    }

    /// Returns a receiver that signals each change of our reachable addresses.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changed.subscribe()
    }

    fn notify_changed(&self) {
        self.inner.changed.send_modify(|count| *count += 1);
    }

    fn watch_mapping(&self, mapping: &PortMapping) {
        let (paths, mut status) = (self.unguarded(), mapping.status());
        let mut before = None;
        self.spawn(async move {
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
        let mapping = lock(&self.inner.mapping).as_ref().map(PortMapping::status);
        let router = async {
            if let Some(mut status) = mapping {
                // A mapping task that has ended will not answer.
                let _ = status.wait_for(|status| *status != Status::Requesting).await;
            }
        };
        let waits = self.allows_relays() && self.inner.endpoint.local_addr().ip().is_unspecified();
        let wanted = if waits { self.inner.node.path_settings().relays.len() } else { 0 };
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
            self.inner.node.routes().add_relay(remote, name);
        }
        let (paths, publisher, path) = (self.unguarded(), Arc::clone(publisher), connection.path());
        let events = path.events();
        self.spawn(path_manager::manage_path(paths, path, events, role, publisher, receiver));
    }

    /// Opens our NAT for a peer that has the same secret and punches at the same time. Returns the
    /// best address at which the peer answers.
    pub async fn punch(
        &self,
        secret: [u8; 32],
        role: Role,
        candidates: Vec<SocketAddr>,
    ) -> Option<SocketAddr> {
        if !self.allows_direct() || candidates.is_empty() {
            return None;
        }
        let (_, mut nothing) = mpsc::unbounded_channel();
        self.best_of(self.inner.endpoint.punch(secret, role, candidates), &mut nothing).await
    }

    /// Like [`Self::punch`], for a peer that has not started yet: it finds our record within a
    /// minute. `more` yields addresses of the peer that are found meanwhile.
    pub async fn wait_for_punch(
        &self,
        secret: [u8; 32],
        candidates: Vec<SocketAddr>,
        more: &mut UnboundedReceiver<Vec<SocketAddr>>,
    ) -> Option<SocketAddr> {
        if !self.allows_direct() || candidates.is_empty() {
            return None;
        }
        let punch = self.inner.endpoint.wait_for_punch(secret, Role::Initiator, candidates);
        self.best_of(punch, more).await
    }

    /// Records each address at which the peer answers, and finally returns the best.
    async fn best_of(
        &self,
        mut punch: Punch,
        more: &mut UnboundedReceiver<Vec<SocketAddr>>,
    ) -> Option<SocketAddr> {
        loop {
            tokio::select! {
                event = punch.next() => match event.ok().flatten()? {
                    PunchEvent::Punched { remote, .. } => {
                        self.inner.node.routes().add_punched(remote);
                    }
                    PunchEvent::Ended { best, .. } => return best,
                    _ => {}
                },
                Some(candidates) = more.recv() => punch.add_candidates(candidates),
            }
        }
    }

    /// Runs [`Self::punch`] in the background, for a peer that dials afterwards. The peer may have
    /// a port whose NAT mapping has expired; it then gets the new one.
    pub fn punch_for_caller(&self, secret: [u8; 32], candidates: Vec<SocketAddr>) {
        let paths = self.unguarded();
        self.spawn(async move {
            paths.observe().await;
            paths.punch(secret, Role::Responder, candidates).await;
        });
    }

    /// Runs [`Self::punch_for_caller`] for each of these calls.
    pub fn punch_for_callers(&self, mut events: ContactEvents) {
        let paths = self.unguarded();
        self.spawn(async move {
            while let Some(event) = events.next().await {
                if let ContactEvent::PunchRequest(_, call) = event {
                    paths.punch_for_caller(call.punch_secret, call.reach.addresses);
                }
            }
        });
    }

    /// Spawns a task that ends with this at the latest.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.inner.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(work, self.inner.node.runtime());
    }

    /// Ends all tasks and releases the port mapping.
    pub async fn close(&self) {
        self.inner.relays.leave().await;
        self.inner.end();
        let mapping = lock(&self.inner.mapping).take();
        if let Some(mapping) = mapping {
            mapping.release().await;
        }
    }
}

/// Ignores poisoning: the data behind these locks is consistent at all times.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
