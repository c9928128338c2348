//! Reports the transfer of one caller (a sender that dials the listener). Nothing is reported
//! before the turn of this caller, so that the reports of two transfers do not mix.

use std::sync::Arc;

use wraith::state::ReceivedListRecorder;
use wraith::{Event as LibraryEvent, FetchSummary, Incoming, Node, Observer, Role};
use wraith_transfer::Event as TransferEvent;

use crate::args::ListenArgs;
use crate::output::Reporter;
use crate::report::{self, Narrator};

/// Reports the transfer of one caller to people and programs, and records it.
pub struct CallerNarrator {
    reporter: Arc<Reporter>,
    narrator: Narrator,
    node: Node,
    recorder: ReceivedListRecorder,
}

impl CallerNarrator {
    pub fn new(node: &Node, args: &ListenArgs, reporter: &Arc<Reporter>) -> Self {
        Self {
            reporter: Arc::clone(reporter),
            narrator: Narrator::new(Role::Receiver, node, reporter),
            node: node.clone(),
            recorder: ReceivedListRecorder::new(node.state(), &args.out, args.record.room()),
        }
    }

    /// Reports the caller and its offer.
    pub fn offer_received(&self, incoming: &Incoming) {
        let (peer, remote, suite) =
            (incoming.sender(), incoming.remote().clone(), incoming.suite());
        self.narrator.transfer_event(&TransferEvent::Connected {
            peer,
            remote,
            suite,
            instance: None,
        });
        let offer = TransferEvent::Offer(incoming.offer_message());
        self.recorder.record_event(&offer);
        self.narrator.transfer_event(&offer);
    }

    /// Reports the complete transfer, and stores the list for `wraith verify`.
    pub fn received(&self, received: &FetchSummary) {
        self.narrator.received(&received.report);
        report::store_received_list(&self.recorder, &received.report, &self.node, &self.reporter);
    }
}

impl Observer for CallerNarrator {
    fn event(&self, _: Option<u64>, event: &LibraryEvent) {
        if let LibraryEvent::Path { .. } = event {
            self.narrator.path(event);
        }
    }

    fn transfer_event(&self, _: Option<u64>, event: &TransferEvent<'_>) {
        self.recorder.record_event(event);
        self.narrator.transfer_event(event);
    }
}
