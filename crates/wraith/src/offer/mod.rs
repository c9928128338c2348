//! Sending: [`Node::offer`](crate::Node::offer) by code, by ticket, or to a contact.

mod call;
mod handle;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wraith_discovery::contact::{Pair, usual_port};
use wraith_discovery::record::{TicketRecord, publish_ticket};
use wraith_discovery::{
    Code, CodeAnnouncement, CodeOptions, MakeTicket, Reach, Ticket, TicketSide, announce,
    announce_long,
};
use wraith_transport::{DoorKey, Endpoint};
use zeroize::Zeroizing;

use self::call::{Sending, call};
use self::handle::Shown;
use crate::code_end::{CODE_LIFE, no_code, no_place, try_once};
use crate::engine::dial::Dialler;
use crate::engine::door_keys::DoorKeys;
use crate::engine::rediscovery::Rediscovery;
use crate::engine::serving::{LongCode, Serving};
use crate::engine::task::{Shared, Task};
use crate::error::{Cause, Error, ErrorKind};
use crate::event::{Event, FoundAt, Observer};
use crate::hub::Hub;
use crate::node::{ANY_ADDRESS, Node, Socket, reachable_places};
use crate::payload::Payload;
use crate::settings::{Patience, RECONNECT, SendSettings};
use crate::state::{ALLOWED_MAX, Contact, Recipient, StateError, StateErrorKind, UnfinishedSend};
use crate::ways::{RelayNews, Ways};

pub use self::handle::Offer;

/// How long a code for any number of receivers is good.
const ENDLESS_CODE_LIFE: Duration = Duration::from_secs(24 * 3600);

/// To whom an offer goes.
#[derive(Clone, Debug)]
enum To {
    /// Whoever has a code that is made for it.
    Code,
    /// Whoever has the ticket.
    Ticket,
    /// The receiver that made this code.
    Invitation(Code),
    /// A contact that listens.
    Contact(Box<Contact>),
}

impl To {
    fn recipient(&self, node: &Node, settings: &SendSettings) -> Recipient {
        match self {
            Self::Code => {
                Recipient::Code { max: settings.receivers.map_or(ALLOWED_MAX, |n| n as usize) }
            }
            Self::Ticket => Recipient::Bearer,
            Self::Invitation(code) => Recipient::Invitation(node.spent_codes().tag(code)),
            Self::Contact(contact) => Recipient::Contact(contact.node_id),
        }
    }
}

/// An offer that is being prepared.
#[must_use = "nothing is offered before start()"]
pub struct OfferBuilder {
    node: Node,
    payload: Payload,
    to: To,
    settings: SendSettings,
    life: Option<Duration>,
    bind: Option<SocketAddr>,
    anew: bool,
    observer: Option<Arc<dyn Observer>>,
}

impl OfferBuilder {
    pub(crate) fn new(node: Node, payload: Payload) -> Self {
        let patience = Patience { first: None, reconnect: RECONNECT };
        let settings = SendSettings {
            rate: None,
            connections: None,
            delta: true,
            sync: true,
            receipt: None,
            receivers: Some(1),
            patience,
        };
        let (life, bind, observer) = (None, None, None);
        Self { node, payload, to: To::Code, settings, life, bind, anew: false, observer }
    }

    /// Makes a code for it, which people can say. This is the default.
    pub fn by_code(mut self) -> Self {
        self.to = To::Code;
        self
    }

    /// Makes no code: who has the ticket gets it.
    pub fn by_ticket(mut self) -> Self {
        self.to = To::Ticket;
        self
    }

    /// Brings it to the receiver that made this code ([`Node::invite`]).
    pub fn to_invitation(mut self, code: Code) -> Self {
        self.to = To::Invitation(code);
        self
    }

    /// Brings it to a contact, who listens ([`Node::listen`]).
    pub fn to_contact(mut self, contact: Contact) -> Self {
        self.to = To::Contact(Box::new(contact));
        self
    }

    /// Sends it to so many receivers, at once if they come at once.
    pub fn receivers(mut self, receivers: u32) -> Self {
        self.settings.receivers = Some(receivers.max(1));
        self
    }

    /// Sends it to whoever comes, until it is stopped.
    pub fn any_number(mut self) -> Self {
        self.settings.receivers = None;
        self
    }

    /// How long the code is good: an hour, or a day for any number of receivers, unless this says something else.
    pub fn expires(mut self, life: Duration) -> Self {
        self.life = Some(life);
        self
    }

    /// Sends no more than this many bytes a second, to all receivers together.
    pub fn rate(mut self, bytes_per_second: u64) -> Self {
        self.settings.rate = Some(bytes_per_second);
        self
    }

    /// Carries a transfer over this many connections at once (1 to 4), if the receiver allows them too. Without it there is one
    /// for every two cores, and only on a path that is faster than one connection.
    pub fn connections(mut self, connections: u8) -> Self {
        self.settings.connections = Some(connections);
        self
    }

    /// Whether, of a file of which the receiver has an older copy, only what differs is sent. It is, by default.
    pub fn delta(mut self, delta: bool) -> Self {
        self.settings.delta = delta;
        self
    }

    /// Whether a receiver confirms only when everything is on its stable storage, as its receipt then says
    /// ([`crate::Durability`]). It does, by default, unless it was told not to.
    pub fn sync(mut self, sync: bool) -> Self {
        self.settings.sync = sync;
        self
    }

    /// Keeps the receiver's receipt, with everything it is about, in the file `place`, or in a file of the folder `place`: for several
    /// receivers it is one. It can be checked anywhere ([`crate::state::open_receipt`]); [`Event::ReceiptKept`] says where it is.
    pub fn receipt(mut self, place: PathBuf) -> Self {
        self.settings.receipt = Some(place);
        self
    }

    /// How long a receiver is waited for (for as long as it takes, unless this says something else), or a contact or the maker of a
    /// code looked for (10 s; 30 s on the DHT).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.patience.first = Some(timeout);
        self
    }

    /// How long a receiver that was lost is waited for: 10 min, unless this says something else. Zero: not at all.
    pub fn reconnect(mut self, reconnect: Duration) -> Self {
        self.settings.patience.reconnect = reconnect;
        self
    }

    /// Listens on this address. By default on every address of this machine, and a port of its own choosing.
    pub fn bind_to(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self
    }

    /// Goes on with nothing of an earlier run: every ticket that one gave, shown or by code, is worth nothing from now on.
    pub fn anew(mut self) -> Self {
        self.anew = true;
        self
    }

    /// Tells everything that happens to `observer` too.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Makes the code or ticket and waits for the receiver; or goes to the receiver that is known. Returns as soon as there is
    /// something to show: nothing of what is offered has been read by then.
    ///
    /// # Errors
    /// A path is not there, the address cannot be listened on, the contact cannot be known, or the maker of the code was not met.
    pub async fn start(self) -> Result<Offer, Error> {
        let payload = self.payload.clone().checked()?;
        match self.to.clone() {
            To::Contact(contact) => self.call(payload, *contact),
            _ => self.serve(payload).await,
        }
    }

    /// Waits for whoever has the code or ticket.
    async fn serve(self, payload: Payload) -> Result<Offer, Error> {
        let Self { node, to, settings, life, bind, anew, observer, .. } = self;
        let shared = Shared::new(Hub::new(observer));
        let prepare =
            |recipient: &Recipient| Prepared::new(&node, &payload, recipient, bind, anew, &shared);
        let mut prepared = prepare(&to.recipient(&node, &settings))?;
        let (mut code, mut no_code) = (None, None);
        let mut long_code = LongCode::default();
        if !prepared.ways.allows_direct() {
            // Without a mailbox at a relay a ticket leads nowhere, and who hears a code may be quick.
            prepared.ways.settled().await;
        }
        match &to {
            To::Invitation(code) => {
                if let Err(error) = give_ticket(&node, code, &prepared, &settings, &shared).await {
                    // Who may have the ticket all the same finds this sender when it is begun again.
                    prepared.unfinished.settle(|_| true);
                    return Err(error);
                }
            }
            To::Code => {
                let made = make_code(&node, &prepared, &settings, life, &shared).await?;
                long_code = make_long_code(&node, &prepared, &settings, life, &shared);
                if made.places().is_empty() && long_code.is_coming() {
                    long_code = long_code.made().await;
                }
                match made.places().is_empty() && long_code.is_none() {
                    true => {
                        no_code = Some(no_place(&made));
                        // What a code would have brought is good for nobody without one, but for those who had one before.
                        if prepared.unfinished.allowed().is_some_and(|allowed| allowed.is_empty()) {
                            prepared.withdraw().await;
                            prepared = prepare(&Recipient::Bearer)?;
                        }
                    }
                    false => code = Some(made).filter(|made| !made.places().is_empty()),
                }
            }
            _ => {}
        }
        let is_shown = prepared.unfinished.allowed().is_none();
        if is_shown {
            prepared.settle().await;
        }
        let Prepared { unfinished, endpoint, ways, ticket } = prepared;
        let (bound, capability) = (endpoint.local_addr(), unfinished.capability().clone());
        let made = code.as_ref().or(long_code.here());
        let shown = Shown {
            addresses: ticket.addresses().to_vec(),
            code: made.map(|code| code.code().clone()),
            places: made.map(|code| code.places().to_vec()).unwrap_or_default(),
            missing: made.map(|code| code.missing().to_vec()).unwrap_or_default(),
            no_code,
            ticket: is_shown.then_some(ticket),
            continues_for: match &to {
                To::Code => unfinished.allowed().unwrap_or_default(),
                _ => Vec::new(),
            },
        };
        let places = reachable_places(node.places(), bound);
        let own = node.identity().clone();
        let mut rediscovery = Rediscovery::new(own, capability, places.clone(), ways.clone());
        let parallel = node.parallel_to_send(settings.connections, bound.ip());
        let runtime = node.runtime().clone();
        let theirs = shared.clone();
        let stores = Some(places.stores.clone()).filter(|stores| is_shown && !stores.is_empty());
        let remembering = node.clone();
        let work = async move {
            let record = stores.map(|stores| {
                publish_ticket(&stores, node.id(), unfinished.capability(), ways.make_reach())
            });
            for receiver in unfinished.receivers().into_iter().rev() {
                if unfinished.admits(receiver) {
                    rediscovery.lost(receiver).await;
                }
            }
            let (serving, news) = Serving::new(
                node,
                payload,
                settings,
                unfinished,
                rediscovery,
                ways.clone(),
                parallel,
                code,
                long_code,
                theirs,
            );
            let sent = match record {
                Some(record) => kept_up(record, &ways, serving.run(news)).await,
                None => {
                    let sent = serving.run(news).await;
                    ways.close().await;
                    sent
                }
            };
            remembering.remember_dht();
            sent
        };
        Ok(Offer { shown: Some(shown), task: Task::spawn(&runtime, shared, work) })
    }

    /// Goes to a contact.
    fn call(self, payload: Payload, contact: Contact) -> Result<Offer, Error> {
        let Self { node, mut settings, bind, anew, observer, .. } = self;
        let pair = Pair::new(node.identity(), contact.node_id).map_err(|error| {
            Error::new(ErrorKind::InvalidInput, format!("{}: {error}", contact.name))
        })?;
        let shared = Shared::new(Hub::new(observer));
        let recipient = Recipient::Contact(contact.node_id);
        let unfinished = unfinished_send(&node, &payload, &recipient, anew, &shared)?;
        let address = bind.unwrap_or(ANY_ADDRESS);
        let ways = Ways::to_dial(&node, node.bind_dialling_at(address)?);
        let port = ways.endpoint().local_addr().port();
        // So that the same offer continues after a crash. Nobody dials this port.
        remember(&unfinished, port, &shared);
        let mut places = node.places().clone();
        places.rendezvous = places.rendezvous.or_else(|| contact.rendezvous.clone());
        settings.patience.first = Some(settings.patience.to_find(!places.stores.is_empty()));
        let port = usual_port(contact.node_id);
        let dialler = Dialler {
            ways,
            peer: contact.node_id,
            doors: DoorKeys::of_contact(&pair),
            addresses: contact.seen_at.clone(),
            relays: Vec::new(),
            left: None,
            capability: None,
            names: contact.addresses.iter().map(|name| (name.clone(), port)).collect(),
            pair: Some(pair),
            places,
            search_after: Duration::ZERO,
        };
        let sending = Sending {
            name: contact.name.to_string(),
            payload,
            own: node.id(),
            secret: unfinished.capability().clone(),
            sent_roots: unfinished.sent_roots(),
            parallel: node.parallel_to_send(settings.connections, address.ip()),
            settings,
            shared: shared.clone(),
        };
        let runtime = node.runtime().clone();
        let work = call(node, dialler, sending, unfinished, shared.clone());
        Ok(Offer { shown: None, task: Task::spawn(&runtime, shared, work) })
    }
}

impl std::fmt::Debug for OfferBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OfferBuilder").field("payload", &self.payload).finish_non_exhaustive()
    }
}

/// What is remembered of sending this to the recipient; nothing is of a stream, which cannot be sent twice, nor where the disk
/// takes nothing: that is worth a word and no more.
fn unfinished_send(
    node: &Node,
    payload: &Payload,
    recipient: &Recipient,
    anew: bool,
    shared: &Shared,
) -> Result<UnfinishedSend, Error> {
    let opened = match payload.is_stream() {
        true => UnfinishedSend::unremembered(recipient),
        false => UnfinishedSend::open(node.state(), &payload.paths, recipient),
    };
    let is_left = || {
        let paths = &payload.paths;
        !payload.is_stream() && UnfinishedSend::may_be_remembered(node.state(), paths, recipient)
    };
    let mut unfinished = match opened {
        Err(error) if error.kind() == StateErrorKind::Disk && !(anew && is_left()) => {
            tell_unremembered(&error, !is_left(), shared);
            UnfinishedSend::unremembered(recipient)?
        }
        opened => opened?,
    };
    if anew {
        unfinished.renew()?;
    }
    Ok(unfinished)
}

/// Remembers the send with this port, if the disk takes it.
fn remember(unfinished: &UnfinishedSend, port: u16, shared: &Shared) {
    if let Err(error) = unfinished.remember(port) {
        let is_gone = unfinished.forget();
        tell_unremembered(&error, is_gone, shared);
    }
}

fn tell_unremembered(error: &StateError, is_gone: bool, shared: &Shared) {
    let next = match is_gone {
        true => "and the next one has another ticket",
        false => "and the next one may have the ticket of an earlier one",
    };
    let why = format!("{error}; this run is not remembered, {next}");
    shared.hub.tell(Event::Unremembered(why));
}

/// The port of last time, if this offer was interrupted, so that its ticket stays good.
fn bind_again(
    node: &Node,
    wanted: Option<SocketAddr>,
    unfinished: &UnfinishedSend,
) -> Result<Socket, Error> {
    let door = DoorKey::of_ticket(unfinished.capability().as_bytes(), node.id());
    let address = wanted.unwrap_or(ANY_ADDRESS);
    if let (0, Some(port)) = (address.port(), unfinished.port())
        && let Ok(socket) =
            node.bind_accepting(SocketAddr::new(address.ip(), port), vec![door.clone()])
    {
        return Ok(socket);
    }
    // Nothing is remembered, or somebody else has the port now; then the ticket is another.
    node.bind_accepting(address, vec![door])
}

/// What a receiver comes with, and where it is waited for.
struct Prepared {
    unfinished: Arc<UnfinishedSend>,
    endpoint: Endpoint,
    ways: Ways,
    ticket: Ticket,
}

impl Prepared {
    fn new(
        node: &Node,
        payload: &Payload,
        recipient: &Recipient,
        bind: Option<SocketAddr>,
        anew: bool,
        shared: &Shared,
    ) -> Result<Self, Error> {
        let unfinished = unfinished_send(node, payload, recipient, anew, shared)?;
        let socket = bind_again(node, bind, &unfinished)?;
        let news = match recipient {
            Recipient::Bearer => RelayNews::All,
            _ => RelayNews::Refusals,
        };
        let ways = Ways::to_accept(node, socket, &shared.hub, news);
        let endpoint = ways.endpoint().clone();
        let bound = endpoint.local_addr();
        let addresses = ways.addresses(None);
        if addresses.is_empty() && ways.allows_direct() {
            let message = "this machine has no address at which anybody could reach it";
            return Err(Error::because(ErrorKind::NotFound, message, Cause::NoAddress));
        }
        remember(&unfinished, bound.port(), shared);
        let ticket = Ticket::new(node.id(), unfinished.capability().clone(), addresses);
        Ok(Self { unfinished: Arc::new(unfinished), endpoint, ways, ticket })
    }

    /// Nobody can come with it.
    async fn withdraw(self) {
        self.unfinished.settle(|_| false);
        self.endpoint.start_close();
        self.endpoint.closed().await;
        self.ways.close().await;
    }

    /// Takes the ways that open within a moment into the ticket, which is about to be shown.
    async fn settle(&mut self) {
        self.ways.settled().await;
        self.ticket = ticket_of(&self.ticket, &self.ways, None);
    }

    /// Gives the ticket to whoever proves the words of a code, and makes it good for them before they have it.
    ///
    /// `tells_seen`: whether the address at which a place sees us goes into the ticket.
    fn give(&self, shared: &Shared, tells_seen: bool) -> MakeTicket {
        let (ticket, unfinished) = (self.ticket.clone(), Arc::clone(&self.unfinished));
        let ways = self.ways.clone();
        let hub = Arc::clone(&shared.hub);
        Box::new(move |receiver, seen| {
            if let Err(error) = unfinished.admit(receiver) {
                // It holds for this run.
                hub.tell(Event::Note { path: String::new(), what: error.to_string() });
            }
            Zeroizing::new(ticket_of(&ticket, &ways, seen.filter(|_| tells_seen)).encode())
        })
    }
}

/// The ticket of the same offer with the addresses of now.
fn ticket_of(ticket: &Ticket, ways: &Ways, seen: Option<IpAddr>) -> Ticket {
    let Reach { addresses, relays } = ways.reach(seen);
    Ticket::new(ticket.node_id(), ticket.capability().clone(), addresses).with_relays(relays)
}

async fn make_code(
    node: &Node,
    prepared: &Prepared,
    settings: &SendSettings,
    life: Option<Duration>,
    shared: &Shared,
) -> Result<CodeAnnouncement, Error> {
    let bound = prepared.endpoint.local_addr();
    let options = code_options(settings, life);
    let everywhere = bound.ip().is_unspecified();
    let make = prepared.give(shared, everywhere);
    let places = reachable_places(node.places(), bound);
    announce(&places, options, node.id(), make).await.map_err(no_code)
}

/// Begins to make a long code, which works between any two networks: where no server is named at which a short one would.
fn make_long_code(
    node: &Node,
    prepared: &Prepared,
    settings: &SendSettings,
    life: Option<Duration>,
    shared: &Shared,
) -> LongCode {
    let places = reachable_places(node.places(), prepared.endpoint.local_addr());
    if places.stores.is_empty() || places.rendezvous.is_some() {
        return LongCode::default();
    }
    let options = code_options(settings, life);
    let (make, ways) = (prepared.give(shared, true), prepared.ways.clone());
    let own = node.id();
    LongCode::Coming(node.runtime().spawn(async move {
        let reach = ways.make_reach();
        // Where we are seen is part of what is left there.
        let (made, ()) =
            tokio::join!(announce_long(&places, options, own, make, reach), ways.see());
        ways.keep_seen();
        made
    }))
}

fn code_options(settings: &SendSettings, life: Option<Duration>) -> CodeOptions {
    let usual = if settings.receivers.is_some() { CODE_LIFE } else { ENDLESS_CODE_LIFE };
    // Who refuses or dies may come again, and takes no second one.
    let uses = settings.receivers.unwrap_or(u32::MAX);
    CodeOptions::new(TicketSide::Creator, life.unwrap_or(usual)).uses(uses)
}

/// Serves, and keeps a record of where we are up to date meanwhile. In the end everything that leads here is withdrawn.
async fn kept_up<T>(record: TicketRecord, ways: &Ways, serving: impl Future<Output = T>) -> T {
    let mut changes = ways.changes();
    let updating = async {
        ways.keep_seen();
        while changes.changed().await.is_ok() {
            record.update();
        }
        std::future::pending::<()>().await;
    };
    let result = tokio::select! {
        result = serving => result,
        () = updating => unreachable!("it waits for ever"),
    };
    tokio::join!(record.withdraw(), ways.close());
    result
}

/// Brings the ticket to the receiver that made the code.
async fn give_ticket(
    node: &Node,
    code: &Code,
    prepared: &Prepared,
    settings: &SendSettings,
    shared: &Shared,
) -> Result<(), Error> {
    let is_tried = node.spent_codes().tried(code).is_some();
    if is_tried && prepared.unfinished.allowed().is_some_and(|allowed| !allowed.is_empty()) {
        // The code brought the ticket to its maker, who needs no second one.
        shared.hub.tell(Event::Resumed);
        return Ok(());
    }
    let make = prepared.give(shared, true);
    let ways = &prepared.ways;
    let met = try_once(node, code, Some(make), settings.patience, &shared.hub, ways).await?;
    if let Some(call) = met.left {
        ways.let_in(call.punch_secret, call.reach.addresses);
    }
    shared.hub.tell(Event::Met(FoundAt::Place(met.place.clone())));
    if let Some(peer) = met.creator {
        shared.hub.tell(Event::CodeUsed { place: met.place.clone(), peer });
    }
    Ok(())
}
