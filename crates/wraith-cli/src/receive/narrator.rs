//! What happens while something is fetched, in words for people and events for programs, and the list of what arrived.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::sleep;
use wraith::state::Recorder;
use wraith::{Event as LibraryEvent, Node, Observer, Received, Role};
use wraith_transfer::Event as TransferEvent;
use wraith_transfer::limits::OFFER_TIMEOUT;

use crate::args::ReceiveArgs;
use crate::output::{Event, Reporter};
use crate::report::{self, Narrator, found_at};

/// Most offers come at once; a person begins to wonder after this.
const FIRST_WORD: Duration = Duration::from_secs(5);
/// After which it is said again.
const NEXT_WORD: Duration = Duration::from_secs(60);

/// See the module.
pub struct ReceiveNarrator {
    reporter: Arc<Reporter>,
    narrator: Narrator,
    node: Node,
    recorder: Recorder,
    runtime: Handle,
    /// The code is used up, and the same command does not continue.
    is_unremembered: AtomicBool,
    /// Says that the offer is waited for, while it is.
    awaiting: std::sync::Mutex<Option<AbortHandle>>,
}

impl ReceiveNarrator {
    pub fn new(node: &Node, args: &ReceiveArgs, reporter: &Arc<Reporter>) -> Self {
        let room = args.record.room().filter(|_| !args.is_piped());
        Self {
            reporter: Arc::clone(reporter),
            narrator: Narrator::new(Role::Receiver, node, reporter).only(),
            node: node.clone(),
            recorder: Recorder::new(node.state(), &args.out, room),
            runtime: Handle::current(),
            is_unremembered: AtomicBool::new(false),
            awaiting: std::sync::Mutex::default(),
        }
    }

    /// Whether the same command another time continues what breaks off.
    pub fn is_remembered(&self) -> bool {
        !self.is_unremembered.load(Relaxed)
    }

    /// Everything is here: the last line, and the list for `wraith verify`.
    pub fn received(&self, received: &Received) {
        self.narrator.received(&received.report, received.bytes);
        report::record(&self.recorder, &received.report, &self.node, &self.reporter);
    }

    /// The sender has said Hello; its offer is next, or never comes: from here the two look alike.
    fn awaits_offer(&self, awaits: bool) {
        let task = awaits.then(|| {
            self.runtime.spawn(say_what_is_awaited(Arc::clone(&self.reporter))).abort_handle()
        });
        let mut awaiting = self.awaiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *awaiting, task) {
            before.abort();
        }
    }
}

impl Drop for ReceiveNarrator {
    fn drop(&mut self) {
        self.awaits_offer(false);
    }
}

/// Only speaks: the engine is what gives up, after [`OFFER_TIMEOUT`].
async fn say_what_is_awaited(reporter: Arc<Reporter>) {
    let deadline = Instant::now() + OFFER_TIMEOUT;
    let mut pause = FIRST_WORD;
    loop {
        sleep(pause).await;
        let left = deadline.saturating_duration_since(Instant::now()).as_secs();
        if left == 0 {
            return;
        }
        reporter.event(&Event::Awaiting { what: "offer", seconds_left: left });
        reporter.say(format!(
            "Waiting for the sender to say what it offers; it may be looking through a large folder. \
             Given up in {left} s, Ctrl-C stops."
        ));
        pause = NEXT_WORD;
    }
}

impl Observer for ReceiveNarrator {
    fn event(&self, _: Option<u64>, event: &LibraryEvent) {
        match event {
            LibraryEvent::Resumed => {
                self.reporter.say("Going on with what this code brought before.")
            }
            // Where an address is known, being connected says all.
            LibraryEvent::Met(at) if matches!(at, wraith::FoundAt::Place(_)) => {
                self.reporter.event(&Event::Met { place: found_at(at) });
            }
            LibraryEvent::Lost { why, seconds_left } => {
                self.awaits_offer(false);
                self.reporter.reconnecting(why, *seconds_left);
            }
            LibraryEvent::Path { peer, remote, route, why } => {
                self.narrator.path(*peer, remote, *route, why.as_deref());
            }
            LibraryEvent::Note { path, what } => self.reporter.note(path, what),
            LibraryEvent::Unremembered(why) => {
                self.is_unremembered.store(true, Relaxed);
                self.reporter.note("", why);
            }
            LibraryEvent::Done | LibraryEvent::Failed(_) => self.awaits_offer(false),
            _ => {}
        }
    }

    fn transfer_event(&self, _: Option<u64>, event: &TransferEvent<'_>) {
        match event {
            TransferEvent::Connected { .. } => self.awaits_offer(true),
            TransferEvent::Offer(_) => self.awaits_offer(false),
            _ => {}
        }
        self.recorder.tell(event);
        self.narrator.tell(event);
    }
}
