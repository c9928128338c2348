//! Codes that deliver the ticket of a role: a short code, and a long one for the DHT.

use std::time::Duration;

use wraith_discovery::{
    CodeAnnouncement, CodeOptions, MakeTicket, TicketSide, announce, announce_long,
};

use super::offer_server::{AbortOnDrop, LongCode};
use crate::error::Error;
use crate::event::Event;
use crate::event_publisher::EventPublisher;
use crate::join_code::{CODE_LIFE, no_code};
use crate::node::Node;
use crate::node_core::reachable_places;
use crate::paths::SocketPaths;

/// Default lifetime of a code for any number of peers.
const ENDLESS_CODE_LIFE: Duration = Duration::from_secs(24 * 3600);

/// The codes of a role.
pub(crate) struct Codes {
    /// Waits at no place if there is none.
    pub short: CodeAnnouncement,
    pub long: LongCode,
}

impl Codes {
    /// Makes the codes for `uses` peers, or for any number. `make` builds the ticket for a peer that
    /// proved the words. Returns once a code can be shown, or none can be made.
    ///
    /// A long code works between any two networks. It is made only if no rendezvous server is
    /// configured, since a short code works through one.
    pub async fn make(
        node: &Node,
        paths: &SocketPaths,
        make: impl Fn(bool) -> MakeTicket,
        uses: Option<u32>,
        life: Option<Duration>,
        publisher: &EventPublisher,
    ) -> Result<Self, Error> {
        let bound = paths.endpoint().local_addr();
        let usual = if uses.is_some() { CODE_LIFE } else { ENDLESS_CODE_LIFE };
        // A receiver that declines or crashes may come again; that is not a second use.
        let options = CodeOptions::new(TicketSide::Creator, life.unwrap_or(usual))
            .uses(uses.unwrap_or(u32::MAX));
        let places = reachable_places(node.places(), bound);
        let has_public_place = bound.ip().is_unspecified();
        let short = announce(&places, options, node.id(), make(has_public_place)).await;
        let short = short.map_err(no_code)?;
        let mut long = match places.stores.is_empty() || places.rendezvous.is_some() {
            true => LongCode::default(),
            false => {
                let (own, paths, make) = (node.id(), paths.clone(), make(true));
                LongCode::Pending(AbortOnDrop(node.core().runtime.spawn(async move {
                    let reach = paths.make_reach();
                    // The stored record contains our observed address.
                    let announcing = announce_long(&places, options, own, make, reach);
                    let (made, ()) = tokio::join!(announcing, paths.observe());
                    paths.keep_observed_fresh();
                    made
                })))
            }
        };
        if short.places().is_empty() && long.is_pending() {
            publisher.publish(Event::MakingLongCode(node.places().store_names()));
            let why = long.made().await;
            if long.is_none() {
                publisher.publish(Event::NoLongCode(why));
            }
        }
        Ok(Self { short, long })
    }

    /// Returns true if there is no code, and none is being made.
    pub fn are_none(&self) -> bool {
        self.short.places().is_empty() && self.long.is_none()
    }

    /// Returns the short code, if it waits somewhere.
    pub fn into_parts(self) -> (Option<CodeAnnouncement>, LongCode) {
        let Self { short, long } = self;
        (Some(short).filter(|short| !short.places().is_empty()), long)
    }
}
