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
use crate::engine::task::{Task, TaskState, transfer_handle};
use crate::error::Error;
use crate::event::Observer;
use crate::event_publisher::{EventPublisher, Events};
use crate::node::Node;
use crate::progress::ProgressReader;
use crate::report::FetchSummary;
use crate::settings::{FetchSettings, RECONNECT, TransferOptions, transfer_options};

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

transfer_options!(FetchBuilder);

impl Node {
    /// Fetches the offer behind a code or ticket.
    ///
    /// This example inspects the offer before it accepts, then follows the events:
    ///
    /// ```no_run
    /// # use wraith::{AcceptOptions, Code, Error, Event, Node, OnConflict};
    /// # async fn example(node: Node, code: Code) -> Result<(), Error> {
    /// let incoming = node.fetch(code, "Downloads").wait_for_offer().await?;
    /// let offer = incoming.offer();
    /// println!("{} offers {} files, {} bytes", incoming.sender(), offer.files, offer.bytes);
    /// if offer.bytes > 1_000_000_000 {
    ///     return Err(incoming.refuse("too much for this disk").await);
    /// }
    /// let transfer = incoming.accept(AcceptOptions::on_conflict(OnConflict::Rename));
    /// let (mut events, mut progress) = (transfer.events(), transfer.progress());
    /// while let Some(event) = events.next().await {
    ///     match event {
    ///         Event::File { path, status, .. } => println!("{path}: {status:?}"),
    ///         Event::ConnectionLost { why, seconds_left } => {
    ///             println!("{why}; {seconds_left} s to come back");
    ///         }
    ///         _ => {}
    ///     }
    ///     if let Some(progress) = progress.read() {
    ///         println!("{} of {} bytes", progress.bytes, progress.bytes_total);
    ///     }
    /// }
    /// transfer.finished().await?.complete()
    /// # }
    /// ```
    pub fn fetch(&self, from: impl Into<Source>, into: impl Into<Target>) -> FetchBuilder {
        let transfer = TransferOptions::default();
        FetchBuilder {
            node: self.clone(),
            source: from.into(),
            target: into.into(),
            settings: FetchSettings { transfer, keep_modes: false, preview: true },
            observer: None,
        }
    }
}

impl FetchBuilder {
    /// Preserves all permission bits of the sender. Default: off, which applies the umask of this
    /// process. Set-uid, set-gid and sticky bits are never preserved.
    pub fn keep_modes(mut self, keep_modes: bool) -> Self {
        self.settings.keep_modes = keep_modes;
        self
    }

    /// Enables a preview of the names before the offer is answered. Default: on.
    pub fn preview(mut self, preview: bool) -> Self {
        self.settings.preview = preview;
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

wraith_crypto::redacted_debug!(FetchBuilder, target);

/// A running fetch. Drop stops the transfer. Verified data is kept, and the same fetch can be
/// resumed later.
#[derive(Debug)]
pub struct Transfer(pub(crate) Task<FetchSummary>);

transfer_handle!(Transfer, FetchSummary, 0);
