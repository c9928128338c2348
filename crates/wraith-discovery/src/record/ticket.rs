//! Finding the sender of a ticket that has moved since the ticket was made. Everybody who has the ticket can look, and nobody else;
//! everybody who has it could also write there, so what is found is only where to dial: the handshake proves who answers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use wraith_crypto::NodeId;

use super::content::{Content, Kind};
use super::find::{ReachFound, search};
use super::publish::{MakeContent, Publication, Report};
use super::slot::Slot;
use crate::Capability;
use crate::place::{Place, PlaceError};
use crate::reach::{MakeReach, Reach};
use crate::store::RecordStore;

/// A record that says where we are is written anew after this time: stores lose some, and nodes of the DHT come and go.
pub(crate) const REPUBLISH_INTERVAL: Duration = Duration::from_secs(25 * 60);
/// How long such a record is good, in seconds: until the next one, and for a while longer if that one fails.
pub(crate) const HERE_LIFE_SECONDS: u64 = 45 * 60;
/// What waits to be taken.
const MAX_WAITING: usize = 16;

/// What says where the sender of a ticket is, until this is dropped; see [`TicketRecord::withdraw`].
#[derive(Debug)]
pub struct TicketRecord(Publication);

/// Says at all `stores`, to who has the ticket of `sender` with `capability`, where the sender is. Must be called in a tokio runtime.
pub fn publish_ticket(
    stores: &[Arc<dyn RecordStore>],
    sender: NodeId,
    capability: &Capability,
    reach: MakeReach,
) -> TicketRecord {
    let slot = Slot::of_ticket(sender, capability);
    let make: MakeContent =
        Arc::new(move |now| Content::new(Kind::Here, now, HERE_LIFE_SECONDS, reach(None)));
    // A receiver that finds nothing has the addresses in its ticket; nobody is told.
    let report: Report = Arc::new(|_, _| {});
    TicketRecord(Publication::start(stores, &slot, REPUBLISH_INTERVAL, &make, &report))
}

impl TicketRecord {
    /// The sender can be reached elsewhere now.
    pub fn update(&self) {
        self.0.update();
    }

    /// Overwrites the record, within three seconds. If this is only dropped, the record stays until it expires.
    pub async fn withdraw(self) {
        self.0.withdraw().await;
    }
}

/// A search for the sender of a ticket, which ends when this is dropped.
#[derive(Debug)]
pub struct TicketSearch {
    found: mpsc::Receiver<ReachFound>,
    _tasks: JoinSet<()>,
}

/// Looks at all `stores` for where the sender of this ticket is now. Must be called in a tokio runtime.
pub fn find_ticket(
    stores: &[Arc<dyn RecordStore>],
    sender: NodeId,
    capability: &Capability,
) -> TicketSearch {
    let (tell, found) = mpsc::channel(MAX_WAITING);
    let mut tasks = JoinSet::new();
    for store in stores {
        let slot = Slot::of_ticket(sender, capability);
        tasks.spawn(search(Arc::clone(store), slot, tell.clone()));
    }
    TicketSearch { found, _tasks: tasks }
}

impl TicketSearch {
    /// What a store knows, again when it changes, or why it cannot be asked at present; None if there is no store. Cancel-safe.
    pub async fn next(&mut self) -> Option<(Place, Result<Reach, PlaceError>)> {
        self.found.recv().await
    }
}
