//! Connects to a [`Service`](super::Service): finds it as a receiver finds an offer, and dials it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wraith_crypto::from_variants;
use wraith_discovery::contact::ContactPair;
use wraith_discovery::{Capability, Code, Places, Ticket, TicketKind, TimeLimit};
use wraith_transfer::send_dialler_hello;
use wraith_transport::{Connection, Door, Role as PathRole};

use super::check_name;
use super::role::Invitation;
use crate::engine::access_keys::AccessKeys;
use crate::engine::dial::{Dialler, NotFound};
use crate::error::{Cause, Error, ErrorKind};
use crate::event_publisher::EventPublisher;
use crate::fetch::{Source, decode_delivered_ticket};
use crate::join_code::join_once;
use crate::node::{Node, PoolKey, SharedConnection};
use crate::paths::{Binding, SocketPaths};
use crate::settings::time_to_find;
use crate::state::Contact;

/// Minimum time for dialling, after a code was found at the end of the time limit.
const DIAL_TIME_MIN: Duration = Duration::from_millis(500);

/// How a service is found.
#[derive(Clone, Debug)]
pub enum ServiceAddress {
    /// By its ticket.
    Ticket(Ticket),
    /// By a code, which delivers the ticket. A code can be tried once.
    Code(Code),
    /// A service for contacts, by its name.
    Contact {
        /// The contact that runs the service, and has this node among its contacts.
        contact: Box<Contact>,
        /// The name of the service.
        name: String,
    },
}

from_variants!(ServiceAddress { Ticket => Ticket, Code => Code });

impl std::str::FromStr for ServiceAddress {
    type Err = Error;

    /// Parses a code or the ticket of a service, as typed or pasted by a user.
    fn from_str(text: &str) -> Result<Self, Error> {
        Ok(match text.parse()? {
            Source::Code(code) => Self::Code(code),
            Source::Ticket(ticket) | Source::Invited(_, ticket) => Self::Ticket(ticket),
        })
    }
}

impl ServiceAddress {
    /// Names the service `name` of a contact.
    pub fn of_contact(contact: Contact, name: impl Into<String>) -> Self {
        Self::Contact { contact: Box::new(contact), name: name.into() }
    }
}

/// Configures a connection to a [`Service`](super::Service).
#[must_use = "the builder does nothing before open()"]
#[derive(Debug)]
pub struct ConnectBuilder {
    node: Node,
    to: ServiceAddress,
    timeout: Option<Duration>,
}

impl Node {
    /// Connects to a [`Service`](super::Service) by its ticket or code, or to one of a contact.
    pub fn connect(&self, to: impl Into<ServiceAddress>) -> ConnectBuilder {
        ConnectBuilder { node: self.clone(), to: to.into(), timeout: None }
    }
}

impl ConnectBuilder {
    /// Sets the time limit for finding the service. Default: 10 s, or 30 s with the DHT.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Finds the service and connects to it. Dropping the future cancels the attempt. A service that
    /// does not recognise the secret of the ticket soon closes the connection with
    /// [`close::WRONG_SECRET`](crate::close::WRONG_SECRET). While a direct path is not found, the
    /// connection goes through a relay; it moves to a direct path as soon as there is one.
    ///
    /// # Errors
    /// The ticket is of an offer, the code is used or wrong, or the service was not found.
    pub async fn open(self) -> Result<Connection, Error> {
        let node = self.node.clone();
        self.find().await?.dial(&node).await
    }

    /// Like [`open`](Self::open), for many callers: returns the connection that another caller of
    /// this node has to the same service, or makes one. After its last caller has dropped it, the
    /// connection is kept for a while ([`NodeBuilder::idle_connections`]). A connection that was
    /// lost is replaced at the next call.
    ///
    /// [`NodeBuilder::idle_connections`]: crate::NodeBuilder::idle_connections
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub async fn shared(self) -> Result<SharedConnection, Error> {
        let node = self.node.clone();
        let target = self.find().await?;
        let key = PoolKey::of(target.dialler.peer, &target.secret);
        let limit = target.limit;
        node.pool().get(&node.core().runtime, key, limit, target.dial(&node)).await
    }

    /// Finds the peer and the secret, without dialling.
    async fn find(self) -> Result<DialTarget, Error> {
        let Self { node, to, timeout } = self;
        node.check_open()?;
        let paths = node.open_paths(Binding::Dialling, Door::default())?;
        let begun = Instant::now();
        let mut target = match to {
            ServiceAddress::Ticket(ticket) => of_ticket(&node, &paths, &ticket)?,
            ServiceAddress::Code(code) => {
                let publisher = EventPublisher::default();
                let met = join_once(&node, &code, None, timeout, &publisher, &paths).await?;
                let ticket = decode_delivered_ticket(&met.ticket)?;
                let mut target = of_ticket(&node, &paths, &ticket.met_at(met.from))?;
                target.dialler.stored_call = met.punch_request;
                target
            }
            ServiceAddress::Contact { contact, name } => {
                check_name(&name)?;
                of_contact(&node, &paths, &contact, &name)?
            }
        };
        // A code was found in a part of the time.
        let limit = time_to_find(timeout, !target.dialler.places.stores.is_empty());
        target.limit = limit.saturating_sub(begun.elapsed()).max(DIAL_TIME_MIN);
        Ok(target)
    }
}

/// A service to dial, and the secret that it expects.
struct DialTarget {
    dialler: Dialler,
    secret: Capability,
    /// The contact that runs it.
    contact: Option<String>,
    limit: Duration,
}

impl DialTarget {
    async fn dial(self, node: &Node) -> Result<Connection, Error> {
        let Self { mut dialler, secret, contact, limit } = self;
        let dialled = dialler.dial(Some(&mut TimeLimit::new(limit))).await;
        let dialled = dialled.map_err(|why| not_found(contact.as_deref(), &dialler, why))?;
        let connection = dialled.connection;
        let publisher = Arc::new(EventPublisher::default());
        dialler.paths.keep_open(&connection, PathRole::Initiator, &publisher);
        if !send_dialler_hello(&connection, secret.as_bytes()).await {
            return Err(Error::new(ErrorKind::NetworkLost, "the connection was lost at once"));
        }
        node.store_dht_nodes();
        Ok(connection)
    }
}

fn of_ticket(node: &Node, paths: &SocketPaths, ticket: &Ticket) -> Result<DialTarget, Error> {
    if ticket.kind() != TicketKind::Service {
        let message = "this ticket is of an offer, not of a service: fetch it";
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    // The service does not know its callers before, so it can wait for none of them at a meeting
    // place. It publishes its addresses for the holders of the ticket.
    let places = Places { stores: node.places().stores.clone(), ..Places::default() };
    let dialler = Dialler::of_ticket(paths.clone(), ticket, None, places);
    let secret = ticket.capability().clone();
    Ok(DialTarget { dialler, secret, contact: None, limit: Duration::ZERO })
}

fn of_contact(
    node: &Node,
    paths: &SocketPaths,
    contact: &Contact,
    name: &str,
) -> Result<DialTarget, Error> {
    let pair = ContactPair::new(node.identity(), contact.node_id).map_err(|error| {
        Error::new(ErrorKind::InvalidInput, format!("{}: {error}", contact.name))
    })?;
    let Invitation { access_key, secret } = Invitation::new(&pair, name, contact.node_id);
    let (keys, places) = (AccessKeys::only(access_key), node.places().clone());
    let dialler = Dialler::of_contact(paths.clone(), contact, pair, keys, places);
    let contact = Some(contact.name.to_string());
    Ok(DialTarget { dialler, secret, contact, limit: Duration::ZERO })
}

fn not_found(contact: Option<&str>, dialler: &Dialler, why: NotFound) -> Error {
    let tried: Vec<_> = why.tried.into_iter().collect();
    let list: Vec<_> = tried.iter().map(|(what, why)| format!("{what}: {why}")).collect();
    let list = if list.is_empty() { why.error.to_string() } else { list.join("; ") };
    let (message, cause) = match contact {
        Some(name) => (
            format!("the service of {name} cannot be reached ({list})"),
            Cause::ContactNotFound(tried),
        ),
        None => (
            format!("the service cannot be reached: {} ({list})", why.error),
            Cause::Unreachable(dialler.reach.addresses()),
        ),
    };
    Error::because(ErrorKind::NotFound, message, cause)
}
