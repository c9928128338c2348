//! Raw connections: whoever has the ticket of a [`Service`] gets an authenticated, encrypted [`Connection`] with streams and
//! datagrams.
//!
//! The ticket's capability is what selects the service: who dials says it first, on a stream of its own (SPEC §10.12), and who does
//! not gets nothing.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout};
use wraith_discovery::{Capability, Places, Ticket};
use wraith_transfer::limits::NEGOTIATION_TIMEOUT;
use wraith_transfer::{close, receive_dialler_hello, send_dialler_hello};
use wraith_transport::{Connection, DoorKey};
use zeroize::Zeroizing;

use crate::engine::dial::Dialler;
use crate::engine::door_keys::DoorKeys;
use crate::error::{Cause, Error, ErrorKind};
use crate::node::{ANY_ADDRESS, Node};
use crate::ways::Ways;

/// How long a service is dialled.
const DIAL: Duration = Duration::from_secs(10);
/// Callers at once that have not said which service they want.
const STRANGERS_MAX: usize = 64;

/// A service that is being prepared.
#[must_use = "nobody is served before start()"]
#[derive(Debug)]
pub struct ServiceBuilder {
    node: Node,
    capability: Option<Capability>,
    bind: Option<SocketAddr>,
}

impl ServiceBuilder {
    pub(crate) fn new(node: Node) -> Self {
        Self { node, capability: None, bind: None }
    }

    /// What its ticket opens it with; by default a new one each time. The same identity, capability and
    /// [port](Self::bind_to) make a ticket that is good again after a restart.
    pub fn capability(mut self, capability: Capability) -> Self {
        self.capability = Some(capability);
        self
    }

    /// Listens on this address. By default on every address of this machine, and a port of its own choosing.
    pub fn bind_to(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self
    }

    /// Takes connections from now on.
    ///
    /// # Errors
    /// The address cannot be listened on, or the system gives no socket or no randomness.
    pub fn start(self) -> Result<Service, Error> {
        let Self { node, capability, bind } = self;
        let capability = match capability {
            Some(capability) => capability,
            None => new_capability()?,
        };
        let door = DoorKey::of_ticket(capability.as_bytes(), node.id());
        let socket = node.bind_accepting(bind.unwrap_or(ANY_ADDRESS), vec![door])?;
        let ways = Ways::to_dial(&node, socket);
        let ticket = Ticket::new(node.id(), capability, ways.addresses(None));
        Ok(Service { ticket, ways, strangers: Strangers::default() })
    }
}

fn new_capability() -> Result<Capability, Error> {
    let mut secret = Zeroizing::new([0; Capability::LEN]);
    getrandom::fill(&mut *secret)
        .map_err(|error| Error::new(ErrorKind::Other, format!("no randomness: {error}")))?;
    Ok(Capability::from_bytes(*secret))
}

/// Takes raw connections from whoever has its ticket, until it is dropped. Those that it gave out live on.
#[derive(Debug)]
pub struct Service {
    ticket: Ticket,
    ways: Ways,
    strangers: Strangers,
}

impl Service {
    /// What a peer connects with; it is a secret.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The next connection of somebody who has the ticket. Cancel-safe.
    pub async fn accept(&mut self) -> Option<Connection> {
        loop {
            tokio::select! {
                connection = self.ways.endpoint().accept() => {
                    let capability = self.ticket.capability().clone();
                    self.strangers.admit(admit(connection?, capability));
                }
                Some(caller) = self.strangers.tasks.join_next() => {
                    if let Ok(Some(connection)) = caller {
                        return Some(connection);
                    }
                }
            }
        }
    }
}

/// The connection, if its peer names the capability in time.
async fn admit(connection: Connection, capability: Capability) -> Option<Connection> {
    let said = timeout(NEGOTIATION_TIMEOUT, receive_dialler_hello(&connection)).await.ok()??;
    let is_right = Capability::from_bytes(said) == capability;
    if !is_right {
        connection.close(close::WRONG_SECRET, "");
    }
    is_right.then_some(connection)
}

/// Callers that have not named the capability. The oldest makes room for a new one: who has the ticket needs one round trip, so
/// strangers who say nothing keep nobody out.
#[derive(Debug, Default)]
struct Strangers {
    tasks: JoinSet<Option<Connection>>,
    oldest_first: VecDeque<AbortHandle>,
}

impl Strangers {
    fn admit(&mut self, caller: impl Future<Output = Option<Connection>> + Send + 'static) {
        self.oldest_first.retain(|task| !task.is_finished());
        if self.oldest_first.len() >= STRANGERS_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            // Its connection is dropped with it, and so closed.
            oldest.abort();
        }
        self.oldest_first.push_back(self.tasks.spawn(caller));
    }
}

/// A connection that is being prepared.
#[must_use = "nobody is dialled before open()"]
#[derive(Debug)]
pub struct ConnectBuilder {
    node: Node,
    ticket: Ticket,
    timeout: Duration,
}

impl ConnectBuilder {
    pub(crate) fn new(node: Node, ticket: Ticket) -> Self {
        Self { node, ticket, timeout: DIAL }
    }

    /// How long the service is dialled: 10 s, unless this says something else.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Connects, to the addresses of the ticket. Dropping the future gives up. A service that does not know the ticket's capability
    /// closes the connection soon, with [`close::WRONG_SECRET`].
    ///
    /// # Errors
    /// The service was reached at no address.
    pub async fn open(self) -> Result<Connection, Error> {
        let Self { node, ticket, timeout } = self;
        let addresses = ticket.addresses().to_vec();
        let capability = ticket.capability().as_bytes();
        let mut dialler = Dialler {
            ways: Ways::to_dial(&node, node.bind_dialling()?),
            peer: ticket.node_id(),
            doors: DoorKeys::of_ticket(ticket.capability(), ticket.node_id()),
            addresses: addresses.clone(),
            relays: Vec::new(),
            left: None,
            capability: None,
            names: Vec::new(),
            // A service knows nobody whom it could answer at a meeting place.
            pair: None,
            places: Places::default(),
            search_after: Duration::ZERO,
        };
        let dialled = dialler.dial(Some(Instant::now() + timeout)).await.map_err(|why| {
            let message = format!("the service cannot be reached: {}", why.error);
            Error::because(ErrorKind::NotFound, message, Cause::Unreachable(addresses))
        })?;
        let connection = dialled.connection;
        if !send_dialler_hello(&connection, capability).await {
            return Err(Error::new(ErrorKind::NetworkLost, "the connection was lost at once"));
        }
        Ok(connection)
    }
}
