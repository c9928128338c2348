//! Raw connections: whoever has the ticket of a [`Service`] gets an authenticated, encrypted [`Connection`] with streams and
//! datagrams.
//!
//! The ticket's capability is what selects the service: who dials says it first, on a stream of its own (SPEC §10.12), and who does
//! not gets nothing.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use wraith_discovery::contact::Pair;
use wraith_discovery::{Capability, Ticket};
use wraith_transfer::limits::NEGOTIATION_TIMEOUT;
use wraith_transfer::{close, receive_dialler_hello, send_dialler_hello};
use wraith_transport::{Connection, Endpoint};

use crate::addresses::reachable;
use crate::engine::dial::Dialler;
use crate::error::{Cause, Error, ErrorKind};
use crate::node::{ANY_ADDRESS, Node};

/// How long a service is looked for.
const FIND: Duration = Duration::from_secs(10);
/// Callers at once that have not said which service they want.
const STRANGERS_MAX: usize = 64;

/// Takes raw connections from whoever has its ticket, until it is dropped. Those that it gave out live on.
#[derive(Debug)]
pub struct Service {
    ticket: Ticket,
    endpoint: Endpoint,
    callers: JoinSet<Option<Connection>>,
}

impl Service {
    pub(crate) fn new(node: &Node) -> Result<Self, Error> {
        let mut secret = [0; Capability::LEN];
        getrandom::fill(&mut secret)
            .map_err(|error| Error::new(ErrorKind::Other, format!("no randomness: {error}")))?;
        let endpoint = node.bind_accepting(ANY_ADDRESS)?;
        let addresses = reachable(endpoint.local_addr());
        let ticket = Ticket::new(node.id(), Capability::from_bytes(secret), addresses);
        Ok(Self { ticket, endpoint, callers: JoinSet::new() })
    }

    /// What a peer connects with; it is a secret.
    pub fn ticket(&self) -> &Ticket {
        &self.ticket
    }

    /// The next connection of somebody who has the ticket. Cancel-safe.
    pub async fn accept(&mut self) -> Option<Connection> {
        let secret = *self.ticket.capability().as_bytes();
        loop {
            tokio::select! {
                connection = self.endpoint.accept() => {
                    let connection = connection?;
                    if self.callers.len() >= STRANGERS_MAX {
                        connection.close(close::OTHER, "too many callers at once");
                        continue;
                    }
                    self.callers.spawn(async move {
                        let said = timeout(NEGOTIATION_TIMEOUT, receive_dialler_hello(&connection));
                        let said = said.await.ok()??;
                        let is_right = wraith_crypto::equal(&said, &secret);
                        if !is_right {
                            connection.close(close::WRONG_SECRET, "");
                        }
                        is_right.then_some(connection)
                    });
                }
                Some(caller) = self.callers.join_next() => {
                    if let Ok(Some(connection)) = caller {
                        return Some(connection);
                    }
                }
            }
        }
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
        Self { node, ticket, timeout: FIND }
    }

    /// How long the service is looked for: 10 s, unless this says something else.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Connects. Dropping the future gives up.
    ///
    /// # Errors
    /// The service was reached at no address and no meeting place.
    pub async fn open(self) -> Result<Connection, Error> {
        let Self { node, ticket, timeout } = self;
        let addresses = ticket.addresses().to_vec();
        let capability = ticket.capability().as_bytes();
        let mut dialler = Dialler {
            endpoint: node.bind_dialling()?,
            peer: ticket.node_id(),
            addresses: addresses.clone(),
            names: Vec::new(),
            pair: Pair::of_transfer(node.identity(), ticket.node_id(), capability).ok(),
            places: node.places().clone(),
            search_after: Duration::from_secs(1),
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
