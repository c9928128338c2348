//! The running service: its door, the codes that lead to it, and how contacts and holders of the
//! ticket find it.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{self, Sender};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wraith_crypto::NodeId;
use wraith_discovery::contact::ContactPair;
use wraith_discovery::record::{TicketRecord, publish_ticket};
use wraith_discovery::{
    Capability, Code, CodeAnnouncement, CodeEvent, MakeTicket, PlaceError, PlaceName, Ticket,
};
use wraith_transfer::close;
use wraith_transport::{AccessKey, ClockDifference, Connection, Door, Role as PathRole};
use zeroize::Zeroizing;

use super::callers::{CallerQueue, PendingCallers, authorize};
use super::{Invited, Service, ServiceBuilder, contact_secret};
use crate::clock_reports::ClockReports;
use crate::engine::codes::Codes;
use crate::engine::offer_server::{LongCode, LongCodeEvent, next_of};
use crate::engine::role::{self, Role};
use crate::engine::task::{Task, TaskState};
use crate::error::{Error, ErrorKind};
use crate::event::Event;
use crate::event_publisher::EventPublisher;
use crate::join_code::{burned, expired, no_place};
use crate::node::Node;
use crate::node_core::{ANY_ADDRESS, KeyHistory, reachable_places};
use crate::paths::{Binding, Contacts, Presence, RelayReports, SocketPaths, node_ids, pairs_of};
use crate::state::ALLOWED_MAX;

/// Maximum number of connections that the user of the service has not accepted yet; further ones are
/// closed.
const WAITING_MAX: usize = 64;

/// Close reason sent to callers for which there is no room.
const BUSY: &str = "too many callers at once";

/// Opens the service and starts its task.
pub(super) async fn start(builder: ServiceBuilder) -> Result<Service, Error> {
    let ServiceBuilder { node, capability, invited, bind, is_isolated, life } = builder;
    let shared = TaskState::new(&node, EventPublisher::new(None));
    let (capability, history) = match capability {
        Some(capability) => (capability, KeyHistory::Used),
        None => (new_capability()?, KeyHistory::New),
    };
    let binding = match is_isolated {
        true => Binding::Own(bind.unwrap_or(ANY_ADDRESS)),
        false => Binding::Accepting { port: None },
    };
    let access_key = AccessKey::of_ticket(capability.as_bytes(), node.id());
    let door = match &invited {
        Invited::Ticket => node.core().door(vec![access_key], history),
        // Nobody has used the code yet.
        Invited::Code(_) => {
            Door { admitted: Some(HashSet::new()), ..node.core().door(vec![access_key], history) }
        }
        Invited::Contacts(_) => node.core().door(Vec::new(), KeyHistory::Used),
    };
    let paths = node.open_paths(binding, door)?;
    let reports = match &invited {
        Invited::Ticket => RelayReports::All,
        _ => RelayReports::Refusals,
    };
    paths.accept_callers(&shared.publisher, reports);
    let (give, connections) = mpsc::channel(WAITING_MAX);
    let queue = Arc::<CallerQueue>::default();
    let mut role = ServiceRole {
        clocks: ClockReports::new(&shared.publisher),
        publisher: Arc::clone(&shared.publisher),
        secrets: Secrets::Ticket(capability.clone()),
        pending: PendingCallers::default(),
        code: None,
        long_code: LongCode::default(),
        codes_ended: 0,
        admitted: Arc::default(),
        queue: Arc::clone(&queue),
        code_failure: None,
        record: None,
        contacts: None,
        give,
        node,
        paths,
    };
    let ticket = Ticket::new(role.node.id(), capability, role.paths.reach(None))
        .with_suites(role.node.core().policy.packet_suites())
        .of_service();
    let mut shown = Shown::default();
    let mut presence = None;
    match invited {
        Invited::Ticket => shown.ticket = Some(role.invite_by_ticket(&ticket).await),
        Invited::Code(uses) => role.invite_by_code(&ticket, uses, life, &mut shown).await?,
        Invited::Contacts(name) => {
            let found = Presence::of(&role.paths, &role.publisher, &role.clocks).await?;
            (shown.places, shown.missing) = (found.places().to_vec(), found.missing().to_vec());
            role.invite_contacts(name, found.contacts());
            presence = Some(found);
        }
    }
    let address = role.paths.endpoint().local_addr();
    let closed = CancellationToken::new();
    let (runtime, stop) = (role.node.core().runtime.clone(), shared.token.clone());
    let graceful = closed.clone();
    let work = async move {
        let result = role::run(&mut role, &stop).await.and_then(|result| result);
        role.end(presence, graceful.is_cancelled()).await;
        result
    };
    let task = Task::spawn(&runtime, shared, work);
    let Shown { ticket, code, places, missing } = shown;
    let connections = connections.into();
    Ok(Service { ticket, code, address, places, missing, connections, queue, closed, task })
}

/// What the user of a service can show or check.
#[derive(Default)]
struct Shown {
    ticket: Option<Ticket>,
    code: Option<Code>,
    places: Vec<PlaceName>,
    missing: Vec<(PlaceName, PlaceError)>,
}

fn new_capability() -> Result<Capability, Error> {
    let mut secret = Zeroizing::new([0; Capability::LEN]);
    getrandom::fill(&mut *secret)
        .map_err(|error| Error::new(ErrorKind::Other, format!("no randomness: {error}")))?;
    Ok(Capability::from_bytes(*secret))
}

/// The secrets that callers must send.
enum Secrets {
    Ticket(Capability),
    /// The secret of each contact.
    Contacts {
        name: String,
        of_peers: HashMap<NodeId, Capability>,
        keys: Vec<(AccessKey, NodeId)>,
    },
}

impl Secrets {
    fn secret_of(&self, peer: NodeId) -> Option<Capability> {
        match self {
            Self::Ticket(capability) => Some(capability.clone()),
            Self::Contacts { of_peers, .. } => of_peers.get(&peer).cloned(),
        }
    }
}

/// The peers that have used a code of the service, oldest first. Both codes share the places.
#[derive(Debug, Default)]
struct Admitted {
    peers: Vec<NodeId>,
    /// Number of places; `None` means any number.
    places: Option<u32>,
}

impl Admitted {
    /// Admits a peer, unless all places are taken. If there are any number, the oldest of
    /// [`ALLOWED_MAX`] gives way.
    fn admit(&mut self, peer: NodeId) -> bool {
        if self.peers.contains(&peer) {
            return true;
        }
        if self.is_full() {
            return false;
        }
        if self.peers.len() >= ALLOWED_MAX {
            self.peers.remove(0);
        }
        self.peers.push(peer);
        true
    }

    fn is_full(&self) -> bool {
        self.places.is_some_and(|places| self.peers.len() >= places as usize)
    }
}

/// A service, as it runs.
struct ServiceRole {
    node: Node,
    paths: SocketPaths,
    publisher: Arc<EventPublisher>,
    clocks: ClockReports,
    secrets: Secrets,
    pending: PendingCallers,
    code: Option<CodeAnnouncement>,
    long_code: LongCode,
    /// Number of codes that are burned or expired.
    codes_ended: u32,
    admitted: Arc<Mutex<Admitted>>,
    queue: Arc<CallerQueue>,
    /// Why the first code ended that did.
    code_failure: Option<Error>,
    /// Leads holders of the ticket to our current addresses.
    record: Option<TicketRecord>,
    contacts: Option<watch::Receiver<Contacts>>,
    give: Sender<Connection>,
}

/// What a service waits for, besides its peers.
enum ServiceEvent {
    /// A caller has sent the secret, or has left.
    Caller(Option<Connection>),
    Code(CodeEvent),
    LongCode(LongCodeEvent),
    ContactsChanged,
}

impl ServiceRole {
    /// Completes the ticket and publishes its addresses.
    async fn invite_by_ticket(&mut self, ticket: &Ticket) -> Ticket {
        self.paths.wait_until_ready().await;
        let bound = self.paths.endpoint().local_addr();
        let stores = reachable_places(self.node.places(), bound).stores;
        if !stores.is_empty() {
            self.paths.keep_observed_fresh();
            let reach = self.paths.make_reach();
            self.record = Some(publish_ticket(&stores, self.node.id(), ticket.capability(), reach));
        }
        ticket.at(self.paths.reach(None))
    }

    async fn invite_by_code(
        &mut self,
        ticket: &Ticket,
        uses: Option<u32>,
        life: Option<std::time::Duration>,
        shown: &mut Shown,
    ) -> Result<(), Error> {
        self.admitted().places = uses;
        if !self.paths.allows_direct() {
            // Without a mailbox at a relay, the ticket has no usable path.
            self.paths.wait_until_ready().await;
        }
        let make = |includes_observed| self.ticket_maker(ticket, includes_observed);
        let made = Codes::make(&self.node, &self.paths, make, uses, life, &self.publisher).await?;
        if made.are_none() {
            return Err(no_place(&made.short));
        }
        let (code, long_code) = made.into_parts();
        let announced = code.as_ref().or(long_code.announcement());
        shown.code = announced.map(|code| code.code().clone());
        shown.places = announced.map(|code| code.places().to_vec()).unwrap_or_default();
        shown.missing = announced.map(|code| code.missing().to_vec()).unwrap_or_default();
        (self.code, self.long_code) = (code, long_code);
        self.code.iter_mut().for_each(CodeAnnouncement::start_serving);
        Ok(())
    }

    /// Returns the function that builds the ticket for a peer that proved the words of the code. The
    /// door admits the peer before it gets the ticket.
    fn ticket_maker(&self, ticket: &Ticket, includes_observed: bool) -> MakeTicket {
        let (ticket, paths) = (ticket.clone(), self.paths.clone());
        let admitted = Arc::clone(&self.admitted);
        Box::new(move |peer, seen| {
            let mut admitted = admitted.lock().unwrap_or_else(PoisonError::into_inner);
            if !admitted.admit(peer) {
                return None;
            }
            // Under the lock, so that an earlier list does not replace a later one.
            paths.endpoint().admit_only(Some(admitted.peers.iter().copied().collect()));
            drop(admitted);
            let seen = seen.filter(|_| includes_observed);
            Some(Zeroizing::new(ticket.at(paths.reach(seen)).encode()))
        })
    }

    fn invite_contacts(&mut self, name: String, mut contacts: watch::Receiver<Contacts>) {
        self.secrets = Secrets::Contacts { name, of_peers: HashMap::new(), keys: Vec::new() };
        contacts.mark_changed();
        self.contacts = Some(contacts);
        self.contacts_changed();
    }

    /// Admits the current contacts.
    fn contacts_changed(&mut self) {
        let Some(now) = self.contacts.as_mut() else { return };
        let now = Contacts::clone(&now.borrow_and_update());
        let Secrets::Contacts { name, of_peers, keys } = &mut self.secrets else { return };
        let own = self.node.id();
        of_peers.clear();
        keys.clear();
        for pair in pairs_of(self.node.identity(), &now) {
            let invitation = Invitation::new(&pair, name, own);
            of_peers.insert(pair.peer(), invitation.secret);
            keys.push((invitation.access_key, pair.peer()));
        }
        let endpoint = self.paths.endpoint();
        endpoint.set_access_keys(keys.iter().map(|(key, _)| key.clone()).collect());
        endpoint.admit_only(Some(node_ids(&now)));
        self.queue.admit_only(node_ids(&now));
    }

    fn admitted(&self) -> MutexGuard<'_, Admitted> {
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the error of the first code that ended, if no peer can come any more.
    fn failure(&mut self) -> Option<Error> {
        let codes = u32::from(self.code.is_some()) + u32::from(!self.long_code.is_none());
        let is_over = self.codes_ended >= codes && self.admitted().peers.is_empty();
        self.code_failure.take_if(|_| is_over)
    }

    /// Handles an event of a code. Returns an error if no peer can come any more.
    fn code_event(&mut self, event: CodeEvent) -> Option<Error> {
        let failure = match event {
            CodeEvent::Used { place, joiner: peer } => {
                self.publisher.publish(Event::CodeUsed { place, peer });
                if self.admitted().is_full() {
                    // Late joiners by the other code get the reason.
                    let codes = self.code.iter_mut().chain(self.long_code.announcement_mut());
                    codes.for_each(CodeAnnouncement::end_as_used);
                }
                return None;
            }
            CodeEvent::PunchRequest(_, call) => {
                self.paths.punch_for_caller(call.punch_secret, call.reach.addresses());
                return None;
            }
            CodeEvent::Lost(place, why) => {
                self.publisher.publish(Event::PlaceLost { place, why });
                return None;
            }
            CodeEvent::Back(place) => {
                self.publisher.publish(Event::PlaceBack(place));
                return None;
            }
            CodeEvent::WrongGuess(place) => {
                self.publisher.publish(Event::CodeBurned(place.clone()));
                burned(place, "")
            }
            CodeEvent::Expired => {
                self.publisher.publish(Event::CodeExpired);
                expired("")
            }
            _ => return None,
        };
        // A code that has ended stays where it is and sends the reason to late joiners.
        self.codes_ended += 1;
        self.code_failure.get_or_insert(failure);
        self.failure()
    }

    /// Withdraws everything that leads to the service. `closes_all`: also closes the connections
    /// that were handed out.
    async fn end(self, presence: Option<Presence>, closes_all: bool) {
        let Self { node, paths, code, long_code, record, .. } = self;
        match closes_all {
            true => paths.endpoint().start_close(),
            false => paths.endpoint().stop_accepting(),
        }
        let short = async {
            if let Some(code) = code {
                code.close().await;
            }
        };
        let record = async {
            if let Some(record) = record {
                record.withdraw().await;
            }
        };
        let presence = async {
            if let Some(presence) = presence {
                presence.close().await;
            }
        };
        tokio::join!(short, long_code.close(), record, presence);
        // Connections of the user keep the paths open.
        if closes_all || paths.is_last_handle() {
            paths.close().await;
        }
        node.store_dht_nodes();
    }
}

impl Role for ServiceRole {
    type Event = ServiceEvent;
    type Output = Result<(), Error>;

    fn paths(&self) -> &SocketPaths {
        &self.paths
    }

    async fn next_event(&mut self) -> ServiceEvent {
        let Self { pending, code, long_code, contacts, .. } = self;
        let contacts_changed = async {
            let changed = match contacts {
                Some(contacts) => contacts.changed().await.is_ok(),
                None => false,
            };
            if !changed {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            Some(caller) = pending.tasks.join_next() => ServiceEvent::Caller(caller.ok().flatten()),
            event = next_of(code) => ServiceEvent::Code(event),
            event = long_code.next() => match event {
                LongCodeEvent::Announcement(event) => ServiceEvent::Code(event),
                event => ServiceEvent::LongCode(event),
            },
            () = contacts_changed => ServiceEvent::ContactsChanged,
        }
    }

    async fn on_event(&mut self, event: ServiceEvent) -> ControlFlow<Self::Output> {
        match event {
            ServiceEvent::Caller(Some(connection)) => {
                if !self.queue.enter(connection.peer()) {
                    connection.close(close::OTHER, BUSY);
                    return ControlFlow::Continue(());
                }
                self.paths.keep_open(&connection, PathRole::Responder, &self.publisher);
                if let Err(refused) = self.give.try_send(connection) {
                    let connection = refused.into_inner();
                    self.queue.leave(&connection);
                    connection.close(close::OTHER, BUSY);
                }
            }
            ServiceEvent::Caller(None) => {}
            ServiceEvent::Code(event) => {
                if let Some(failure) = self.code_event(event) {
                    return ControlFlow::Break(Err(failure));
                }
            }
            ServiceEvent::LongCode(LongCodeEvent::Made(code)) => {
                self.publisher.publish(Event::LongCode(code));
            }
            ServiceEvent::LongCode(LongCodeEvent::NotMade(why)) => {
                self.publisher.publish(Event::NoLongCode(why));
                if let Some(failure) = self.failure() {
                    return ControlFlow::Break(Err(failure));
                }
            }
            ServiceEvent::LongCode(LongCodeEvent::Announcement(_)) => {}
            ServiceEvent::ContactsChanged => self.contacts_changed(),
        }
        ControlFlow::Continue(())
    }

    fn on_connection(&mut self, connection: Connection) {
        match self.secrets.secret_of(connection.peer()) {
            Some(secret) => self.pending.add(authorize(connection, secret)),
            // It was a contact when its handshake began.
            None => connection.close(close::OTHER, ""),
        }
    }

    fn on_clock_difference(&mut self, refused: ClockDifference) {
        // Only the access key of a contact names its holder.
        let holder = match &self.secrets {
            Secrets::Ticket(_) => None,
            Secrets::Contacts { keys, .. } => {
                keys.iter().find(|(key, _)| *key == refused.access_key).map(|(_, peer)| *peer)
            }
        };
        self.clocks.report(holder, refused.seconds);
    }

    fn on_addresses_changed(&mut self) {
        self.record.iter().for_each(TicketRecord::update);
    }

    async fn on_stop(&mut self) -> Self::Output {
        Ok(())
    }
}

/// The invitation of one contact to a service (SPEC §12.5).
pub(super) struct Invitation {
    pub access_key: AccessKey,
    pub secret: Capability,
}

impl Invitation {
    /// Returns the invitation of the pair's contact to the service `name` of `server`.
    pub fn new(pair: &ContactPair, name: &str, server: NodeId) -> Self {
        let secret = contact_secret(pair, name);
        let access_key = AccessKey::of_pair(&secret, server);
        let (first, _) = secret.split_first_chunk().expect("16 of 32 bytes");
        Self { access_key, secret: Capability::from_bytes(*first) }
    }
}
