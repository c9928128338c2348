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

/// Options of a transfer that both sides have. Builders of offers and fetches have a method for
/// each of them. Later versions add options: change fields of the [`Default`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct TransferOptions {
    /// Limit of the rate in bytes per second. A sender keeps it for all receivers together; a
    /// receiver asks its sender to keep it.
    pub rate: Option<u64>,
    /// Number of parallel connections for a transfer (1 to 4), if the other side allows as many.
    /// `None`: one per two cores, and only on a path that is faster than one connection.
    pub connections: Option<u8>,
    /// Delta transfer: if the receiver has an older copy of a file, only the differences move.
    pub delta: bool,
    /// Whether the transfer ends only after everything is on stable storage at the receiver. The
    /// receipt records this ([`crate::Durability`]). Each side can turn it off.
    pub sync: bool,
    /// Time limit for the first connection. `None`: a sender waits for receivers without a limit,
    /// and the search for a peer takes at most 10 s, or 30 s with the DHT.
    pub timeout: Option<Duration>,
    /// How long to wait or search for a peer whose connection was lost. Zero disables reconnecting.
    pub reconnect: Duration,
}

impl Default for TransferOptions {
    /// No limit of the rate, delta transfer, stable storage, and 10 min to reconnect.
    fn default() -> Self {
        Self {
            rate: None,
            connections: None,
            delta: true,
            sync: true,
            timeout: None,
            reconnect: RECONNECT,
        }
    }
}

/// Returns the time limit for finding a peer. `is_stored`: the places include one that stores
/// records, such as the DHT.
pub(crate) fn time_to_find(timeout: Option<Duration>, is_stored: bool) -> Duration {
    timeout.unwrap_or(if is_stored { FIND_STORED } else { FIND })
}

/// Adds a method for each of the [`TransferOptions`] to a builder.
macro_rules! transfer_options {
    ($builder:ident) => {
        impl $builder {
            /// Sets all options that both sides of a transfer have.
            pub fn options(mut self, options: TransferOptions) -> Self {
                self.settings.transfer = options;
                self
            }

            /// Limits the rate, in bytes per second ([`TransferOptions::rate`]).
            pub fn rate(mut self, bytes_per_second: impl Into<Option<u64>>) -> Self {
                self.settings.transfer.rate = bytes_per_second.into();
                self
            }

            /// Sets the number of parallel connections ([`TransferOptions::connections`]).
            pub fn connections(mut self, connections: impl Into<Option<u8>>) -> Self {
                self.settings.transfer.connections = connections.into();
                self
            }

            /// Enables delta transfer ([`TransferOptions::delta`]). Default: on.
            pub fn delta(mut self, delta: bool) -> Self {
                self.settings.transfer.delta = delta;
                self
            }

            /// Sets whether the transfer waits for stable storage ([`TransferOptions::sync`]).
            /// Default: on.
            pub fn sync(mut self, sync: bool) -> Self {
                self.settings.transfer.sync = sync;
                self
            }

            /// Sets the time limit for the first connection ([`TransferOptions::timeout`]).
            pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
                self.settings.transfer.timeout = timeout.into();
                self
            }

            /// Sets how long to wait or search for a lost peer ([`TransferOptions::reconnect`]).
            /// `None` sets the default, 10 min. A peer that stops is not waited for.
            pub fn reconnect(mut self, reconnect: impl Into<Option<Duration>>) -> Self {
                self.settings.transfer.reconnect = reconnect.into().unwrap_or(RECONNECT);
                self
            }

            /// Also reports all events to `observer`.
            pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
                self.observer = Some(observer);
                self
            }
        }
    };
}

pub(crate) use transfer_options;

/// Settings of an offer.
#[derive(Clone, Debug)]
pub(crate) struct SendSettings {
    pub transfer: TransferOptions,
    /// Where receipts are stored; `None` stores none.
    pub receipt: Option<PathBuf>,
    /// Number of receivers. `None`: any number, until the offer is stopped.
    pub receivers: Option<u32>,
    /// The only receiver may come again after it has stopped.
    pub keep_place: bool,
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
        options.rate.limit(self.transfer.rate);
        options.parallel = parallel.clone();
        options.node_id = Some(own);
        options.sent_roots = sent_roots.clone();
        options.delta = self.transfer.delta;
        options.sync = self.transfer.sync;
        options
    }
}

/// Settings of a fetch.
#[derive(Clone, Debug)]
pub(crate) struct FetchSettings {
    pub transfer: TransferOptions,
    pub keep_modes: bool,
    pub preview: bool,
}
