//! The whole of a fetch: from the code or ticket to the end, over as many connections as it takes.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wraith_discovery::contact::Pair;
use wraith_discovery::{Code, Ticket};
use wraith_transfer::{Decision, ReceiveReport, Role, TransferError};
use wraith_transport::Connection;

use super::job::FetchJob;
use super::source::{Source, Target};
use crate::addresses::nearest_first;
use crate::code_end::try_once;
use crate::engine::attempt::{self, Carry};
use crate::engine::consent::Consent;
use crate::engine::dial::{Dialled, Dialler, NotFound};
use crate::engine::session::Carried;
use crate::engine::task::Shared;
use crate::error::{Cause, Error, ErrorKind};
use crate::event::{Event, FoundAt, Hub};
use crate::node::Node;
use crate::report::Received;
use crate::settings::{FetchSettings, Patience};
use crate::state::SavedTicket;

/// A sender that has not answered for so long where it was is asked for where it is.
const SEARCH_AFTER: Duration = Duration::from_secs(1);

/// See the module.
pub(super) async fn run(
    node: Node,
    source: Source,
    target: Target,
    settings: FetchSettings,
    consent: Consent,
    shared: Shared,
) -> Result<Received, Error> {
    let found = tokio::select! {
        found = resolve(&node, source, settings.patience, &shared.hub) => found,
        () = shared.token.cancelled() => return Err(Error::cancelled(Role::Receiver)),
    };
    let (ticket, saved) = found?;
    let endpoint = node.bind_dialling()?;
    let own = node.identity();
    let dialler = Dialler {
        endpoint: endpoint.clone(),
        peer: ticket.node_id(),
        addresses: ticket.addresses().to_vec(),
        names: Vec::new(),
        pair: Pair::of_transfer(own, ticket.node_id(), ticket.capability().as_bytes()).ok(),
        places: node.places().clone(),
        search_after: SEARCH_AFTER,
    };
    let patience = settings.patience;
    let fetching = Fetching {
        node: node.clone(),
        addresses: dialler.addresses.clone(),
        job: FetchJob {
            secret: ticket.capability().clone(),
            target,
            settings,
            consent: consent.clone(),
            shared: shared.clone(),
            receiver: None,
            instance: Some(getrandom::u64().unwrap_or_else(|_| std::process::id().into())),
        },
    };
    let result = attempt::run(dialler, fetching, patience, &shared).await;
    endpoint.start_close();
    endpoint.closed().await;
    let result = result.map(|ended| {
        let (report, bytes) = ended.report;
        Received { sender: report.sender, report, bytes, remote: ended.remote }
    });
    let result = match result {
        Err(_) if consent.is_changed() => {
            let message = "the sender came back with another offer than the one that was shown";
            Err(Error::new(ErrorKind::OfferChanged, message))
        }
        result => result,
    };
    let is_over = match &result {
        Ok(received) => received.complete().is_ok(),
        Err(error) if error.kind() == ErrorKind::OfferChanged => !consent.asks_again(),
        Err(error) => !may_continue(error),
    };
    if let (Some(saved), true) = (saved, is_over) {
        saved.forget();
    }
    if let Ok(received) = &result {
        node.remember_meeting(received.sender, &received.remote);
    }
    result
}

/// The same code may be needed again. Also after a no: a sender of several goes on waiting, and the code itself is spent.
fn may_continue(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::OfferChanged
            | ErrorKind::WrongCode
            | ErrorKind::Verification
            | ErrorKind::UnsafeName
            | ErrorKind::InvalidInput
    )
}

/// The ticket, which a code brings from the sender; and where it is kept until everything is here, because a code works once.
async fn resolve(
    node: &Node,
    source: Source,
    patience: Patience,
    hub: &Hub,
) -> Result<(Ticket, Option<SavedTicket>), Error> {
    let code = match source {
        Source::Ticket(ticket) => return Ok((ticket, None)),
        Source::Invited(code, ticket) => {
            let saved = keep(node, &code, &ticket, hub);
            return Ok((ticket, Some(saved)));
        }
        Source::Code(code) => code,
    };
    let saved = SavedTicket::of(node.state(), &code);
    if let Some(ticket) = saved.ticket()? {
        hub.tell(Event::Resumed);
        return Ok((ticket, Some(saved)));
    }
    let met = try_once(node, &code, None, patience).await?;
    hub.tell(Event::Met(FoundAt::Place(met.place.clone())));
    let ticket = Ticket::decode(&met.ticket).map_err(|error| {
        Error::new(ErrorKind::Verification, format!("the sender sent no ticket: {error}"))
    })?;
    let saved = keep(node, &code, &ticket, hub);
    Ok((nearest_first(&ticket, met.from), Some(saved)))
}

/// Keeps the ticket that a code brought. Where that cannot be done, this run is the one that can use it: the code is spent.
fn keep(node: &Node, code: &Code, ticket: &Ticket, hub: &Hub) -> SavedTicket {
    let saved = SavedTicket::of(node.state(), code);
    if let Err(error) = saved.keep(ticket) {
        hub.tell(Event::Note { path: String::new(), what: error.to_string() });
    }
    saved
}

struct Fetching {
    node: Node,
    addresses: Vec<std::net::SocketAddr>,
    job: FetchJob,
}

impl Carry for Fetching {
    type Report = (ReceiveReport, u64);

    const OWN: Role = Role::Receiver;

    /// The answer was no, or not now: a sender that has gone is not looked for to tell it.
    async fn given_up(&self) -> Error {
        self.job.consent.decided().await;
        match self.job.consent.decision() {
            Some(Decision::Refuse(why)) => TransferError::Refused { why }.into(),
            Some(Decision::Later) => TransferError::Later.into(),
            _ => std::future::pending().await,
        }
    }

    /// A sender that is about to end, having served somebody else, does this.
    fn silent(&self, _: &Dialled) -> Option<Error> {
        None
    }

    fn not_found(&self, why: NotFound) -> Error {
        let addresses: Vec<_> = self.addresses.iter().map(ToString::to_string).collect();
        let message =
            format!("the sender cannot be reached: {} ({})", why.error, addresses.join(", "));
        Error::because(ErrorKind::NotFound, message, Cause::Unreachable(self.addresses.clone()))
    }

    async fn carry(
        &mut self,
        connection: Connection,
        is_first: bool,
        _deadline: Option<Instant>,
        _token: &CancellationToken,
    ) -> Carried<Self::Report> {
        self.job.run(&self.node, connection, is_first, Arc::default()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_code_brought_is_kept_unless_it_is_worth_nothing() {
        let error = |kind| Error::new(kind, "");
        let kept =
            [ErrorKind::NetworkLost, ErrorKind::Cancelled, ErrorKind::Disk, ErrorKind::Refused];
        for kind in kept {
            assert!(may_continue(&error(kind)), "{kind:?}");
        }
        for kind in [ErrorKind::OfferChanged, ErrorKind::Verification, ErrorKind::WrongCode] {
            assert!(!may_continue(&error(kind)), "{kind:?}");
        }
    }
}
