//! Delivers the ticket of an offer to the receiver that made the code.

use wraith_discovery::Code;

use super::prepared::PreparedOffer;
use crate::engine::task::TaskState;
use crate::error::Error;
use crate::event::{Event, FoundAt};
use crate::join_code::join_once;
use crate::node::Node;
use crate::settings::SendSettings;

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
        paths.punch_for_caller(call.punch_secret, call.reach.addresses());
    }
    shared.publisher.publish(Event::PeerFound(FoundAt::Place(met.place.clone())));
    if let Some(peer) = met.creator {
        shared.publisher.publish(Event::CodeUsed { place: met.place.clone(), peer });
    }
    Ok(())
}
