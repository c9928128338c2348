//! Runs a fetch from the code or ticket to the end, over as many connections as it takes.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use wraith_crypto::Suite;
use wraith_discovery::contact::{ContactPair, PunchRequest};
use wraith_discovery::{Code, Ticket, TicketKind, TimeLimit};
use wraith_transfer::{Decision, ReceiveReport, Role, TransferError};
use wraith_transport::{Connection, Door};

use super::job::FetchJob;
use super::source::{Source, Target, decode_delivered_ticket};
use crate::engine::attempt::{self, ResumableTransfer};
use crate::engine::consent::Consent;
use crate::engine::dial::{Dialled, Dialler, NotFound};
use crate::engine::narrow_path::NarrowPath;
use crate::engine::session::SessionResult;
use crate::engine::task::TaskState;
use crate::error::{Cause, Error, ErrorKind};
use crate::event::{Event, FoundAt};
use crate::event_publisher::EventPublisher;
use crate::join_code::join_once;
use crate::node::Node;
use crate::paths::{Binding, SocketPaths};
use crate::report::FetchSummary;
use crate::settings::{FetchSettings, time_to_find};
use crate::state::{OtherReceiver, ReceiverRecord, SavedTicket};

/// Poll interval for whether another process with the same identity has accepted the offer.
const ACCEPT_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// By this time, a sender has noticed that the receiver it waits for died.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(15);
const BOTH_ASKED: &str = "Another wraith process of yours is asking about the same offer. The first to accept receives it.";

/// Runs the fetch (see the module docs).
pub(super) async fn run(
    node: Node,
    source: Source,
    target: Target,
    settings: FetchSettings,
    consent: Consent,
    shared: TaskState,
) -> Result<FetchSummary, Error> {
    let paths = node.open_paths(Binding::Dialling, Door::default())?;
    let found = tokio::select! {
        found = resolve(&node, source, settings.transfer.timeout, &shared.publisher, &paths) => found,
        () = shared.token.cancelled() => return Err(Error::cancelled(Role::Receiver)),
    };
    let ResolvedSource { ticket, saved, stored_call } = found?;
    if ticket.kind() != TicketKind::Offer {
        let message = "this ticket is of a service of a program, not of an offer: connect to it";
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    check_suites(ticket.suites(), node.core().policy.packet_suites())?;
    let may_fetch_again = saved.as_ref().is_some_and(SavedTicket::is_for_several);
    let own = node.identity();
    let pair = ContactPair::of_transfer(own, ticket.node_id(), ticket.capability().as_bytes()).ok();
    let mut dialler = Dialler::of_ticket(paths.clone(), &ticket, pair, node.places().clone());
    dialler.stored_call = stored_call;
    let mut options = settings.transfer;
    options.timeout = Some(time_to_find(options.timeout, !dialler.places.stores.is_empty()));
    let receiving = Arc::new(ReceiverRecord::of(node.state(), &ticket));
    // Recorded before the connection: the record makes the number under which the sender knows this
    // receiver. Another receiver may also accept and finish before this process is told of it, and
    // it reports its end only to those that wait.
    if let Err(error) = receiving.record_waiting() {
        let what = format!("{error}; other wraith processes of yours cannot see this one");
        shared.publisher.publish(Event::Note { path: String::new(), what });
    }
    let into = target.to_string();
    let fetching = FetchAttempt {
        node: node.clone(),
        addresses: dialler.reach.addresses(),
        job: FetchJob {
            secret: ticket.capability().clone(),
            target,
            settings,
            consent: consent.clone(),
            shared: shared.clone(),
            receiver: None,
            receiving: Some(Arc::clone(&receiving)),
        },
        refused_since: None,
    };
    let result = attempt::run(dialler, fetching, options, &shared).await;
    paths.close().await;
    node.store_dht_nodes();
    let result = result.map(|ended| FetchSummary {
        sender: ended.report.sender,
        report: ended.report,
        remote: ended.remote,
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
    // A sender for any number of receivers serves the same machine again.
    if is_over && !(may_fetch_again && result.is_ok()) {
        saved.iter().for_each(SavedTicket::forget);
    }
    let is_elsewhere =
        result.as_ref().is_err_and(|error| error.kind() == ErrorKind::ReceivedElsewhere);
    if is_over || is_elsewhere || !receiving.holds_place() {
        receiving.end(result.is_ok().then_some(&into));
    }
    if let Ok(received) = &result {
        node.store_last_seen(received.sender, &received.remote);
    }
    result
}

/// Returns true if the same code may be needed again. This includes a refusal: a sender with
/// several receivers keeps waiting, and the code itself is spent.
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

/// Fails if the policies of the two sides have no packet suite in common. The sender does not answer
/// such a receiver.
fn check_suites(theirs: u8, ours: u8) -> Result<(), Error> {
    if theirs & ours != 0 {
        return Ok(());
    }
    let names = |bits: u8| {
        let named = Suite::ALL.into_iter().filter(|suite| bits & suite.bit() != 0);
        let names: Vec<_> = named.map(Suite::name).collect();
        if names.is_empty() { "no cipher known here".to_owned() } else { names.join(" and ") }
    };
    let message = format!(
        "the policies have no cipher in common: the sender's permits {}, and this machine's {}",
        names(theirs),
        names(ours)
    );
    Err(Error::because(ErrorKind::NotFound, message, Cause::NoCommonSuite))
}

/// A resolved source.
struct ResolvedSource {
    ticket: Ticket,
    /// The stored copy of the ticket.
    saved: Option<SavedTicket>,
    /// The addresses of a sender that may have to dial too.
    stored_call: Option<PunchRequest>,
}

/// Resolves the source to a ticket. A code fetches the ticket from the sender. The ticket is stored
/// until the fetch is complete, because a code works only once.
async fn resolve(
    node: &Node,
    source: Source,
    timeout: Option<Duration>,
    publisher: &EventPublisher,
    paths: &SocketPaths,
) -> Result<ResolvedSource, Error> {
    let code = match source {
        Source::Ticket(ticket) => {
            return Ok(ResolvedSource { ticket, saved: None, stored_call: None });
        }
        Source::Invited(code, ticket) => {
            let saved = Some(store_ticket(node, &code, &ticket, publisher));
            return Ok(ResolvedSource { ticket, saved, stored_call: None });
        }
        Source::Code(code) => code,
    };
    let saved = SavedTicket::of(node.state(), &code);
    if let Some(ticket) = saved.ticket()? {
        publisher.publish(Event::Resumed);
        return Ok(ResolvedSource { ticket, saved: Some(saved), stored_call: None });
    }
    let met = join_once(node, &code, None, timeout, publisher, paths).await?;
    publisher.publish(Event::PeerFound(FoundAt::Place(met.place.clone())));
    let ticket = decode_delivered_ticket(&met.ticket)?;
    let ticket = ticket.met_at(met.from);
    let saved = Some(store_ticket(node, &code, &ticket, publisher));
    Ok(ResolvedSource { ticket, saved, stored_call: met.punch_request })
}

/// Stores the ticket that a code delivered. If that fails, only this run can use the ticket: the
/// code is spent.
fn store_ticket(
    node: &Node,
    code: &Code,
    ticket: &Ticket,
    publisher: &EventPublisher,
) -> SavedTicket {
    let saved = SavedTicket::of(node.state(), code);
    if let Err(error) = saved.keep(ticket) {
        let why =
            format!("{error}; a code works once, so this run is the only one that can use it");
        publisher.publish(Event::StateNotStored(why));
    }
    saved
}

fn received_by(other: OtherReceiver) -> Error {
    let OtherReceiver { process, folder } = &other;
    let message =
        format!("another wraith of yours is receiving it: process {process}, into {folder}");
    Error::because(ErrorKind::ReceivedElsewhere, message, Cause::ReceivedBy(other))
}

struct FetchAttempt {
    node: Node,
    addresses: Vec<std::net::SocketAddr>,
    job: FetchJob,
    /// Since when the sender has reported another receiver although no process on this machine is
    /// one.
    refused_since: Option<Instant>,
}

impl FetchAttempt {
    /// Waits for the user's answer in this process.
    ///
    /// # Errors
    /// The user accepted in another process first.
    async fn wait_for_first_acceptance(&self) -> Result<(), Error> {
        let FetchJob { consent, receiving, shared, .. } = &self.job;
        shared.publisher.publish(Event::Note { path: String::new(), what: BOTH_ASKED.to_owned() });
        loop {
            if let Some(other) = receiving.as_ref().and_then(|receiving| receiving.other()) {
                return Err(received_by(other));
            }
            tokio::select! {
                () = consent.decided() => return Ok(()),
                () = sleep(ACCEPT_POLL_INTERVAL) => {}
            }
        }
    }
}

impl ResumableTransfer for FetchAttempt {
    type Report = ReceiveReport;

    const ROLE: Role = Role::Receiver;

    /// Returns the error for a refused or postponed offer. A lost sender is not searched for just
    /// to send it this answer.
    async fn abandoned(&self) -> Error {
        self.job.consent.decided().await;
        match self.job.consent.decision() {
            Some(Decision::Refuse(why)) => TransferError::Refused { why }.into(),
            Some(Decision::Postpone) => TransferError::Postponed.into(),
            _ => std::future::pending().await,
        }
    }

    /// Silence is no error: a sender that is about to end after it served another receiver is
    /// silent, too.
    fn silent_peer_error(&self, _: &Dialled) -> Option<Error> {
        None
    }

    /// Handles a sender that already has another receiver. Before an answer, this process can still
    /// be the first to accept. After a yes it is too late, unless the other receiver died without a
    /// trace; the sender forgets such a receiver soon.
    async fn retry_elsewhere(&mut self) -> Result<(), Error> {
        // An offer that was never shown is not asked about, although the consent is still open.
        let is_asked = self.job.consent.is_open() && self.job.consent.shown().is_some();
        if is_asked {
            self.wait_for_first_acceptance().await?;
        }
        match self.job.consent.decision() {
            Some(Decision::Refuse(why)) => return Err(TransferError::Refused { why }.into()),
            Some(Decision::Postpone) => return Err(TransferError::Postponed.into()),
            _ if is_asked => return Ok(()),
            _ => {}
        }
        if let Some(other) = self.job.receiving.as_ref().and_then(|receiving| receiving.other()) {
            return Err(received_by(other));
        }
        let since = *self.refused_since.get_or_insert_with(Instant::now);
        match since.elapsed() < FORGOTTEN_AFTER {
            true => Ok(()),
            false => Err(TransferError::Elsewhere.into()),
        }
    }

    fn not_found_error(&self, why: NotFound) -> Error {
        let mut tried: Vec<_> = self.addresses.iter().map(ToString::to_string).collect();
        // The results for relays and other carriers are more useful than the fact that they were
        // tried.
        let is_way = |what: &str| what.starts_with("relay ") || what.starts_with("carrier ");
        let others = why.tried.iter().filter(|(what, _)| is_way(what));
        tried.extend(others.map(|(what, why)| format!("{what}: {why}")));
        let error = match (tried.is_empty(), &why.error) {
            (true, _) => "the ticket names no address and no relay that may be used".to_owned(),
            (false, error) => format!("{error} ({})", tried.join(", ")),
        };
        let narrow = NarrowPath::find(&self.addresses);
        let narrow = narrow.map(|narrow| format!("; {narrow}")).unwrap_or_default();
        let message = format!("the sender cannot be reached: {error}{narrow}");
        Error::because(ErrorKind::NotFound, message, Cause::Unreachable(self.addresses.clone()))
    }

    async fn transfer_once(
        &mut self,
        connection: Connection,
        is_first: bool,
        _limit: Option<TimeLimit>,
        _token: &CancellationToken,
    ) -> SessionResult<Self::Report> {
        let session = self.job.run(&self.node, connection, is_first, Arc::default()).await;
        if !matches!(session.result, Err(TransferError::Elsewhere)) {
            self.refused_since = None;
        }
        session
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_ticket_is_kept_unless_it_can_no_longer_be_used() {
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
