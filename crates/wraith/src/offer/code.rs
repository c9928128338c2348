//! Codes that deliver the ticket of an offer: short codes, long codes, and codes made by the
//! receiver.

use std::time::Duration;

use wraith_discovery::{Code, CodeAnnouncement, CodeOptions, TicketSide, announce, announce_long};

use super::prepared::Prepared;
use crate::code_end::{CODE_LIFE, no_code, try_once};
use crate::engine::serving::LongCode;
use crate::engine::task::Shared;
use crate::error::Error;
use crate::event::{Event, FoundAt};
use crate::node::{Node, reachable_places};
use crate::settings::SendSettings;

/// Default lifetime of a code for any number of receivers.
const ENDLESS_CODE_LIFE: Duration = Duration::from_secs(24 * 3600);

pub(super) async fn make_code(
    node: &Node,
    prepared: &Prepared,
    settings: &SendSettings,
    life: Option<Duration>,
    shared: &Shared,
) -> Result<CodeAnnouncement, Error> {
    let bound = prepared.endpoint.local_addr();
    let options = code_options(settings, life);
    let everywhere = bound.ip().is_unspecified();
    let make = prepared.give(shared, everywhere);
    let places = reachable_places(node.places(), bound);
    announce(&places, options, node.id(), make).await.map_err(no_code)
}

/// Starts to make a long code, which works between any two networks. Made only if no rendezvous
/// server is configured, since a short code works through one.
pub(super) fn make_long_code(
    node: &Node,
    prepared: &Prepared,
    settings: &SendSettings,
    life: Option<Duration>,
    shared: &Shared,
) -> LongCode {
    let places = reachable_places(node.places(), prepared.endpoint.local_addr());
    if places.stores.is_empty() || places.rendezvous.is_some() {
        return LongCode::default();
    }
    let options = code_options(settings, life);
    let (make, ways) = (prepared.give(shared, true), prepared.ways.clone());
    let own = node.id();
    LongCode::Coming(node.runtime().spawn(async move {
        let reach = ways.make_reach();
        // The stored record contains our observed address.
        let (made, ()) =
            tokio::join!(announce_long(&places, options, own, make, reach), ways.see());
        ways.keep_seen();
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
pub(super) async fn give_ticket(
    node: &Node,
    code: &Code,
    prepared: &Prepared,
    settings: &SendSettings,
    shared: &Shared,
) -> Result<(), Error> {
    let is_tried = node.spent_codes().tried(code).is_some();
    if is_tried && prepared.unfinished.allowed().is_some_and(|allowed| !allowed.is_empty()) {
        // An earlier run delivered the ticket. The code's maker needs no second one.
        shared.publisher.tell(Event::Resumed);
        return Ok(());
    }
    let make = prepared.give(shared, true);
    let ways = &prepared.ways;
    let met = try_once(node, code, Some(make), settings.patience, &shared.publisher, ways).await?;
    if let Some(call) = met.punch_request {
        ways.let_in(call.punch_secret, call.reach.addresses);
    }
    shared.publisher.tell(Event::Met(FoundAt::Place(met.place.clone())));
    if let Some(peer) = met.creator {
        shared.publisher.tell(Event::CodeUsed { place: met.place.clone(), peer });
    }
    Ok(())
}
