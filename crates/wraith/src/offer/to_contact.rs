//! Offers to a contact: dials the contact, over as many connections as the transfer takes.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wraith_crypto::NodeId;
use wraith_discovery::contact::ContactPair;
use wraith_discovery::{Capability, PlaceName, TimeLimit};
use wraith_transfer::{
    ParallelConnections, Progress as Counters, Role, SendOptions, SendReport, SentRoots, close,
    send_dialler_hello,
};
use wraith_transport::{Connection, Door};

use super::OfferBuilder;
use super::handle::{Offer, PublishedOffer};
use super::prepared::{store_offer, unfinished_send};
use crate::engine::access_keys::AccessKeys;
use crate::engine::attempt::{self, ResumableTransfer, show_only};
use crate::engine::dial::{Dialled, Dialler, NotFound};
use crate::engine::session::{self, HelloReceived, SessionResult};
use crate::engine::task::{Task, TaskState};
use crate::error::{Cause, Error, ErrorKind};
use crate::event::{Event, FoundAt};
use crate::event_publisher::EventPublisher;
use crate::node::Node;
use crate::node_core::ANY_ADDRESS;
use crate::paths::Binding;
use crate::payload::Payload;
use crate::report::OfferSummary;
use crate::settings::{SendSettings, time_to_find};
use crate::state::{Contact, ReceiptWriter, Recipient, UnfinishedSend};

impl OfferBuilder {
    /// Starts the offer to a contact.
    pub(super) fn offer_to_contact(
        self,
        payload: Payload,
        contact: Contact,
    ) -> Result<Offer, Error> {
        let Self { node, mut settings, bind, is_isolated, anew, observer, .. } = self;
        let pair = ContactPair::new(node.identity(), contact.node_id).map_err(|error| {
            Error::new(ErrorKind::InvalidInput, format!("{}: {error}", contact.name))
        })?;
        let shared = TaskState::new(&node, EventPublisher::new(observer));
        let recipient = Recipient::Contact(contact.node_id);
        let unfinished = unfinished_send(&node, &payload, &recipient, anew, &shared)?;
        let binding = match is_isolated {
            true => Binding::Own(bind.unwrap_or(ANY_ADDRESS)),
            false => Binding::Dialling,
        };
        let paths = node.open_paths(binding, Door::default())?;
        let port = paths.endpoint().local_addr().port();
        // Lets the same offer resume after a crash. Nothing dials this port.
        store_offer(&unfinished, port, &shared);
        let places = node.places().clone();
        let timeout = &mut settings.transfer.timeout;
        *timeout = Some(time_to_find(*timeout, !places.stores.is_empty()));
        let access_keys = AccessKeys::of_contact(&pair);
        let dialler = Dialler::of_contact(paths, &contact, pair, access_keys, places);
        let sending = ContactTransfer {
            name: contact.name.to_string(),
            payload,
            own: node.id(),
            secret: unfinished.capability().clone(),
            sent_roots: unfinished.sent_roots(),
            parallel: node
                .parallel_to_send(settings.transfer.connections, bind.unwrap_or(ANY_ADDRESS).ip()),
            settings,
            shared: shared.clone(),
        };
        let runtime = node.core().runtime.clone();
        let work = run(node, dialler, sending, unfinished, shared.clone());
        Ok(Offer { shown: PublishedOffer::default(), task: Task::spawn(&runtime, shared, work) })
    }
}

/// Runs an offer to a contact from start to end.
async fn run(
    node: Node,
    dialler: Dialler,
    sending: ContactTransfer,
    unfinished: UnfinishedSend,
    shared: TaskState,
) -> Result<OfferSummary, Error> {
    let options = sending.settings.transfer;
    let (peer, paths) = (dialler.peer, dialler.paths.clone());
    let result = attempt::run(dialler, sending, options, &shared).await;
    paths.close().await;
    node.store_dht_nodes();
    let ended = result?;
    let report = Arc::new(ended.report);
    shared.publisher.publish(Event::Sent { report: Arc::clone(&report) });
    let lacking = u32::from(report.outcome().is_err());
    if lacking == 0 {
        unfinished.forget();
    }
    let mut last_seen = node.last_seen(peer, &ended.remote);
    last_seen.at = ended.remote.ip();
    if let FoundAt::Place(PlaceName::Rendezvous(server)) = ended.at {
        last_seen.rendezvous = Some(server);
    }
    node.store_contact_seen(peer, &last_seen);
    Ok(OfferSummary {
        receivers: 1,
        lacking,
        last: Some((peer, ended.remote)),
        report: Some(report),
    })
}

/// State that an offer needs on each connection to the contact.
pub(super) struct ContactTransfer {
    pub name: String,
    pub payload: Payload,
    /// The sender's NodeId.
    pub own: NodeId,
    pub secret: Capability,
    pub sent_roots: SentRoots,
    pub parallel: ParallelConnections,
    pub settings: SendSettings,
    pub shared: TaskState,
}

impl ResumableTransfer for ContactTransfer {
    type Report = SendReport;

    const ROLE: Role = Role::Sender;

    /// The contact's machine proved its key but then sent nothing.
    fn silent_peer_error(&self, at: &Dialled) -> Option<Error> {
        let (name, address) = (&self.name, at.connection.remote());
        let message = format!("{name} answered at {address}, but accepted no connection");
        Some(Error::because(ErrorKind::NotFound, message, Cause::NotAdmitted(address)))
    }

    fn not_found_error(&self, why: NotFound) -> Error {
        let name = &self.name;
        let tried: Vec<_> = why.tried.into_iter().collect();
        let message = if tried.is_empty() {
            format!("cannot search for {name}: no address is known")
        } else {
            let tried: Vec<_> = tried.iter().map(|(what, why)| format!("{what}: {why}")).collect();
            format!("{name} cannot be reached ({})", tried.join("; "))
        };
        Error::because(ErrorKind::NotFound, message, Cause::ContactNotFound(tried))
    }

    async fn transfer_once(
        &mut self,
        connection: Connection,
        _is_first: bool,
        mut limit: Option<TimeLimit>,
        token: &CancellationToken,
    ) -> SessionResult<Self::Report> {
        let (answered, progress) = (Arc::<HelloReceived>::default(), Arc::<Counters>::default());
        let secret = (self.own, &self.secret);
        let mut options =
            self.settings.options(&self.payload, secret, &self.parallel, &self.sent_roots);
        let receipt_writer = self.settings.receipt.as_deref().map(ReceiptWriter::at);
        options.events = session::events(&self.shared.publisher, None, &answered, receipt_writer);
        options.progress = Arc::clone(&progress);
        show_only(&self.shared, &progress);
        let options = Arc::new(options);
        survey_in_background(&options);
        let late = async {
            if let Some(limit) = &mut limit {
                tokio::select! {
                    () = limit.reached() => connection.close(close::OTHER, ""),
                    () = answered.wait() => {}
                }
            }
            std::future::pending::<()>().await;
        };
        let (theirs, secret) = (connection.clone(), &self.secret);
        let work = async {
            // A lost connection reports its error below.
            let _ = send_dialler_hello(&theirs, secret.as_bytes()).await;
            session::send(theirs.clone(), Arc::clone(&options), token).await
        };
        let result = tokio::select! {
            result = work => result,
            () = late => unreachable!("it waits for ever"),
        };
        // Stops the counting walk, if it still runs.
        options.cancel.cancel();
        SessionResult { result, answered: answered.get(), progress }
    }
}

/// Walks the tree so that its counts are ready when a receiver comes. The transfer finds and
/// reports the same errors.
fn survey_in_background(options: &Arc<SendOptions>) {
    let survey = Arc::clone(options);
    let walk = move || drop(survey.survey().map(|_| ()));
    // If no thread starts, the receiver waits for the counts.
    drop(std::thread::Builder::new().name("wraith-survey".into()).spawn(walk));
}
