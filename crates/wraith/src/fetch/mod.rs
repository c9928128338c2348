//! Receiving: [`Node::fetch`](crate::Node::fetch) with a code or a ticket, into a folder or a
//! writer.

mod incoming;
mod job;
mod run;
mod source;

use std::sync::Arc;
use std::time::Duration;

use wraith_transfer::{Conflicts, Decision, OnConflict};

use self::run::run;
use crate::engine::consent::Consent;
use crate::engine::task::{Task, TaskState};
use crate::error::Error;
use crate::event::Observer;
use crate::event_publisher::{EventPublisher, Events};
use crate::node::Node;
use crate::progress::ProgressReader;
use crate::report::FetchSummary;
use crate::settings::FetchSettings;

pub use self::incoming::{Incoming, OfferRequest};
pub(crate) use self::job::FetchJob;
pub(crate) use self::source::decode_delivered_ticket;
pub use self::source::{AcceptOptions, Source, Target};

/// Configures a fetch.
#[must_use = "nothing is fetched before it is asked for or accepted"]
pub struct FetchBuilder {
    node: Node,
    source: Source,
    target: Target,
    settings: FetchSettings,
    observer: Option<Arc<dyn Observer>>,
}

impl FetchBuilder {
    pub(crate) fn new(node: Node, source: Source, target: Target) -> Self {
        Self { node, source, target, settings: FetchSettings::default(), observer: None }
    }

    /// Asks the sender to limit its rate, in bytes per second.
    pub fn rate(mut self, bytes_per_second: u64) -> Self {
        self.settings.rate = Some(bytes_per_second);
        self
    }

    /// Sets the number of parallel connections for the transfer (1 to 4), if the sender allows as
    /// many. Default: one per two cores, and only on a path that is faster than one connection.
    pub fn connections(mut self, connections: u8) -> Self {
        self.settings.connections = Some(connections);
        self
    }

    /// Enables delta transfer: if an older copy of a file exists locally, only the differences are
    /// fetched. Default: on.
    pub fn delta(mut self, delta: bool) -> Self {
        self.settings.delta = delta;
        self
    }

    /// Preserves all permission bits of the sender. Default: off, which applies the umask of this
    /// process. Set-uid, set-gid and sticky bits are never preserved.
    pub fn keep_modes(mut self, keep_modes: bool) -> Self {
        self.settings.keep_modes = keep_modes;
        self
    }

    /// Sets whether the fetch ends only after everything is on stable storage. The receipt records
    /// this ([`crate::Durability`]). Default: on, unless the sender turned it off.
    pub fn sync(mut self, sync: bool) -> Self {
        self.settings.sync = sync;
        self
    }

    /// Enables a preview of the names before the offer is answered. Default: on.
    pub fn preview(mut self, preview: bool) -> Self {
        self.settings.preview = preview;
        self
    }

    /// Sets the time limit for finding the sender. Default: 10 s, or 30 s with the DHT.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeouts.first = Some(timeout);
        self
    }

    /// Sets how long to search for a sender whose connection was lost. Default: 10 min; zero
    /// disables reconnecting. A sender that stops ends the fetch at once.
    pub fn reconnect(mut self, reconnect: Duration) -> Self {
        self.settings.timeouts.reconnect = reconnect;
        self
    }

    /// Also reports all events to `observer`.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Starts the fetch and accepts any offer, with this policy for name conflicts.
    pub fn accept_all(self, policy: OnConflict) -> Transfer {
        let conflicts = Conflicts { otherwise: policy, ..Conflicts::default() };
        self.start(Consent::given(Decision::AcceptWith(conflicts)))
    }

    /// Finds the sender and returns its offer. Nothing is written before [`Incoming::accept`].
    /// Dropping the future cancels the fetch.
    ///
    /// # Errors
    /// The sender was not found, the code is wrong, or the connection was lost and not restored.
    pub async fn wait_for_offer(self) -> Result<Incoming, Error> {
        self.request_offer().incoming().await
    }

    /// Like [`wait_for_offer`](Self::wait_for_offer), in two steps: the returned handle can cancel
    /// the search and notify the sender.
    pub fn request_offer(self) -> OfferRequest {
        let (consent, asked) = Consent::open();
        let transfer = Some(self.start(consent.clone()));
        OfferRequest::new(consent, asked, transfer)
    }

    fn start(self, consent: Consent) -> Transfer {
        let Self { node, source, target, settings, observer } = self;
        let shared = TaskState::new(&node, EventPublisher::new(observer));
        let runtime = node.core().runtime.clone();
        let work = run(node, source, target, settings, consent, shared.clone());
        Transfer(Task::spawn(&runtime, shared, work))
    }
}

impl std::fmt::Debug for FetchBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FetchBuilder").field("target", &self.target).finish_non_exhaustive()
    }
}

/// A running fetch. Drop stops the transfer. Verified data is kept, and the same fetch can be
/// resumed later.
#[derive(Debug)]
pub struct Transfer(pub(crate) Task<FetchSummary>);

impl Transfer {
    /// Returns a stream of events. The first stream starts with the first event, unless an observer
    /// was set or 1024 events passed before this call. Later streams start at the time of the call.
    pub fn events(&self) -> Events {
        self.0.events()
    }

    /// Returns a reader for the progress of the transfer.
    pub fn progress(&self) -> ProgressReader {
        self.0.progress()
    }

    /// Waits for the end of the transfer. Cancel-safe; may be called any number of times.
    ///
    /// # Errors
    /// The reason of the failure. Files that could not be transferred are no error here; see
    /// [`FetchSummary::complete`].
    pub async fn finished(&self) -> Result<Arc<FetchSummary>, Error> {
        self.0.finished().await
    }

    /// Cancels the transfer and waits until the sender is notified and the received data is stored.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), unless the transfer had already
    /// ended.
    pub async fn cancel(self) -> Result<Arc<FetchSummary>, Error> {
        self.0.cancel().await
    }

    /// Requests a stop and returns at once. Use [`Self::finished`] to wait for the end.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Lets the transfer continue without this handle.
    pub fn detach(self) {
        self.0.detach();
    }
}
