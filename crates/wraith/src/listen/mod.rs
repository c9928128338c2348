//! Taking offers without a code: from contacts, or from everybody who knows the NodeId. One transfer after the other.
//!
//! ```text
//!  accept ──▶ a task for each caller: hello, which transfer ──▶ its turn ──▶ Incoming ──▶ fetch
//!  contacts on the disk ──▶ who gets a handshake, who is answered at meeting places ([`allowlist`])
//! ```
//!
//! Invariants: who is not admitted gets no packet after the handshake's second, whatever they know; callers and their waiting
//! offers are bounded; one transfer moves at a time; and no stranger keeps the turn for long while somebody waits.

mod allowlist;
mod caller;
mod callers;
mod contacts_watch;
mod question_limit;
mod turn_limit;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tokio::sync::mpsc::{self, Receiver, Sender, UnboundedSender};
use wraith_discovery::contact::{ContactEvent, ContactListener, listen, usual_port};
use wraith_discovery::{Place, PlaceError};
use wraith_transfer::{Conflicts, Role, close};
use wraith_transport::{Connection, Endpoint, Role as PathRole};

use crate::engine::consent::{Asked, Consent};
use crate::engine::task::{Shared, Task};
use crate::error::{Error, ErrorKind};
use crate::event::{Event, Observer};
use crate::fetch::{Incoming, Target, Transfer};
use crate::hub::{Events, Hub};
use crate::node::{ANY_ADDRESS, Node, Socket, reachable_places};
use crate::report::Received;
use crate::state::{OtherReceiver, Receiving};
use crate::ways::{RelayNews, Ways};
use allowlist::Allowlist;
use caller::{Caller, ListenContext};
use callers::Admitted;
use contacts_watch::ContactsWatch;
use tokio_util::sync::CancellationToken;

/// How long the end waits for transfers to put away what they have.
const LAST_WAIT: Duration = Duration::from_secs(3);

/// Who may come.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Admit {
    /// Contacts; to everybody else this machine is silent.
    #[default]
    Contacts,
    /// Everybody who knows the NodeId, after somebody was asked: strangers put three questions at once from one address, and ten in all,
    /// then one and three more a minute. What is beyond that is refused unread and counted ([`Event::RefusedUnread`]).
    AfterAsking,
    /// Everybody who knows the NodeId.
    Everybody,
}

/// A listener that is being prepared.
#[must_use = "nobody is answered before start()"]
pub struct ListenBuilder {
    node: Node,
    folder: PathBuf,
    admit: Admit,
    bind: Option<SocketAddr>,
    rate: Option<u64>,
    preview: bool,
    observer: Option<Arc<dyn Observer>>,
}

impl ListenBuilder {
    pub(crate) fn new(node: Node, folder: PathBuf) -> Self {
        let (admit, bind, rate, observer) = (Admit::default(), None, None, None);
        Self { node, folder, admit, bind, rate, preview: true, observer }
    }

    /// Who may come: contacts, unless this says something else.
    pub fn admit(mut self, admit: Admit) -> Self {
        self.admit = admit;
        self
    }

    /// Listens on this address. By default on every address of this machine, and the port that follows from the NodeId, where
    /// contacts look; on another one if somebody has it.
    pub fn bind_to(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self
    }

    /// Asks each sender for no more than this many bytes a second.
    pub fn rate(mut self, bytes_per_second: u64) -> Self {
        self.rate = Some(bytes_per_second);
        self
    }

    /// Whether the names are looked at before an offer is decided. They are, by default.
    pub fn preview(mut self, preview: bool) -> Self {
        self.preview = preview;
        self
    }

    /// Tells what happens to the listener to `observer` too. Of a transfer, only its own observer is told.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Begins to answer.
    ///
    /// # Errors
    /// The contacts cannot be read (then nobody can be told from a stranger), or the address cannot be listened on.
    pub async fn start(self) -> Result<Listener, Error> {
        let Self { node, folder, admit, bind, rate, preview, observer } = self;
        let watch = {
            let _entered = node.runtime().enter();
            // Before the contacts are read, so that no change falls in between.
            ContactsWatch::new(node.state())
        };
        let allowlist = Allowlist::load(&node, admit)?;
        let (socket, usual_taken) = bind_usual(&node, bind, &allowlist)?;
        let shared = Shared::new(Hub::new(observer));
        let ways = Ways::to_accept(&node, socket, &shared.hub, RelayNews::Refusals);
        let (endpoint, bound) = (ways.endpoint().clone(), ways.endpoint().local_addr());
        let places = reachable_places(node.places(), bound);
        let contacts = listen(&places, ways.make_reach()).await;
        contacts.set_contacts(allowlist.pairs());
        let (give, incoming) = mpsc::channel(1);
        let listener = Listener {
            address: bound,
            usual_taken,
            places: contacts.places().to_vec(),
            missing: contacts.missing().to_vec(),
            contacts: allowlist.len(),
            incoming,
            other: None,
            task: None,
        };
        let runtime = node.runtime().clone();
        let hub = Arc::clone(&shared.hub);
        let receiving = Receiving::listener(node.state());
        let other = receiving.other();
        if let Err(error) = receiving.begin(&Target::folder(&folder).to_string()) {
            hub.tell(Event::Note { path: String::new(), what: error.to_string() });
        }
        let context = Arc::new(ListenContext::new(node, folder, rate, preview, admit, hub));
        let work = Work {
            context,
            endpoint,
            ways: ways.clone(),
            contacts,
            allowlist,
            watch,
            shared: shared.clone(),
            give,
        };
        let work = async move {
            let result = work.run().await;
            ways.close().await;
            receiving.end(None);
            result
        };
        let task = Some(Task::spawn(&runtime, shared, work));
        Ok(Listener { task, other, ..listener })
    }
}

impl std::fmt::Debug for ListenBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ListenBuilder").field("admit", &self.admit).finish_non_exhaustive()
    }
}

/// The usual port, so that contacts find it where they found it before; another one if it is taken, and why.
fn bind_usual(
    node: &Node,
    wanted: Option<SocketAddr>,
    allowlist: &Allowlist,
) -> Result<(Socket, Option<Error>), Error> {
    if let Some(address) = wanted {
        return Ok((node.bind_listening(address, allowlist.doors(), allowlist.admitted())?, None));
    }
    let usual = SocketAddr::new(ANY_ADDRESS.ip(), usual_port(node.id()));
    match node.bind_listening(usual, allowlist.doors(), allowlist.admitted()) {
        Ok(endpoint) => Ok((endpoint, None)),
        Err(error) => Ok((
            node.bind_listening(ANY_ADDRESS, allowlist.doors(), allowlist.admitted())?,
            Some(error),
        )),
    }
}

/// Takes offers until it is dropped.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    usual_taken: Option<Error>,
    places: Vec<Place>,
    missing: Vec<(Place, PlaceError)>,
    contacts: usize,
    incoming: Receiver<Incoming>,
    other: Option<OtherReceiver>,
    task: Option<Task<()>>,
}

impl Listener {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Why it is not on its usual port: contacts that know only the address will not find it.
    pub fn usual_taken(&self) -> Option<&Error> {
        self.usual_taken.as_ref()
    }

    /// Another program of this machine that listened with this identity when it began: a sender finds either.
    pub fn other(&self) -> Option<&OtherReceiver> {
        self.other.as_ref()
    }

    /// Where contacts can find it.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Where they cannot, although they were to, and why.
    pub fn missing(&self) -> &[(Place, PlaceError)] {
        &self.missing
    }

    /// How many contacts there were when it began.
    pub fn contacts(&self) -> usize {
        self.contacts
    }

    /// The next offer, once the transfer before it is over; `None` when the listener has ended. Cancel-safe.
    pub async fn next(&mut self) -> Option<Incoming> {
        loop {
            let incoming = self.incoming.recv().await?;
            // Whoever has gone meanwhile is no question any more.
            if !incoming.is_gone() {
                return Some(incoming);
            }
        }
    }

    /// What happens to the listener: the first stream tells it from the beginning, as that of a [`Transfer`](crate::Transfer).
    pub fn events(&self) -> Events {
        self.task().events()
    }

    /// Stops, and waits until callers were told and what has arrived is put away.
    pub async fn close(mut self) {
        if let Some(task) = self.task.take() {
            drop(task.cancel().await);
        }
    }

    /// Asks it to stop and does not wait; [`Self::next`] then comes to its end.
    pub fn stop(&self) {
        self.task().stop();
    }

    fn task(&self) -> &Task<()> {
        self.task.as_ref().expect("only close() takes it, with the listener")
    }
}

/// An offer whose turn it is, from the task of its caller.
struct Question {
    id: u64,
    asked: Asked,
    consent: Consent,
    gone: CancellationToken,
    accepted_before: Option<Conflicts>,
}

/// The listener's task.
struct Work {
    context: Arc<ListenContext>,
    endpoint: Endpoint,
    ways: Ways,
    contacts: ContactListener,
    allowlist: Allowlist,
    watch: ContactsWatch,
    shared: Shared,
    give: Sender<Incoming>,
}

impl Work {
    async fn run(mut self) -> Result<(), Error> {
        let (ask, mut questions) = mpsc::unbounded_channel::<Question>();
        let mut callers: HashMap<u64, Task<Received>> = HashMap::new();
        // At most one for each caller: who has gone is dropped.
        let mut waiting: VecDeque<Incoming> = VecDeque::new();
        let (left, mut leavers) = mpsc::unbounded_channel::<u64>();
        let (token, give) = (self.shared.token.clone(), self.give.clone());
        let mut changes = self.ways.changes();
        self.ways.keep_seen();
        loop {
            tokio::select! {
                Ok(()) = changes.changed() => self.contacts.addresses_changed(),
                connection = self.endpoint.accept() => {
                    let Some(connection) = connection else {
                        return Err(Error::new(ErrorKind::Other, "the socket is gone"));
                    };
                    if let Some((id, task)) = self.admit(connection, &ask, &left) {
                        callers.insert(id, task);
                    }
                }
                Some(question) = questions.recv() => {
                    let Some(task) = callers.remove(&question.id) else { continue };
                    let Question { asked, consent, gone, accepted_before, .. } = question;
                    let incoming = Incoming::new(asked, consent, Some(Transfer(task)), gone)
                        .accepted(accepted_before);
                    waiting.push_back(incoming);
                }
                // Whoever listened may have gone: dropping the offers puts them off.
                permit = give.reserve(), if !waiting.is_empty() => {
                    if let (Ok(permit), Some(incoming)) = (permit, waiting.pop_front()) {
                        permit.send(incoming);
                    }
                }
                Some(id) = leavers.recv() => {
                    drop(callers.remove(&id));
                    waiting.retain(|incoming| !incoming.is_gone());
                }
                Some(event) = self.contacts.next_event() => self.contact_event(event),
                () = self.watch.changed() => self.keep_up(),
                () = token.cancelled() => break,
            }
        }
        self.context.callers().stop_all();
        let gone = self.context.callers().wait_until_gone();
        // Beyond that they wind up on their own.
        drop(tokio::time::timeout(LAST_WAIT, gone).await);
        self.endpoint.start_close();
        // What was left for contacts to find is withdrawn meanwhile.
        tokio::join!(self.endpoint.closed(), self.contacts.close());
        self.context.node().remember_dht();
        Err(Error::cancelled(Role::Receiver))
    }

    /// Takes a caller in, with a task of its own.
    fn admit(
        &self,
        connection: Connection,
        ask: &UnboundedSender<Question>,
        left: &UnboundedSender<u64>,
    ) -> Option<(u64, Task<Received>)> {
        let is_contact = self.context.is_contact(connection.peer());
        if !self.context.admits(is_contact) {
            // It was a contact when its handshake began.
            connection.close(close::OTHER, "");
            return None;
        }
        let Admitted { id, gone } = self.context.callers().admit(&connection, is_contact)?;
        let mut shared = Shared::new(Hub::default());
        // Who is sent away, and the end of the listener, end the transfer.
        shared.token = gone.clone();
        let context = Arc::clone(&self.context);
        let (shared_too, is_unread) = (shared.clone(), AtomicBool::new(false));
        self.ways.attend(&connection, PathRole::Responder, &shared.hub, None);
        let caller = Caller { context, id, connection, shared: shared_too, gone, is_unread };
        let (ask, left) = (ask.clone(), left.clone());
        let work = async move {
            let result = caller.run(ask).await;
            // The listener may have ended.
            let _ = left.send(id);
            result
        };
        Some((id, Task::spawn(self.context.node().runtime(), shared, work)))
    }

    fn contact_event(&self, event: ContactEvent) {
        match event {
            ContactEvent::LeftCall(_, call) => {
                self.ways.let_in(call.punch_secret, call.reach.addresses);
            }
            ContactEvent::Lost(place, why) => {
                self.shared.hub.tell(Event::PlaceLost { place, why });
            }
            ContactEvent::Back(place) => self.shared.hub.tell(Event::PlaceBack(place)),
            _ => {}
        }
    }

    /// The contacts may have changed.
    fn keep_up(&mut self) {
        match self.allowlist.reload(self.context.node()) {
            Ok(true) => {
                self.endpoint.set_doors(self.allowlist.doors());
                self.endpoint.admit_only(self.allowlist.admitted());
                self.contacts.set_contacts(self.allowlist.pairs());
                let context = &self.context;
                context.callers().close_unless(|peer| context.admits(context.is_contact(peer)));
                self.shared.hub.tell(Event::ContactsChanged(self.allowlist.len()));
            }
            Ok(false) => {}
            Err(error) => {
                let what = format!("{error}; the contacts of before still count");
                self.shared.hub.tell(Event::Note { path: String::new(), what });
            }
        }
    }
}
