//! How a transfer goes, as the user wants it: the same on every connection of it.

use std::path::PathBuf;
use std::time::Duration;

use wraith_crypto::NodeId;
use wraith_discovery::Capability;
use wraith_transfer::{ParallelConnections, SendOptions, SentRoots};

use crate::payload::Payload;

/// How long a peer is looked for, unless something else is asked for.
const FIND: Duration = Duration::from_secs(10);
/// The same where it may be found by records that are stored: it looks for those that we leave every ten seconds, and each look takes some.
const FIND_STORED: Duration = Duration::from_secs(30);
/// How long one that was lost is looked or waited for.
pub(crate) const RECONNECT: Duration = Duration::from_secs(600);

/// How long the other side is looked or waited for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Before the first connection. `None`: who waits, for as long as it takes; who looks, [`Self::to_find`].
    pub first: Option<Duration>,
    /// After one that worked was lost.
    pub reconnect: Duration,
}

impl Patience {
    /// How long a peer is looked for, at places that store among others if `is_stored`.
    pub fn to_find(self, is_stored: bool) -> Duration {
        self.first.unwrap_or(if is_stored { FIND_STORED } else { FIND })
    }
}

/// How an offer is sent.
#[derive(Clone, Debug)]
pub(crate) struct SendSettings {
    pub rate: Option<u64>,
    pub connections: Option<u8>,
    pub delta: bool,
    pub sync: bool,
    /// Where receipts are kept, if they are.
    pub receipt: Option<PathBuf>,
    /// `None`: any number, until it is stopped.
    pub receivers: Option<u32>,
    pub patience: Patience,
}

impl SendSettings {
    /// The one builder of options for sending, as `own` NodeId.
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

/// How an offer is fetched.
#[derive(Clone, Debug)]
pub(crate) struct FetchSettings {
    pub rate: Option<u64>,
    pub connections: Option<u8>,
    pub delta: bool,
    pub keep_modes: bool,
    pub sync: bool,
    pub preview: bool,
    pub patience: Patience,
}

impl Default for FetchSettings {
    fn default() -> Self {
        let patience = Patience { first: None, reconnect: RECONNECT };
        Self {
            rate: None,
            connections: None,
            delta: true,
            keep_modes: false,
            sync: true,
            preview: true,
            patience,
        }
    }
}
