//! Reports a receive transfer as text and events, and records the list of received files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::sleep;
use wraith::json::EventConverter;
use wraith::state::ReceivedListRecorder;
use wraith::{Event as LibraryEvent, FetchSummary, Node, Observer, Role};
use wraith_transfer::Event as TransferEvent;
use wraith_transfer::limits::OFFER_TIMEOUT;

use crate::args::ReceiveArgs;
use crate::output::{Event, Reporter};
use crate::report::{self, Narrator};

/// Delay before the first message about a missing offer. Most offers come at once.
const FIRST_REPORT_DELAY: Duration = Duration::from_secs(5);
/// Interval between further messages.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// Reports a receive transfer to people and programs, and records it.
pub struct ReceiveNarrator {
    reporter: Arc<Reporter>,
    narrator: Narrator,
    converter: EventConverter,
    node: Node,
    recorder: ReceivedListRecorder,
    runtime: Handle,
    /// Whether the code is used up and its ticket was not saved, so that the same command cannot
    /// resume.
    is_not_stored: AtomicBool,
    /// Whether the offer is a stream of unknown length, which is sent only once.
    is_endless: AtomicBool,
    /// Whether the offer was accepted, so that data may have moved.
    is_accepted: AtomicBool,
    /// The task that reports a missing offer.
    awaiting: std::sync::Mutex<Option<AbortHandle>>,
}

impl ReceiveNarrator {
    pub fn new(node: &Node, args: &ReceiveArgs, reporter: &Arc<Reporter>) -> Self {
        let room = args.record.room().filter(|_| !args.is_piped());
        Self {
            reporter: Arc::clone(reporter),
            narrator: Narrator::new(Role::Receiver, node, reporter).only(),
            converter: EventConverter::new(node),
            node: node.clone(),
            recorder: ReceivedListRecorder::new(node.state(), &args.out, room),
            runtime: Handle::current(),
            is_not_stored: AtomicBool::new(false),
            is_endless: AtomicBool::new(false),
            is_accepted: AtomicBool::new(false),
            awaiting: std::sync::Mutex::default(),
        }
    }

    /// Returns whether the same command can resume an interrupted transfer.
    pub fn is_stored(&self) -> bool {
        !self.is_not_stored.load(Relaxed)
    }

    /// Returns whether the offer was accepted.
    pub fn is_accepted(&self) -> bool {
        self.is_accepted.load(Relaxed)
    }

    /// Returns whether the offer is a stream of unknown length.
    pub fn is_endless(&self) -> bool {
        self.is_endless.load(Relaxed)
    }

    /// Reports the complete transfer, and stores the list for `wraith verify`.
    pub fn received(&self, received: &FetchSummary) {
        self.narrator.received(&received.report);
        report::store_received_list(&self.recorder, &received.report, &self.node, &self.reporter);
    }

    /// Starts or stops the reports about a missing offer. The sender has sent its Hello and the
    /// offer comes next, or never; the receiver cannot see which.
    fn set_awaiting_offer(&self, awaits: bool) {
        let task = awaits.then(|| {
            self.runtime.spawn(report_missing_offer(Arc::clone(&self.reporter))).abort_handle()
        });
        let mut awaiting = self.awaiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *awaiting, task) {
            before.abort();
        }
    }
}

impl Drop for ReceiveNarrator {
    fn drop(&mut self) {
        self.set_awaiting_offer(false);
    }
}

/// Only reports; the engine gives up after [`OFFER_TIMEOUT`].
async fn report_missing_offer(reporter: Arc<Reporter>) {
    let deadline = Instant::now() + OFFER_TIMEOUT;
    let mut pause = FIRST_REPORT_DELAY;
    loop {
        sleep(pause).await;
        let left = deadline.saturating_duration_since(Instant::now()).as_secs();
        if left == 0 {
            return;
        }
        reporter.event(&Event::Awaiting { what: "offer", seconds_left: left });
        reporter.status(format!(
            "Waiting for the sender's offer; it may be scanning a large folder. Giving up in {left} s; Ctrl-C stops."
        ));
        pause = REPORT_INTERVAL;
    }
}

impl Observer for ReceiveNarrator {
    fn event(&self, _: Option<u64>, event: &LibraryEvent) {
        let is_reported = match event {
            // For a known address, the `connected` event is enough.
            LibraryEvent::PeerFound(at) => at.place().is_some(),
            LibraryEvent::ConnectionLost { .. }
            | LibraryEvent::Note { .. }
            | LibraryEvent::StateNotStored(_) => true,
            _ => false,
        };
        if is_reported {
            self.reporter.transfer_event(None, self.converter.event(event).as_ref());
        }
        match event {
            LibraryEvent::Resumed => {
                self.reporter.status("Continuing the earlier transfer of this code.")
            }
            LibraryEvent::Path { .. } => self.narrator.path(event),
            LibraryEvent::StateNotStored(_) => self.is_not_stored.store(true, Relaxed),
            LibraryEvent::ConnectionLost { .. } | LibraryEvent::Done | LibraryEvent::Failed(_) => {
                self.set_awaiting_offer(false);
            }
            _ => {}
        }
    }

    fn transfer_event(&self, _: Option<u64>, event: &TransferEvent<'_>) {
        match event {
            TransferEvent::Connected { .. } => self.set_awaiting_offer(true),
            TransferEvent::Accepted => self.is_accepted.store(true, Relaxed),
            TransferEvent::Offer(offer) => {
                self.set_awaiting_offer(false);
                self.is_endless.store(offer.stream == Some(true) && offer.bytes == 0, Relaxed);
            }
            _ => {}
        }
        self.recorder.record_event(event);
        self.narrator.transfer_event(event);
    }
}
