//! Offers that wait for receivers with the code or ticket.

use wraith_discovery::Code;
use wraith_discovery::record::{TicketRecord, publish_ticket};

use super::handle::{Offer, PublishedOffer};
use super::prepared::PreparedOffer;
use super::{OfferBuilder, OfferTarget};
use crate::engine::codes::Codes;
use crate::engine::offer_server::{LongCode, OfferServer};
use crate::engine::rediscovery::Rediscovery;
use crate::engine::task::{Task, TaskState};
use crate::error::Error;
use crate::event::{Event, FoundAt};
use crate::event_publisher::EventPublisher;
use crate::join_code::{join_once, no_place};
use crate::node::Node;
use crate::node_core::{ANY_ADDRESS, reachable_places};
use crate::paths::SocketPaths;
use crate::paths::addresses::left_out;
use crate::payload::Payload;
use crate::settings::SendSettings;
use crate::state::Recipient;

impl OfferBuilder {
    /// Starts an offer that waits for receivers with the code or ticket.
    pub(super) async fn offer_by_code_or_ticket(self, payload: Payload) -> Result<Offer, Error> {
        let Self { node, to, settings, life, bind, is_isolated, anew, observer, .. } = self;
        let own_socket = is_isolated.then(|| bind.unwrap_or(ANY_ADDRESS));
        let shared = TaskState::new(&node, EventPublisher::new(observer));
        let prepare = |recipient: &Recipient| {
            PreparedOffer::new(&node, &payload, recipient, own_socket, anew, &shared)
        };
        let mut prepared = prepare(&to.recipient(&node, &settings))?;
        let (mut code, mut no_code) = (None, None);
        let mut long_code = LongCode::default();
        if !prepared.paths.allows_direct() {
            // Without a mailbox at a relay, a ticket has no usable path. A receiver may use the
            // code at once, so wait for the mailbox first.
            prepared.paths.wait_until_ready().await;
        }
        match &to {
            OfferTarget::Invitation(code) => {
                if let Err(error) = deliver_ticket(&node, code, &prepared, &settings, &shared).await
                {
                    // The receiver may have the ticket all the same. It then finds this sender when
                    // the offer is started again.
                    prepared.unfinished.end_run(|_| true);
                    return Err(error);
                }
            }
            OfferTarget::Code => {
                let make = |includes_observed| prepared.ticket_maker(&shared, includes_observed);
                let made = Codes::make(
                    &node,
                    &prepared.paths,
                    make,
                    settings.receivers,
                    life,
                    &shared.publisher,
                );
                let made = made.await?;
                if made.are_none() {
                    no_code = Some(no_place(&made.short));
                    // A ticket for delivery by code is useless without a code, except for receivers
                    // of an earlier run. Make a bearer ticket.
                    if prepared.unfinished.allowed().is_some_and(|allowed| allowed.is_empty()) {
                        prepared.withdraw().await;
                        prepared = prepare(&Recipient::Bearer)?;
                    }
                }
                (code, long_code) = made.into_parts();
            }
            _ => {}
        }
        let is_shown = prepared.unfinished.allowed().is_none();
        if is_shown {
            prepared.complete_ticket().await;
        }
        let PreparedOffer { unfinished, paths, ticket } = prepared;
        let bound = paths.endpoint().local_addr();
        let capability = unfinished.capability().clone();
        let made = code.as_ref().or(long_code.announcement());
        let shown = PublishedOffer {
            addresses: ticket.addresses(),
            left_out: if paths.allows_direct() { left_out(&ticket, bound) } else { Vec::new() },
            code: made.map(|code| code.code().clone()),
            places: made.map(|code| code.places().to_vec()).unwrap_or_default(),
            missing: made.map(|code| code.missing().to_vec()).unwrap_or_default(),
            no_code,
            awaits_long_code: long_code.is_pending(),
            ticket: is_shown.then_some(ticket),
            continues_for: match &to {
                OfferTarget::Code => unfinished.allowed().unwrap_or_default(),
                _ => Vec::new(),
            },
        };
        let places = reachable_places(node.places(), bound);
        let own = node.identity().clone();
        let mut rediscovery = Rediscovery::new(own, capability, places.clone(), paths.clone());
        let parallel = node.parallel_to_send(settings.transfer.connections, bound.ip());
        let runtime = node.core().runtime.clone();
        let theirs = shared.clone();
        let stores = Some(places.stores.clone()).filter(|stores| is_shown && !stores.is_empty());
        let remembering = node.clone();
        let work = async move {
            let record = stores.map(|stores| {
                publish_ticket(&stores, node.id(), unfinished.capability(), paths.make_reach())
            });
            for receiver in unfinished.receivers().into_iter().rev() {
                if unfinished.admits(receiver) {
                    rediscovery.lost(receiver).await;
                }
            }
            let server = OfferServer::new(
                node,
                payload,
                settings,
                unfinished,
                rediscovery,
                paths.clone(),
                parallel,
                code,
                long_code,
                theirs,
            );
            let sent = match record {
                Some(record) => serve_with_record(record, &paths, server.run()).await,
                None => {
                    let sent = server.run().await;
                    paths.close().await;
                    sent
                }
            };
            remembering.store_dht_nodes();
            sent
        };
        Ok(Offer { shown, task: Task::spawn(&runtime, shared, work) })
    }
}

/// Delivers the ticket to the receiver that made the code.
async fn deliver_ticket(
    node: &Node,
    code: &Code,
    prepared: &PreparedOffer,
    settings: &SendSettings,
    shared: &TaskState,
) -> Result<(), Error> {
    let is_tried = node.spent_codes().tried(code).is_some();
    if is_tried && prepared.unfinished.allowed().is_some_and(|allowed| !allowed.is_empty()) {
        // An earlier run delivered the ticket. The code's maker needs no second one.
        shared.publisher.publish(Event::Resumed);
        return Ok(());
    }
    let make = prepared.ticket_maker(shared, true);
    let paths = &prepared.paths;
    let timeout = settings.transfer.timeout;
    let met = join_once(node, code, Some(make), timeout, &shared.publisher, paths).await?;
    if let Some(call) = met.punch_request {
        paths.punch_for_caller(call.punch_secret, call.reach.addresses());
    }
    shared.publisher.publish(Event::PeerFound(FoundAt::Place(met.place.clone())));
    if let Some(peer) = met.creator {
        shared.publisher.publish(Event::CodeUsed { place: met.place.clone(), peer });
    }
    Ok(())
}

/// Serves receivers and meanwhile keeps the published address record up to date. At the end,
/// withdraws everything that leads to this offer.
async fn serve_with_record<T>(
    record: TicketRecord,
    paths: &SocketPaths,
    serving: impl Future<Output = T>,
) -> T {
    let mut changes = paths.changes();
    let updating = async {
        paths.keep_observed_fresh();
        while changes.changed().await.is_ok() {
            record.update();
        }
        std::future::pending::<()>().await;
    };
    let result = tokio::select! {
        result = serving => result,
        () = updating => unreachable!("it waits for ever"),
    };
    tokio::join!(record.withdraw(), paths.close());
    result
}
