//! What a receiver comes with, made before anybody can come: a socket, the ways to it, and the ticket that names them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use wraith_discovery::{MakeTicket, Reach, Ticket};
use wraith_transport::{DoorKey, Endpoint};
use zeroize::Zeroizing;

use super::unfinished::{remember, unfinished_send};
use crate::engine::task::Shared;
use crate::error::{Cause, Error, ErrorKind};
use crate::event::Event;
use crate::node::{ANY_ADDRESS, Node, Socket};
use crate::payload::Payload;
use crate::state::{Recipient, UnfinishedSend};
use crate::ways::{RelayNews, Ways};

/// What a receiver comes with, and where it is waited for.
pub(super) struct Prepared {
    pub unfinished: Arc<UnfinishedSend>,
    pub endpoint: Endpoint,
    pub ways: Ways,
    pub ticket: Ticket,
}

impl Prepared {
    pub fn new(
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
    pub async fn withdraw(self) {
        self.unfinished.settle(|_| false);
        self.endpoint.start_close();
        self.endpoint.closed().await;
        self.ways.close().await;
    }

    /// Takes the ways that open within a moment into the ticket, which is about to be shown.
    pub async fn settle(&mut self) {
        self.ways.settled().await;
        self.ticket = ticket_of(&self.ticket, &self.ways, None);
    }

    /// Gives the ticket to whoever proves the words of a code, and makes it good for them before they have it.
    ///
    /// `tells_seen`: whether the address at which a place sees us goes into the ticket.
    pub fn give(&self, shared: &Shared, tells_seen: bool) -> MakeTicket {
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
