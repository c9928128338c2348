//! Receiving: [`Node::fetch`](crate::Node::fetch) with a code or a ticket, into a folder or a writer.

mod incoming;
mod job;
mod run;
mod source;

use std::sync::Arc;
use std::time::Duration;

use wraith_transfer::{Conflicts, Decision, OnConflict};

use self::run::run;
use crate::engine::consent::Consent;
use crate::engine::task::{Shared, Task};
use crate::error::Error;
use crate::event::Observer;
use crate::hub::{Events, Hub};
use crate::node::Node;
use crate::progress::ProgressReader;
use crate::report::Received;
use crate::settings::FetchSettings;

pub use self::incoming::{Asking, Incoming};
pub(crate) use self::job::FetchJob;
pub(crate) use self::source::brought;
pub use self::source::{AcceptOptions, Source, Target};

/// A fetch that is being prepared.
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

    /// Asks the sender for no more than this many bytes a second.
    pub fn rate(mut self, bytes_per_second: u64) -> Self {
        self.settings.rate = Some(bytes_per_second);
        self
    }

    /// Carries the transfer over this many connections at once (1 to 4), if the sender allows them too. Without it there is
    /// one for every two cores, and only on a path that is faster than one connection.
    pub fn connections(mut self, connections: u8) -> Self {
        self.settings.connections = Some(connections);
        self
    }

    /// Whether, of a file of which an older copy is here, only what differs is fetched. It is, by default.
    pub fn delta(mut self, delta: bool) -> Self {
        self.settings.delta = delta;
        self
    }

    /// Whether all permissions are taken over. By default those are that the umask of this process leaves; set-uid, set-gid and
    /// sticky never are.
    pub fn keep_modes(mut self, keep_modes: bool) -> Self {
        self.settings.keep_modes = keep_modes;
        self
    }

    /// Whether it ends only when everything is on stable storage, as its receipt then says ([`crate::Durability`]). It does, by
    /// default, unless the sender does not want to wait for it.
    pub fn sync(mut self, sync: bool) -> Self {
        self.settings.sync = sync;
        self
    }

    /// Whether the names are looked at before the offer is decided. They are, by default.
    pub fn preview(mut self, preview: bool) -> Self {
        self.settings.preview = preview;
        self
    }

    /// How long the sender is looked for at first: 10 s, or 30 s where the DHT is asked, unless this says something else.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.patience.first = Some(timeout);
        self
    }

    /// How long a sender that was lost is looked for: 10 min, unless this says something else. Zero: not at all.
    pub fn reconnect(mut self, reconnect: Duration) -> Self {
        self.settings.patience.reconnect = reconnect;
        self
    }

    /// Tells everything that happens to `observer` too.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Fetches whatever is offered, with this policy for names that something else has.
    pub fn accept_all(self, policy: OnConflict) -> Transfer {
        let conflicts = Conflicts { otherwise: policy, ..Conflicts::default() };
        self.start(Consent::given(Decision::AcceptWith(conflicts)))
    }

    /// Finds the sender and hears what it offers. Nothing is written before [`Incoming::accept`]. Dropping the future stops it.
    ///
    /// # Errors
    /// Nobody was found, the code is wrong, or the connection was lost and did not come back.
    pub async fn ask(self) -> Result<Incoming, Error> {
        self.begin().incoming().await
    }

    /// The same in two steps, so that it can be stopped with a word to the sender in between.
    pub fn begin(self) -> Asking {
        let (consent, asked) = Consent::open();
        let transfer = Some(self.start(consent.clone()));
        Asking::new(consent, asked, transfer)
    }

    fn start(self, consent: Consent) -> Transfer {
        let Self { node, source, target, settings, observer } = self;
        let shared = Shared::new(Hub::new(observer));
        let runtime = node.runtime().clone();
        let work = run(node, source, target, settings, consent, shared.clone());
        Transfer(Task::spawn(&runtime, shared, work))
    }
}

impl std::fmt::Debug for FetchBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FetchBuilder").field("target", &self.target).finish_non_exhaustive()
    }
}

/// A fetch under way. Dropping it stops the transfer; what has arrived stays, and the same fetch another time continues.
#[derive(Debug)]
pub struct Transfer(pub(crate) Task<Received>);

impl Transfer {
    /// What happens: the first stream tells it from the beginning, unless an observer was set or nobody asked for it in time
    /// (1024 events); every other one from now on.
    pub fn events(&self) -> Events {
        self.0.events()
    }

    /// How far it is.
    pub fn progress(&self) -> ProgressReader {
        self.0.progress()
    }

    /// Waits for the end. Cancel-safe, and may be called any number of times.
    ///
    /// # Errors
    /// Why it failed. Files that could not be transferred are no error here: [`Received::complete`].
    pub async fn finished(&self) -> Result<Arc<Received>, Error> {
        self.0.finished().await
    }

    /// Stops it, and waits until the sender was told and what has arrived is put away.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), unless it had ended in another way before.
    pub async fn cancel(self) -> Result<Arc<Received>, Error> {
        self.0.cancel().await
    }

    /// Asks it to stop and does not wait; [`Self::finished`] does.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Lets it go on without this handle.
    pub fn detach(self) {
        self.0.detach();
    }
}
