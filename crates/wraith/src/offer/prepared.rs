//! Prepares an offer before any receiver can connect: the socket, the paths to it, and the ticket
//! that names these paths.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use wraith_discovery::{MakeTicket, Reach, Ticket};
use wraith_transport::{AccessKey, Endpoint};
use zeroize::Zeroizing;

use super::unfinished::{store_offer, unfinished_send};
use crate::engine::task::TaskState;
use crate::error::{Cause, Error, ErrorKind};
use crate::event::Event;
use crate::node::{ANY_ADDRESS, KeyHistory, Node, Socket};
use crate::paths::{RelayReports, SocketPaths};
use crate::payload::Payload;
use crate::state::{Recipient, UnfinishedSend};

/// The socket, paths and ticket of an offer.
pub(super) struct PreparedOffer {
    pub unfinished: Arc<UnfinishedSend>,
    pub endpoint: Endpoint,
    pub paths: SocketPaths,
    pub ticket: Ticket,
}

impl PreparedOffer {
    pub fn new(
        node: &Node,
        payload: &Payload,
        recipient: &Recipient,
        bind: Option<SocketAddr>,
        anew: bool,
        shared: &TaskState,
    ) -> Result<Self, Error> {
        let unfinished = unfinished_send(node, payload, recipient, anew, shared)?;
        let socket = bind_again(node, bind, &unfinished)?;
        let reports = match recipient {
            Recipient::Bearer => RelayReports::All,
            _ => RelayReports::Refusals,
        };
        let paths = SocketPaths::for_accepting(node, socket, &shared.publisher, reports);
        let endpoint = paths.endpoint().clone();
        let bound = endpoint.local_addr();
        let addresses = paths.addresses(None);
        if addresses.is_empty() && paths.allows_direct() {
            let message = "this machine has no address at which a receiver could reach it";
            return Err(Error::because(ErrorKind::NotFound, message, Cause::NoAddress));
        }
        store_offer(&unfinished, bound.port(), shared);
        let ticket = Ticket::new(node.id(), unfinished.capability().clone(), addresses)
            .with_suites(node.packet_suites());
        Ok(Self { unfinished: Arc::new(unfinished), endpoint, paths, ticket })
    }

    /// Invalidates the ticket and closes the socket.
    pub async fn withdraw(self) {
        self.unfinished.end_run(|_| false);
        self.endpoint.start_close();
        self.endpoint.closed().await;
        self.paths.close().await;
    }

    /// Waits briefly for relays and mappings, then adds them to the ticket that is about to be
    /// shown.
    pub async fn complete_ticket(&mut self) {
        self.paths.wait_until_ready().await;
        self.ticket = ticket_of(&self.ticket, &self.paths, None);
    }

    /// Returns the function that builds the ticket for a receiver that proved the words of a code.
    /// The receiver is authorized before it gets the ticket. All codes of the offer use it, so it
    /// admits no more receivers than the offer has.
    ///
    /// `includes_observed`: whether the ticket contains the address at which a meeting place sees
    /// this machine.
    pub fn ticket_maker(&self, shared: &TaskState, includes_observed: bool) -> MakeTicket {
        let (ticket, unfinished) = (self.ticket.clone(), Arc::clone(&self.unfinished));
        let paths = self.paths.clone();
        let publisher = Arc::clone(&shared.publisher);
        Box::new(move |receiver, seen| {
            let (is_admitted, written) = unfinished.admit(receiver);
            if let Err(error) = written {
                // The authorization still holds for this run.
                publisher.publish(Event::Note { path: String::new(), what: error.to_string() });
            }
            is_admitted.then(|| {
                let seen = seen.filter(|_| includes_observed);
                Zeroizing::new(ticket_of(&ticket, &paths, seen).encode())
            })
        })
    }
}

/// Returns the ticket of the same offer with the current addresses.
fn ticket_of(ticket: &Ticket, paths: &SocketPaths, seen: Option<IpAddr>) -> Ticket {
    let Reach { addresses, relays } = paths.reach(seen);
    Ticket::new(ticket.node_id(), ticket.capability().clone(), addresses)
        .with_relays(relays)
        .with_suites(ticket.suites())
}

/// Binds the port of the interrupted run of this offer, if there was one, so that its ticket stays
/// valid.
fn bind_again(
    node: &Node,
    wanted: Option<SocketAddr>,
    unfinished: &UnfinishedSend,
) -> Result<Socket, Error> {
    let access_key = AccessKey::of_ticket(unfinished.capability().as_bytes(), node.id());
    let address = wanted.unwrap_or(ANY_ADDRESS);
    let earlier = unfinished.port();
    if earlier.is_none() {
        return node.bind_accepting(address, vec![access_key], KeyHistory::New);
    }
    let bind = |address| node.bind_accepting(address, vec![access_key.clone()], KeyHistory::Used);
    if let (0, Some(port)) = (address.port(), earlier)
        && let Ok(socket) = bind(SocketAddr::new(address.ip(), port))
    {
        return Ok(socket);
    }
    // Another port was asked for, or another program has the port. The ticket then changes.
    bind(address)
}
