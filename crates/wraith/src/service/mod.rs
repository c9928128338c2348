//! Raw connections: a peer that has the ticket of a [`Service`] gets an authenticated, encrypted
//! [`Connection`] with streams and datagrams.
//!
//! The ticket's capability (16 secret random bytes) selects the service. The dialler sends it
//! first, on a stream of its own (SPEC §10.12). A dialler that does not send it gets nothing.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::{AbortHandle, JoinSet};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wraith_discovery::{Capability, Places, Ticket, TicketKind, TimeLimit};
use wraith_transfer::limits::NEGOTIATION_TIMEOUT;
use wraith_transfer::{close, receive_dialler_hello, send_dialler_hello};
use wraith_transport::{AccessKey, Connection, Door};
use zeroize::Zeroizing;

use crate::engine::access_keys::AccessKeys;
use crate::engine::dial::Dialler;
use crate::error::{Cause, Error, ErrorKind};
use crate::node::{KeyHistory, Node};
use crate::paths::{Binding, SocketPaths};

/// Default time limit for dialling a service.
const DIAL: Duration = Duration::from_secs(10);
/// Maximum number of callers that have not yet sent a capability.
const STRANGERS_MAX: usize = 64;

/// Configures a [`Service`].
#[must_use = "the service does nothing before start()"]
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

    /// Sets the capability that the ticket contains. Default: a new one each time. The same
    /// identity, capability and [port](Self::bind_to) make the ticket valid again after a restart.
    pub fn capability(mut self, capability: Capability) -> Self {
        self.capability = Some(capability);
        self
    }

    /// Sets the listening address. Default: all local addresses, on a port chosen by the system.
    pub fn bind_to(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self
    }

    /// Starts to accept connections.
    ///
    /// # Errors
    /// Listening on the address failed, or the system provides no socket or no randomness.
    pub fn start(self) -> Result<Service, Error> {
        let Self { node, capability, bind } = self;
        node.check_open()?;
        let (capability, history) = match capability {
            Some(capability) => (capability, KeyHistory::Used),
            None => (new_capability()?, KeyHistory::New),
        };
        let access_key = AccessKey::of_ticket(capability.as_bytes(), node.id());
        let binding = bind.map_or(Binding::Accepting { port: None }, Binding::Own);
        let paths = SocketPaths::open(&node, binding, node.door(vec![access_key], history))?;
        let ticket = Ticket::new(node.id(), capability, paths.addresses(None)).of_service();
        let closed = node.tasks().token().clone();
        Ok(Service { ticket, paths, pending: PendingCallers::default(), closed })
    }
}

fn new_capability() -> Result<Capability, Error> {
    let mut secret = Zeroizing::new([0; Capability::LEN]);
    getrandom::fill(&mut *secret)
        .map_err(|error| Error::new(ErrorKind::Other, format!("no randomness: {error}")))?;
    Ok(Capability::from_bytes(*secret))
}

/// Accepts raw connections from peers that have its ticket, until it is dropped. Connections that
/// it returned stay open.
#[derive(Debug)]
pub struct Service {
    ticket: Ticket,
    paths: SocketPaths,
    pending: PendingCallers,
    /// Cancelled when the node is closed.
    closed: CancellationToken,
}

impl Service {
    /// Returns the ticket for peers to connect with. It is a secret.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// Returns the next connection of a peer that has the ticket. `None`: the node was closed
    /// ([`Node::close`]). Cancel-safe.
    pub async fn accept(&mut self) -> Option<Connection> {
        loop {
            tokio::select! {
                () = self.closed.cancelled() => return None,
                connection = self.paths.endpoint().accept() => {
                    let capability = self.ticket.capability().clone();
                    self.pending.add(authorize(connection?, capability));
                }
                Some(caller) = self.pending.tasks.join_next() => {
                    if let Ok(Some(connection)) = caller {
                        return Some(connection);
                    }
                }
            }
        }
    }

    /// Ends the service gracefully. Accepts no more callers, delivers the finished streams of its
    /// connections, also of those that [`Self::accept`] returned, closes these connections, and
    /// waits for that, at most 3 s.
    pub async fn close(self) {
        self.paths.close().await;
    }
}

/// Returns the connection if its peer sends the right capability in time.
async fn authorize(connection: Connection, capability: Capability) -> Option<Connection> {
    let received =
        timeout(NEGOTIATION_TIMEOUT, receive_dialler_hello(&connection)).await.ok()??;
    let is_right = Capability::from_bytes(received) == capability;
    if !is_right {
        connection.close(close::WRONG_SECRET, "");
    }
    is_right.then_some(connection)
}

/// Callers that have not sent the capability yet. A new caller evicts the oldest. A legitimate
/// caller needs one round trip, so silent strangers cannot keep it out.
#[derive(Debug, Default)]
struct PendingCallers {
    tasks: JoinSet<Option<Connection>>,
    oldest_first: VecDeque<AbortHandle>,
}

impl PendingCallers {
    fn add(&mut self, caller: impl Future<Output = Option<Connection>> + Send + 'static) {
        self.oldest_first.retain(|task| !task.is_finished());
        if self.oldest_first.len() >= STRANGERS_MAX
            && let Some(oldest) = self.oldest_first.pop_front()
        {
            // Dropping the task drops its connection, which closes it.
            oldest.abort();
        }
        self.oldest_first.push_back(self.tasks.spawn(caller));
    }
}

/// Configures a connection to a [`Service`].
#[must_use = "the builder does nothing before open()"]
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

    /// Sets the time limit for dialling the service. Default: 10 s.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Connects to the addresses of the ticket. Dropping the future cancels the attempt. A service
    /// that does not recognise the ticket's capability soon closes the connection with
    /// [`close::WRONG_SECRET`].
    ///
    /// # Errors
    /// The ticket is of an offer, or no address of the service answered.
    pub async fn open(self) -> Result<Connection, Error> {
        let Self { node, ticket, timeout } = self;
        node.check_open()?;
        if ticket.kind() != TicketKind::Service {
            let message = "this ticket is of an offer, not of a service: fetch it";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let addresses = ticket.addresses().to_vec();
        let capability = ticket.capability().as_bytes();
        let mut dialler = Dialler {
            paths: SocketPaths::open(&node, Binding::Dialling, Door::default())?,
            peer: ticket.node_id(),
            access_keys: AccessKeys::of_ticket(ticket.capability(), ticket.node_id()),
            addresses: addresses.clone(),
            relays: Vec::new(),
            stored_call: None,
            capability: None,
            names: Vec::new(),
            // A service shares no secret with a caller that would let them meet at a meeting place.
            pair: None,
            places: Places::default(),
            search_after: Duration::ZERO,
        };
        let dialled = dialler.dial(Some(&mut TimeLimit::new(timeout))).await.map_err(|why| {
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
