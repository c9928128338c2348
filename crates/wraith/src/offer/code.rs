//! Codes that deliver the ticket of an offer: short codes, long codes, and codes made by the
//! receiver.

use std::time::Duration;

use wraith_discovery::{Code, CodeAnnouncement, CodeOptions, TicketSide, announce, announce_long};

use super::prepared::PreparedOffer;
use crate::engine::offer_server::LongCode;
use crate::engine::task::TaskState;
use crate::error::Error;
use crate::event::{Event, FoundAt};
use crate::join_code::{CODE_LIFE, join_once, no_code};
use crate::node::{Node, reachable_places};
use crate::settings::SendSettings;

/// Default lifetime of a code for any number of receivers.
const ENDLESS_CODE_LIFE: Duration = Duration::from_secs(24 * 3600);

pub(super) async fn make_code(
    node: &Node,
    prepared: &PreparedOffer,
    settings: &SendSettings,
    life: Option<Duration>,
    shared: &TaskState,
) -> Result<CodeAnnouncement, Error> {
    let bound = prepared.paths.endpoint().local_addr();
    let options = code_options(settings, life);
    let everywhere = bound.ip().is_unspecified();
    let make = prepared.ticket_maker(shared, everywhere);
    let places = reachable_places(node.places(), bound);
    announce(&places, options, node.id(), make).await.map_err(no_code)
}

/// Starts to make a long code, which works between any two networks. Made only if no rendezvous
/// server is configured, since a short code works through one.
pub(super) fn make_long_code(
    node: &Node,
    prepared: &PreparedOffer,
    settings: &SendSettings,
    life: Option<Duration>,
    shared: &TaskState,
) -> LongCode {
    let places = reachable_places(node.places(), prepared.paths.endpoint().local_addr());
    if places.stores.is_empty() || places.rendezvous.is_some() {
        return LongCode::default();
    }
    let options = code_options(settings, life);
    let (make, paths) = (prepared.ticket_maker(shared, true), prepared.paths.clone());
    let own = node.id();
    LongCode::Pending(node.runtime().spawn(async move {
        let reach = paths.make_reach();
        // The stored record contains our observed address.
        let (made, ()) =
            tokio::join!(announce_long(&places, options, own, make, reach), paths.observe());
        paths.keep_observed_fresh();
        made
    }))
}

fn code_options(settings: &SendSettings, life: Option<Duration>) -> CodeOptions {
    let usual = if settings.receivers.is_some() { CODE_LIFE } else { ENDLESS_CODE_LIFE };
    // A receiver that declines or crashes may come again; that is not a second use.
    let uses = settings.receivers.unwrap_or(u32::MAX);
    CodeOptions::new(TicketSide::Creator, life.unwrap_or(usual)).uses(uses)
}

/// Delivers the ticket to the receiver that made the code.
pub(super) async fn deliver_ticket(
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
    let met =
        join_once(node, code, Some(make), settings.timeouts, &shared.publisher, paths).await?;
    if let Some(call) = met.punch_request {
        paths.punch_for_caller(call.punch_secret, call.reach.addresses);
    }
    shared.publisher.publish(Event::PeerFound(FoundAt::Place(met.place.clone())));
    if let Some(peer) = met.creator {
        shared.publisher.publish(Event::CodeUsed { place: met.place.clone(), peer });
    }
    Ok(())
}
