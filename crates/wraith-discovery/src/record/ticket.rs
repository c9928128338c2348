//! Finds the sender of a transfer by its ticket, after the sender's addresses changed. The ticket
//! is the text with the sender's public key and addresses and the secret of the transfer.
//!
//! The sender publishes a record with its current addresses at every store, under keys derived from
//! the ticket. Only holders of the ticket can find the record, but every holder could also
//! overwrite it. So a result is only an address to dial; the handshake authenticates the sender.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use wraith_crypto::NodeId;

use super::content::{Content, Kind};
use super::find::{ReachReport, report_reach};
use super::publish::{MakeContent, Publication, Report};
use super::slot::Slot;
use crate::Capability;
use crate::place::{PlaceError, PlaceName};
use crate::reach::{MakeReach, Reach};
use crate::store::RecordStore;

/// Interval between republications of an address record. Stores lose some records, and DHT nodes
/// join and leave.
pub(crate) const REPUBLISH_INTERVAL: Duration = Duration::from_secs(25 * 60);
/// Lifetime of such a record in seconds: past the next republication, with time for a failed one.
pub(crate) const REACH_LIFE_SECONDS: u64 = 45 * 60;
/// Most queued results.
const MAX_WAITING: usize = 16;

/// Published addresses of a ticket's sender; see [`TicketRecord::withdraw`].
#[derive(Debug)]
pub struct TicketRecord(Publication);

/// Publishes the sender's addresses at all `stores`, for holders of the ticket of `sender` with
/// `capability`. Must be called in a tokio runtime.
pub fn publish_ticket(
    stores: &[Arc<dyn RecordStore>],
    sender: NodeId,
    capability: &Capability,
    reach: MakeReach,
) -> TicketRecord {
    let slot = Slot::of_ticket(sender, capability);
    let make: MakeContent =
        Arc::new(move |now| Content::new(Kind::Reach, now, REACH_LIFE_SECONDS, reach(None)));
    // Failures are not reported: a receiver without a result uses the addresses in its ticket.
    let report: Report = Arc::new(|_, _| {});
    TicketRecord(Publication::start(stores, &slot, REPUBLISH_INTERVAL, &make, &report))
}

impl TicketRecord {
    /// Republishes after the sender's addresses changed.
    pub fn update(&self) {
        self.0.update();
    }

    /// Overwrites the record, within three seconds. After a mere drop, the record stays until it
    /// expires.
    pub async fn withdraw(self) {
        self.0.withdraw().await;
    }
}

/// A running search for the sender of a ticket; drop ends it.
#[derive(Debug)]
pub struct TicketSearch {
    found: mpsc::Receiver<ReachReport>,
    _tasks: JoinSet<()>,
}

/// Searches all `stores` for the current addresses of this ticket's sender. Must be called in a
/// tokio runtime.
pub fn find_ticket(
    stores: &[Arc<dyn RecordStore>],
    sender: NodeId,
    capability: &Capability,
) -> TicketSearch {
    let (tell, found) = mpsc::channel(MAX_WAITING);
    let mut tasks = JoinSet::new();
    for store in stores {
        let slot = Slot::of_ticket(sender, capability);
        tasks.spawn(report_reach(Arc::clone(store), slot, tell.clone()));
    }
    TicketSearch { found, _tasks: tasks }
}

impl TicketSearch {
    /// Returns a store's result or error, and all changes; `None` if there is no store.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<(PlaceName, Result<Reach, PlaceError>)> {
        self.found.recv().await
    }
}
