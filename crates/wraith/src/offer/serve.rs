//! Offers that wait for receivers with the code or ticket.

use wraith_discovery::record::{TicketRecord, publish_ticket};

use super::code::{give_ticket, make_code, make_long_code};
use super::handle::{Offer, Shown};
use super::prepared::Prepared;
use super::{OfferBuilder, To};
use crate::code_end::no_place;
use crate::engine::rediscovery::Rediscovery;
use crate::engine::serving::{LongCode, Serving};
use crate::engine::task::{Shared, Task};
use crate::error::Error;
use crate::event_publisher::EventPublisher;
use crate::node::reachable_places;
use crate::payload::Payload;
use crate::state::Recipient;
use crate::ways::Ways;

impl OfferBuilder {
    /// Starts an offer that waits for receivers with the code or ticket.
    pub(super) async fn serve(self, payload: Payload) -> Result<Offer, Error> {
        let Self { node, to, settings, life, bind, anew, observer, .. } = self;
        let shared = Shared::new(EventPublisher::new(observer));
        let prepare =
            |recipient: &Recipient| Prepared::new(&node, &payload, recipient, bind, anew, &shared);
        let mut prepared = prepare(&to.recipient(&node, &settings))?;
        let (mut code, mut no_code) = (None, None);
        let mut long_code = LongCode::default();
        if !prepared.ways.allows_direct() {
            // Without a mailbox at a relay, a ticket has no usable path. A receiver may use the
            // code at once, so wait for the mailbox first.
            prepared.ways.settled().await;
        }
        match &to {
            To::Invitation(code) => {
                if let Err(error) = give_ticket(&node, code, &prepared, &settings, &shared).await {
                    // The receiver may have the ticket all the same. It then finds this sender when
                    // the offer is started again.
                    prepared.unfinished.settle(|_| true);
                    return Err(error);
                }
            }
            To::Code => {
                let made = make_code(&node, &prepared, &settings, life, &shared).await?;
                long_code = make_long_code(&node, &prepared, &settings, life, &shared);
                if made.places().is_empty() && long_code.is_coming() {
                    long_code = long_code.made().await;
                }
                match made.places().is_empty() && long_code.is_none() {
                    true => {
                        no_code = Some(no_place(&made));
                        // A ticket for delivery by code is useless without a code, except for
                        // receivers of an earlier run. Make a bearer ticket.
                        if prepared.unfinished.allowed().is_some_and(|allowed| allowed.is_empty()) {
                            prepared.withdraw().await;
                            prepared = prepare(&Recipient::Bearer)?;
                        }
                    }
                    false => code = Some(made).filter(|made| !made.places().is_empty()),
                }
            }
            _ => {}
        }
        let is_shown = prepared.unfinished.allowed().is_none();
        if is_shown {
            prepared.settle().await;
        }
        let Prepared { unfinished, endpoint, ways, ticket } = prepared;
        let (bound, capability) = (endpoint.local_addr(), unfinished.capability().clone());
        let made = code.as_ref().or(long_code.here());
        let shown = Shown {
            addresses: ticket.addresses().to_vec(),
            code: made.map(|code| code.code().clone()),
            places: made.map(|code| code.places().to_vec()).unwrap_or_default(),
            missing: made.map(|code| code.missing().to_vec()).unwrap_or_default(),
            no_code,
            ticket: is_shown.then_some(ticket),
            continues_for: match &to {
                To::Code => unfinished.allowed().unwrap_or_default(),
                _ => Vec::new(),
            },
        };
        let places = reachable_places(node.places(), bound);
        let own = node.identity().clone();
        let mut rediscovery = Rediscovery::new(own, capability, places.clone(), ways.clone());
        let parallel = node.parallel_to_send(settings.connections, bound.ip());
        let runtime = node.runtime().clone();
        let theirs = shared.clone();
        let stores = Some(places.stores.clone()).filter(|stores| is_shown && !stores.is_empty());
        let remembering = node.clone();
        let work = async move {
            let record = stores.map(|stores| {
                publish_ticket(&stores, node.id(), unfinished.capability(), ways.make_reach())
            });
            for receiver in unfinished.receivers().into_iter().rev() {
                if unfinished.admits(receiver) {
                    rediscovery.lost(receiver).await;
                }
            }
            let (serving, news) = Serving::new(
                node,
                payload,
                settings,
                unfinished,
                rediscovery,
                ways.clone(),
                parallel,
                code,
                long_code,
                theirs,
            );
            let sent = match record {
                Some(record) => kept_up(record, &ways, serving.run(news)).await,
                None => {
                    let sent = serving.run(news).await;
                    ways.close().await;
                    sent
                }
            };
            remembering.remember_dht();
            sent
        };
        Ok(Offer { shown: Some(shown), task: Task::spawn(&runtime, shared, work) })
    }
}

/// Serves receivers and meanwhile keeps the published address record up to date. At the end,
/// withdraws everything that leads to this offer.
async fn kept_up<T>(record: TicketRecord, ways: &Ways, serving: impl Future<Output = T>) -> T {
    let mut changes = ways.changes();
    let updating = async {
        ways.keep_seen();
        while changes.changed().await.is_ok() {
            record.update();
        }
        std::future::pending::<()>().await;
    };
    let result = tokio::select! {
        result = serving => result,
        () = updating => unreachable!("it waits for ever"),
    };
    tokio::join!(record.withdraw(), ways.close());
    result
}
