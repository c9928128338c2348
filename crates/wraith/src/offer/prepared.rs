//! Prepares an offer before any receiver can connect: the socket, the paths to it, the ticket that
//! names these paths, and the persistent state with which the same offer resumes after a crash.

use std::net::SocketAddr;
use std::sync::Arc;

use wraith_discovery::{MakeTicket, Ticket};
use wraith_transport::AccessKey;
use zeroize::Zeroizing;

use crate::engine::task::TaskState;
use crate::error::{Cause, Error, ErrorKind};
use crate::event::Event;
use crate::node::Node;
use crate::node_core::KeyHistory;
use crate::paths::{Binding, RelayReports, SocketPaths};
use crate::payload::Payload;
use crate::state::{Recipient, StateError, StateErrorKind, UnfinishedSend};

/// The socket, paths and ticket of an offer.
pub(super) struct PreparedOffer {
    pub unfinished: Arc<UnfinishedSend>,
    pub paths: SocketPaths,
    pub ticket: Ticket,
}

impl PreparedOffer {
    pub fn new(
        node: &Node,
        payload: &Payload,
        recipient: &Recipient,
        own_socket: Option<SocketAddr>,
        anew: bool,
        shared: &TaskState,
    ) -> Result<Self, Error> {
        let unfinished = unfinished_send(node, payload, recipient, anew, shared)?;
        let paths = open_again(node, own_socket, &unfinished)?;
        let reports = match recipient {
            Recipient::Bearer => RelayReports::All,
            _ => RelayReports::Refusals,
        };
        paths.accept_callers(&shared.publisher, reports);
        let bound = paths.endpoint().local_addr();
        let reach = paths.reach(None);
        if reach.is_empty() && paths.allows_direct() {
            let message = "this machine has no address at which a receiver could reach it";
            return Err(Error::because(ErrorKind::NotFound, message, Cause::NoAddress));
        }
        store_offer(&unfinished, bound.port(), shared);
        let ticket = Ticket::new(node.id(), unfinished.capability().clone(), reach)
            .with_suites(node.core().policy.packet_suites());
        Ok(Self { unfinished: Arc::new(unfinished), paths, ticket })
    }

    /// Invalidates the ticket and closes the socket.
    pub async fn withdraw(self) {
        self.unfinished.end_run(|_| false);
        self.paths.close().await;
    }

    /// Waits briefly for relays and mappings, then adds them to the ticket that is about to be
    /// shown.
    pub async fn complete_ticket(&mut self) {
        self.paths.wait_until_ready().await;
        self.ticket = self.ticket.at(self.paths.reach(None));
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
                Zeroizing::new(ticket.at(paths.reach(seen)).encode())
            })
        })
    }
}

/// Opens the paths on the port of the interrupted run of this offer, if there was one, so that its
/// ticket stays valid. The ticket changes if the caller wants another port, or if the port is taken.
fn open_again(
    node: &Node,
    own_socket: Option<SocketAddr>,
    unfinished: &UnfinishedSend,
) -> Result<SocketPaths, Error> {
    let access_key = AccessKey::of_ticket(unfinished.capability().as_bytes(), node.id());
    let earlier = unfinished.port();
    let history = if earlier.is_none() { KeyHistory::New } else { KeyHistory::Used };
    let open =
        |binding| node.open_paths(binding, node.core().door(vec![access_key.clone()], history));
    let Some(address) = own_socket else { return open(Binding::Accepting { port: earlier }) };
    if let (0, Some(port)) = (address.port(), earlier)
        && let Ok(paths) = open(Binding::Own(SocketAddr::new(address.ip(), port)))
    {
        return Ok(paths);
    }
    open(Binding::Own(address))
}

/// Opens the persistent state of an offer to this recipient. A stream has none, because it cannot
/// be sent twice. A failure to write the state is reported as an event and does not stop the offer.
pub(super) fn unfinished_send(
    node: &Node,
    payload: &Payload,
    recipient: &Recipient,
    anew: bool,
    shared: &TaskState,
) -> Result<UnfinishedSend, Error> {
    let opened = match payload.is_stream() {
        true => UnfinishedSend::in_memory(recipient),
        false => UnfinishedSend::open(node.state(), &payload.paths, recipient),
    };
    let is_left = || {
        let paths = &payload.paths;
        !payload.is_stream() && UnfinishedSend::may_exist(node.state(), paths, recipient)
    };
    let mut unfinished = match opened {
        Err(error) if error.kind() == StateErrorKind::Disk && !(anew && is_left()) => {
            report_not_stored(&error, !is_left(), shared);
            UnfinishedSend::in_memory(recipient)?
        }
        opened => opened?,
    };
    if anew {
        unfinished.renew()?;
    }
    Ok(unfinished)
}

/// Stores the offer with this port. A disk error is reported as an event.
pub(super) fn store_offer(unfinished: &UnfinishedSend, port: u16, shared: &TaskState) {
    if let Err(error) = unfinished.remember(port) {
        let is_gone = unfinished.forget();
        report_not_stored(&error, is_gone, shared);
    }
}

fn report_not_stored(error: &StateError, is_gone: bool, shared: &TaskState) {
    let next = match is_gone {
        true => "and the next one has another ticket",
        false => "and the next one may have the ticket of an earlier one",
    };
    let why = format!("{error}; this run was not saved, {next}");
    shared.publisher.publish(Event::StateNotStored(why));
}
