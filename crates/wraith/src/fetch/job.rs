//! One connection of a fetch: its receive options and its result.

use std::sync::Arc;

use wraith_discovery::Capability;
use wraith_transfer::{Progress as Counters, ReceiveOptions, ReceiveReport};
use wraith_transport::Connection;

use super::source::Target;
use crate::engine::attempt::show_only;
use crate::engine::consent::Consent;
use crate::engine::session::{self, HelloReceived, SessionResult};
use crate::engine::task::TaskState;
use crate::event::Event;
use crate::node::Node;
use crate::settings::FetchSettings;
use crate::state::ReceiverRecord;

/// State that a fetch needs on each of its connections. A listener has one per caller.
pub(crate) struct FetchJob {
    pub secret: Capability,
    pub target: Target,
    pub settings: FetchSettings,
    pub consent: Consent,
    pub shared: TaskState,
    pub receiver: Option<u64>,
    /// Distinguishes this process from others that receive the same offer. `None` for a listener:
    /// it does not dial, so the sender cannot confuse it with another.
    pub receiving: Option<Arc<ReceiverRecord>>,
}

impl FetchJob {
    /// Builds the options for receiving. No other code builds them.
    fn options(
        &self,
        node: &Node,
        is_first: bool,
        answered: &Arc<HelloReceived>,
    ) -> ReceiveOptions<'static> {
        let FetchSettings { transfer, keep_modes, preview } = self.settings;
        let folder = self.target.folder.clone();
        let mut options =
            ReceiveOptions::new(folder, *self.secret.as_bytes(), node.identity().clone());
        options.stream = self.target.stream.clone();
        options.rate = transfer.rate;
        // The lost connection may have been a parallel one. A path that does not sustain them gets
        // a single connection.
        if is_first {
            options.parallel = node.parallel_to_receive(transfer.connections);
        }
        options.instance = self.receiving.as_ref().and_then(|receiving| receiving.instance());
        options.preview = preview && self.consent.is_open();
        options.push =
            is_first && self.consent.decision().is_some_and(|decision| decision.is_yes());
        options.delta = transfer.delta;
        options.keep_modes = keep_modes;
        options.sync = transfer.sync;
        options.events = session::events(&self.shared.publisher, self.receiver, answered, None);
        let consent = self.consent.clone();
        let (receiving, into) = (self.receiving.clone(), self.target.to_string());
        let publisher = Arc::clone(&self.shared.publisher);
        options.decide = Box::new(move |proposal| {
            let decision = consent.wait(proposal);
            // Without a number there is no record, as was reported at the start.
            let recorded = receiving.as_ref().filter(|receiving| receiving.instance().is_some());
            if let (true, Some(receiving)) = (decision.is_yes(), recorded)
                && let Err(error) = receiving.record_accepted(&into)
            {
                publisher.publish(Event::Note { path: String::new(), what: error.to_string() });
            }
            decision
        });
        options
    }

    /// Receives over one connection.
    pub async fn run(
        &self,
        node: &Node,
        connection: Connection,
        is_first: bool,
        progress: Arc<Counters>,
    ) -> SessionResult<ReceiveReport> {
        let answered = Arc::<HelloReceived>::default();
        let mut options = self.options(node, is_first, &answered);
        options.progress = Arc::clone(&progress);
        show_only(&self.shared, &progress);
        let result = session::fetch(connection, options, &self.shared.token).await;
        SessionResult { result, answered: answered.get(), progress }
    }
}
