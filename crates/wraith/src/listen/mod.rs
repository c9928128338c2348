//! Receiving without a code, from contacts or from any peer that has the NodeId (the public key of
//! this machine). Only one transfer runs at a time.
//!
//! ```text
//!  accept ──▶ a task per caller: reads Hello, which names the transfer ──▶ waits for its turn
//!         ──▶ Incoming ──▶ fetch
//!  contacts file ──▶ which peers get a handshake, and an answer at meeting places ([`allowlist`])
//! ```
//!
//! Invariants:
//!
//! - A peer that is not admitted gets no packet after the second one of the handshake, whatever
//!   keys it has.
//! - The number of callers and of waiting offers is bounded.
//! - One transfer moves at a time.
//! - No stranger keeps the turn for long while another caller waits.

mod allowlist;
mod caller;
mod callers;
mod question_limit;
mod turn_limit;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::mpsc::{self, OwnedPermit, Receiver, Sender, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wraith_discovery::{PlaceError, PlaceName};
use wraith_transfer::{Conflicts, Role as Side, close};
use wraith_transport::{ClockDifference, Connection, Door, Role as PathRole};

use crate::clock_reports::ClockReports;
use crate::engine::consent::{Consent, PendingOffer};
use crate::engine::role::{self, Role};
use crate::engine::task::{Task, TaskState};
use crate::error::Error;
use crate::event::{Event, Observer};
use crate::event_publisher::{EventPublisher, Events};
use crate::fetch::{Incoming, Target, Transfer};
use crate::node::Node;
use crate::paths::{Binding, Contacts, Presence, RelayReports, SocketPaths};
use crate::report::FetchSummary;
use crate::state::{OtherReceiver, ReceiverRecord};
use allowlist::Allowlist;
use caller::{Caller, ListenContext};
use callers::AdmittedCaller;

/// Maximum number of connections of a listener. It serves only a few; the others may be losers of an
/// address race, or strangers.
const CONNECTIONS_MAX: usize = 64;
/// How long the shutdown waits for transfers to store their received data.
const LAST_WAIT: Duration = Duration::from_secs(3);

/// Accept filter of a listener.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcceptFilter {
    /// Contacts only. This machine is silent to all other peers.
    #[default]
    Contacts,
    /// Any peer that has the NodeId, after the user was asked about it.
    ///
    /// Questions of strangers are limited. One address may ask three at once and one more per
    /// minute. All strangers together may ask ten at once and three more per minute. Further offers
    /// are refused unread and counted ([`Event::RefusedUnread`]).
    AskUser,
    /// Any peer that has the NodeId.
    AnyPeer,
}

/// Configures a [`Listener`].
#[must_use = "the listener does nothing before start()"]
pub struct ListenBuilder {
    node: Node,
    folder: PathBuf,
    accept_filter: AcceptFilter,
    bind: Option<SocketAddr>,
    rate: Option<u64>,
    preview: bool,
    observer: Option<Arc<dyn Observer>>,
}

impl Node {
    /// Accepts offers without a code, from contacts or from any peer that has the NodeId.
    ///
    /// ```no_run
    /// # use wraith::{AcceptOptions, Error, Node, OnConflict};
    /// # async fn example(node: Node) -> Result<(), Error> {
    /// let mut listener = node.listen("Downloads").start().await?;
    /// while let Some(incoming) = listener.next().await {
    ///     let transfer = incoming.accept(AcceptOptions::on_conflict(OnConflict::Rename));
    ///     // One moves at a time; the next waits for its turn.
    ///     if let Err(error) = transfer.finished().await {
    ///         eprintln!("{error}");
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn listen(&self, into: impl Into<PathBuf>) -> ListenBuilder {
        ListenBuilder {
            node: self.clone(),
            folder: into.into(),
            accept_filter: AcceptFilter::default(),
            bind: None,
            rate: None,
            preview: true,
            observer: None,
        }
    }
}

impl ListenBuilder {
    /// Sets the accept filter. Default: contacts only.
    pub fn accept_filter(mut self, filter: AcceptFilter) -> Self {
        self.accept_filter = filter;
        self
    }

    /// Sets the listening address. Default: all local addresses, on the port derived from the
    /// NodeId, where contacts search. If that port is taken, the system chooses another.
    pub fn bind_to(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self
    }

    /// Asks each sender to limit its rate, in bytes per second.
    pub fn rate(mut self, bytes_per_second: impl Into<Option<u64>>) -> Self {
        self.rate = bytes_per_second.into();
        self
    }

    /// Enables a preview of the names before an offer is answered. Default: on.
    pub fn preview(mut self, preview: bool) -> Self {
        self.preview = preview;
        self
    }

    /// Also reports the events of the listener to `observer`. Events of a transfer go only to the
    /// observer of that transfer.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Starts to listen.
    ///
    /// # Errors
    /// The contacts cannot be read, or listening on the address failed.
    pub async fn start(self) -> Result<Listener, Error> {
        let Self { node, folder, accept_filter, bind, rate, preview, observer } = self;
        node.check_open()?;
        let allowlist = Allowlist::load(&node, accept_filter)?;
        let door = Door {
            access_keys: allowlist.access_keys(),
            admitted: allowlist.admitted(),
            handshake_log: node.core().handshake_log(),
            connections_max: CONNECTIONS_MAX,
            ..Door::default()
        };
        let binding = bind.map_or(Binding::Accepting { port: None }, Binding::Own);
        let paths = node.open_paths(binding, door)?;
        let shared = TaskState::new(&node, EventPublisher::new(observer));
        paths.accept_callers(&shared.publisher, RelayReports::Refusals);
        let bound = paths.endpoint().local_addr();
        let clocks = ClockReports::new(&shared.publisher);
        let presence = Presence::of(&paths, &shared.publisher, &clocks).await?;
        let (give, incoming) = mpsc::channel(1);
        let listener = Listener {
            address: bound,
            usual_taken: paths.usual_taken().filter(|_| bind.is_none()),
            places: presence.places().to_vec(),
            missing: presence.missing().to_vec(),
            contacts: allowlist.len(),
            incoming,
            other: None,
            task: None,
        };
        let runtime = node.core().runtime.clone();
        let publisher = Arc::clone(&shared.publisher);
        let receiving = ReceiverRecord::listener(node.state());
        let other = receiving.other();
        if let Err(error) = receiving.record_accepted(&Target::folder(&folder).to_string()) {
            publisher.publish(Event::Note { path: String::new(), what: error.to_string() });
        }
        let context =
            Arc::new(ListenContext::new(node, folder, rate, preview, accept_filter, publisher));
        let (ask, questions) = mpsc::unbounded_channel();
        let (left, leavers) = mpsc::unbounded_channel();
        let mut role = ListenerRole {
            context,
            paths,
            contacts: presence.contacts(),
            allowlist,
            clocks,
            shared: shared.clone(),
            callers: HashMap::new(),
            waiting: VecDeque::new(),
            ask,
            questions,
            left,
            leavers,
            give,
        };
        // The contacts may have changed since the door was opened.
        role.contacts.mark_changed();
        let stop = shared.token.clone();
        let work = async move {
            let result = role::run(&mut role, &stop).await.and_then(|result| result);
            role.paths.endpoint().start_close();
            // Meanwhile, withdraw the records that contacts use to find this node.
            presence.close().await;
            role.paths.close().await;
            role.context.node().store_dht_nodes();
            receiving.end(None);
            result
        };
        let task = Some(Task::spawn(&runtime, shared, work));
        Ok(Listener { task, other, ..listener })
    }
}

wraith_crypto::redacted_debug!(ListenBuilder, accept_filter);

/// Receives offers until it is dropped.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    usual_taken: Option<Error>,
    places: Vec<PlaceName>,
    missing: Vec<(PlaceName, PlaceError)>,
    contacts: usize,
    incoming: Receiver<Incoming>,
    other: Option<OtherReceiver>,
    task: Option<Task<()>>,
}

impl Listener {
    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns why the listener is not on its usual port. Contacts that have only the address will
    /// not find it.
    pub fn usual_taken(&self) -> Option<&Error> {
        self.usual_taken.as_ref()
    }

    /// Returns another program on this machine that already listened with this identity. A sender
    /// may reach either.
    pub fn other(&self) -> Option<&OtherReceiver> {
        self.other.as_ref()
    }

    /// Returns the meeting places at which contacts can find the listener.
    pub fn places(&self) -> &[PlaceName] {
        &self.places
    }

    /// Returns the configured places at which contacts cannot find it, and why.
    pub fn missing(&self) -> &[(PlaceName, PlaceError)] {
        &self.missing
    }

    /// Returns the number of contacts at the start.
    pub fn contacts(&self) -> usize {
        self.contacts
    }

    /// Returns the next offer, once the transfer before it is over; `None` when the listener has
    /// ended. Cancel-safe.
    pub async fn next(&mut self) -> Option<Incoming> {
        loop {
            let incoming = self.incoming.recv().await?;
            // Skip offers that were withdrawn in the meantime.
            if !incoming.is_withdrawn() {
                return Some(incoming);
            }
        }
    }

    /// Returns a stream of events of the listener. The first stream starts with the first event, as
    /// for a [`Transfer`](crate::Transfer).
    pub fn events(&self) -> Events {
        self.task().events()
    }

    /// Stops the listener, and waits until callers are notified and received data is stored.
    pub async fn close(mut self) {
        if let Some(task) = self.task.take() {
            drop(task.cancel().await);
        }
    }

    /// Requests a stop and returns at once. [`Self::next`] then returns `None` soon.
    pub fn stop(&self) {
        self.task().stop();
    }

    fn task(&self) -> &Task<()> {
        self.task.as_ref().expect("only close() takes it, with the listener")
    }
}

/// An offer whose turn has come, sent by the task of its caller.
struct Question {
    id: u64,
    asked: PendingOffer,
    consent: Consent,
    gone: CancellationToken,
    accepted_before: Option<Conflicts>,
}

/// A listener, as it runs.
struct ListenerRole {
    context: Arc<ListenContext>,
    paths: SocketPaths,
    contacts: watch::Receiver<Contacts>,
    allowlist: Allowlist,
    clocks: ClockReports,
    shared: TaskState,
    callers: HashMap<u64, Task<FetchSummary>>,
    /// Offers whose turn has come. At most one per caller: the offer of a caller that left is
    /// dropped.
    waiting: VecDeque<Incoming>,
    ask: UnboundedSender<Question>,
    questions: UnboundedReceiver<Question>,
    left: UnboundedSender<u64>,
    leavers: UnboundedReceiver<u64>,
    give: Sender<Incoming>,
}

/// What a listener waits for, besides its peers.
enum ListenerEvent {
    Question(Box<Question>),
    /// The user takes the next offer.
    Taken(OwnedPermit<Incoming>),
    Left(u64),
    ContactsChanged,
}

impl Role for ListenerRole {
    type Event = ListenerEvent;
    type Output = Result<(), Error>;

    fn paths(&self) -> &SocketPaths {
        &self.paths
    }

    async fn next_event(&mut self) -> ListenerEvent {
        let Self { questions, leavers, contacts, waiting, give, .. } = self;
        loop {
            return tokio::select! {
                Some(question) = questions.recv() => ListenerEvent::Question(Box::new(question)),
                // The user of the listener may be gone. Dropping the offers then postpones them.
                permit = give.clone().reserve_owned(), if !waiting.is_empty() => match permit {
                    Ok(permit) => ListenerEvent::Taken(permit),
                    Err(_) => {
                        waiting.clear();
                        continue;
                    }
                },
                Some(id) = leavers.recv() => ListenerEvent::Left(id),
                Ok(()) = contacts.changed() => ListenerEvent::ContactsChanged,
            };
        }
    }

    async fn on_event(&mut self, event: ListenerEvent) -> ControlFlow<Self::Output> {
        match event {
            ListenerEvent::Question(question) => {
                if let Some(task) = self.callers.remove(&question.id) {
                    let Question { asked, consent, gone, accepted_before, .. } = *question;
                    let incoming = Incoming::new(asked, consent, Some(Transfer(task)), gone)
                        .accepted(accepted_before);
                    self.waiting.push_back(incoming);
                }
            }
            ListenerEvent::Taken(permit) => {
                if let Some(incoming) = self.waiting.pop_front() {
                    permit.send(incoming);
                }
            }
            ListenerEvent::Left(id) => {
                drop(self.callers.remove(&id));
                self.waiting.retain(|incoming| !incoming.is_withdrawn());
            }
            ListenerEvent::ContactsChanged => self.contacts_changed(),
        }
        ControlFlow::Continue(())
    }

    fn on_connection(&mut self, connection: Connection) {
        if let Some((id, task)) = self.admit(connection) {
            self.callers.insert(id, task);
        }
    }

    fn on_clock_difference(&mut self, refused: ClockDifference) {
        self.clocks.report(self.allowlist.holder_of(&refused.access_key), refused.seconds);
    }

    fn on_addresses_changed(&mut self) {}

    async fn on_stop(&mut self) -> Self::Output {
        self.context.callers().stop_all();
        let gone = self.context.callers().wait_until_gone();
        // After this time, the transfers end without supervision.
        drop(tokio::time::timeout(LAST_WAIT, gone).await);
        Err(Error::cancelled(Side::Receiver))
    }
}

impl ListenerRole {
    /// Admits a caller and starts its task.
    fn admit(&self, connection: Connection) -> Option<(u64, Task<FetchSummary>)> {
        let is_contact = self.context.is_contact(connection.peer());
        if !self.context.admits(is_contact) {
            // The peer was a contact when its handshake began.
            connection.close(close::OTHER, "");
            return None;
        }
        let AdmittedCaller { id, gone } = self.context.callers().admit(&connection, is_contact)?;
        let mut shared = TaskState::new(self.context.node(), EventPublisher::default());
        // Eviction and the end of the listener both end the transfer.
        shared.token = gone.clone();
        let context = Arc::clone(&self.context);
        let (shared_too, is_unread) = (shared.clone(), AtomicBool::new(false));
        self.paths.manage_path(&connection, PathRole::Responder, &shared.publisher, None);
        let caller = Caller { context, id, connection, shared: shared_too, gone, is_unread };
        let (ask, left) = (self.ask.clone(), self.left.clone());
        let work = async move {
            let result = caller.run(ask).await;
            // The listener may have ended.
            let _ = left.send(id);
            result
        };
        Some((id, Task::spawn(&self.context.node().core().runtime, shared, work)))
    }

    fn contacts_changed(&mut self) {
        let contacts = Contacts::clone(&self.contacts.borrow_and_update());
        if !self.allowlist.set(&contacts) {
            return;
        }
        let endpoint = self.paths.endpoint();
        endpoint.set_access_keys(self.allowlist.access_keys());
        endpoint.admit_only(self.allowlist.admitted());
        let context = &self.context;
        context.callers().close_unless(|peer| context.admits(context.is_contact(peer)));
        self.shared.publisher.publish(Event::ContactsChanged(self.allowlist.len()));
    }
}
