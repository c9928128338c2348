//! Publishes the addresses of the sender of a transfer for the holders of its ticket, which search
//! for them after the addresses changed. The ticket is the text with the sender's public key and
//! addresses and the secret of the transfer.
//!
//! The sender publishes a record with its current addresses at every store, under keys derived from
//! the ticket. Only holders of the ticket can find the record, but every holder could also
//! overwrite it. So a result is only an address to dial; the handshake authenticates the sender.

use std::sync::Arc;
use std::time::Duration;

use wraith_crypto::NodeId;

use super::content::{Content, Kind};
use super::publish::{MakeContent, Publication, Report};
use super::slot::Slot;
use crate::Capability;
use crate::reach::MakeReach;
use crate::store::RecordStore;

/// Interval between republications of an address record. Stores lose some records, and DHT nodes
/// join and leave.
pub(crate) const REPUBLISH_INTERVAL: Duration = Duration::from_secs(25 * 60);
/// Lifetime of such a record in seconds: past the next republication, with time for a failed one.
pub(crate) const REACH_LIFE_SECONDS: u64 = 45 * 60;

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
