//! Settings of a transfer. They apply to each of its connections.

use std::path::PathBuf;
use std::time::Duration;

use wraith_crypto::NodeId;
use wraith_discovery::Capability;
use wraith_transfer::{ParallelConnections, SendOptions, SentRoots};

use crate::payload::Payload;

/// Default time limit for finding a peer.
const FIND: Duration = Duration::from_secs(10);
/// Default time limit for finding a peer through stored records. The peer looks for our records
/// every ten seconds, and each lookup takes some seconds.
const FIND_STORED: Duration = Duration::from_secs(30);
/// Default time limit for reconnecting to a lost peer.
pub(crate) const RECONNECT: Duration = Duration::from_secs(600);

/// Pause between two attempts to reach a peer that is unreachable (no route, no interface) or that
/// left.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Time limits for finding or awaiting the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeouts {
    /// Limit before the first connection. `None`: no limit for a side that waits, [`Self::to_find`]
    /// for a side that searches.
    pub first: Option<Duration>,
    /// Limit after an established connection was lost.
    pub reconnect: Duration,
}

impl Timeouts {
    /// Returns the time limit for finding a peer. `is_stored`: the places include one that stores
    /// records, such as the DHT.
    pub fn to_find(self, is_stored: bool) -> Duration {
        self.first.unwrap_or(if is_stored { FIND_STORED } else { FIND })
    }
}

/// Settings of an offer.
#[derive(Clone, Debug)]
pub(crate) struct SendSettings {
    pub rate: Option<u64>,
    pub connections: Option<u8>,
    pub delta: bool,
    pub sync: bool,
    /// Where receipts are stored; `None` stores none.
    pub receipt: Option<PathBuf>,
    /// Number of receivers. `None`: any number, until the offer is stopped.
    pub receivers: Option<u32>,
    /// The only receiver may come again after it has stopped.
    pub keep_place: bool,
    pub timeouts: Timeouts,
}

impl SendSettings {
    /// Builds the options for sending as NodeId `own`. No other code builds them.
    pub fn options(
        &self,
        payload: &Payload,
        (own, secret): (NodeId, &Capability),
        parallel: &ParallelConnections,
        sent_roots: &SentRoots,
    ) -> SendOptions {
        let mut options = SendOptions::new(payload.paths.clone(), *secret.as_bytes());
        options.stream = payload.stream.clone();
        options.rate.limit(self.rate);
        options.parallel = parallel.clone();
        options.node_id = Some(own);
        options.sent_roots = sent_roots.clone();
        options.delta = self.delta;
        options.sync = self.sync;
        options
    }
}

/// Settings of a fetch.
#[derive(Clone, Debug)]
pub(crate) struct FetchSettings {
    pub rate: Option<u64>,
    pub connections: Option<u8>,
    pub delta: bool,
    pub keep_modes: bool,
    pub sync: bool,
    pub preview: bool,
    pub timeouts: Timeouts,
}

impl Default for FetchSettings {
    fn default() -> Self {
        let timeouts = Timeouts { first: None, reconnect: RECONNECT };
        Self {
            rate: None,
            connections: None,
            delta: true,
            keep_modes: false,
            sync: true,
            preview: true,
            timeouts,
        }
    }
}
