//! Reports the transfers of an offer as text for people and events for programs.

use std::collections::{HashMap, HashSet};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use wraith::json::EventConverter;
use wraith::{Event as LibraryEvent, Node, Observer, ProgressReader, Role};
use wraith_crypto::NodeId;
use wraith_transfer::Event as TransferEvent;

use crate::args::SendArgs;
use crate::code;
use crate::failure::{Exit, Failure};
use crate::output::Reporter;
use crate::report::{self, Narrator, shown};

/// Reports the transfers of an offer, one narrator for each receiver.
#[derive(Debug)]
pub struct SendNarrator {
    node: Node,
    reporter: Arc<Reporter>,
    converter: EventConverter,
    is_several: bool,
    to_receivers_code: bool,
    receivers: Mutex<HashMap<Option<u64>, Arc<Narrator>>>,
    /// Whether the same command cannot resume, because the run was not saved.
    is_not_stored: AtomicBool,
    /// Why a receipt was not stored.
    receipt_lost: Mutex<Option<String>>,
    /// Receivers that have started and do not have everything yet.
    started: Mutex<HashMap<Option<u64>, StartedReceiver>>,
    progress: Mutex<Option<ProgressReader>>,
    /// Receivers that are being served.
    served: watch::Sender<HashSet<Option<u64>>>,
}

/// A receiver, and whether it has accepted.
#[derive(Debug)]
struct StartedReceiver(NodeId, bool);

impl SendNarrator {
    pub fn new(node: &Node, args: &SendArgs, reporter: &Arc<Reporter>) -> Self {
        Self {
            node: node.clone(),
            reporter: Arc::clone(reporter),
            converter: EventConverter::new(node),
            is_several: args.receivers() != Some(1),
            to_receivers_code: args.code.is_some(),
            receivers: Mutex::default(),
            is_not_stored: AtomicBool::new(false),
            receipt_lost: Mutex::default(),
            started: Mutex::default(),
            progress: Mutex::default(),
            served: watch::Sender::new(HashSet::new()),
        }
    }

    /// Returns whether the same command can resume an interrupted transfer.
    pub fn is_stored(&self) -> bool {
        !self.is_not_stored.load(Relaxed)
    }

    /// Sets the source of the final progress, which is reported before the end of a transfer.
    pub fn set_progress_source(&self, progress: ProgressReader) {
        *lock(&self.progress) = Some(progress);
    }

    /// Reports the progress at the end, or before a pause.
    pub fn report_progress(&self) {
        if let Some(progress) = &mut *lock(&self.progress) {
            self.reporter.last_progress(progress);
        }
    }

    /// Returns a receiver that has started and does not have everything yet.
    pub fn started(&self) -> Option<String> {
        let started = lock(&self.started);
        let who = started.values().find(|StartedReceiver(_, has_accepted)| *has_accepted);
        who.map(|StartedReceiver(peer, _)| shown(*peer))
    }

    /// Waits until a receiver is served, or (`now`) until none is any more. Cancel-safe.
    pub async fn is_served_other_than(&self, now: bool) -> bool {
        let mut served = self.served.subscribe();
        // `self` holds the sending half, so the wait does not fail.
        let changed = served.wait_for(|served| served.is_empty() == now).await;
        changed.map_or(now, |served| !served.is_empty())
    }

    fn of(&self, receiver: Option<u64>) -> Arc<Narrator> {
        let mut receivers = self.lock();
        let narrator = receivers.entry(receiver).or_insert_with(|| {
            let narrator = Narrator::new(Role::Sender, &self.node, &self.reporter);
            let narrator = if self.is_several { narrator } else { narrator.only() };
            narrator.number(receiver);
            Arc::new(narrator)
        });
        Arc::clone(narrator)
    }

    /// Fails if a receipt of a successful transfer could not be stored.
    pub fn check_receipt_stored(&self) -> Result<(), Failure> {
        match lock(&self.receipt_lost).take() {
            None => Ok(()),
            Some(why) => Err(Failure::new(Exit::Disk, why)
                .hint("everything was sent; the same command writes the receipt again")),
        }
    }

    fn receiver_ended(&self, receiver: Option<u64>) {
        if self.is_several {
            self.lock().remove(&receiver);
        }
        self.served.send_modify(|served| {
            served.remove(&receiver);
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<u64>, Arc<Narrator>>> {
        lock(&self.receivers)
    }
}

impl Observer for SendNarrator {
    fn event(&self, receiver: Option<u64>, event: &LibraryEvent) {
        let reporter = &self.reporter;
        let is_of_receiver = matches!(
            event,
            LibraryEvent::Path { .. } | LibraryEvent::Sent { .. } | LibraryEvent::ReceiverFailed(_)
        );
        if !is_of_receiver {
            reporter.transfer_event(None, self.converter.event(event).as_ref());
        }
        match event {
            LibraryEvent::CodeUsed { place, peer } => {
                let who = shown(*peer);
                match self.to_receivers_code {
                    true => reporter.status(format!("Met the receiver, {who}, {place}.")),
                    false => reporter.status(format!("The code was used {place} by {who}.")),
                }
            }
            LibraryEvent::Resumed => {
                reporter
                    .status("Continuing for the receiver that got the ticket through this code.");
            }
            LibraryEvent::LongCode(code) => {
                reporter.status("\nFrom any other network:\n");
                reporter.print(format!("wraith receive {code}"));
            }
            LibraryEvent::NoLongCode(missing) => code::report_no_long_code(missing, reporter),
            LibraryEvent::PlaceLost { place, why } => {
                code::report_place(place, Some(why), reporter)
            }
            LibraryEvent::PlaceBack(place) => code::report_place(place, None, reporter),
            LibraryEvent::Sent { report } => {
                lock(&self.started).remove(&receiver);
                self.report_progress();
                self.of(receiver).sent(event, report);
                self.receiver_ended(receiver);
            }
            LibraryEvent::ReceiptStored(place) => {
                let path = wraith_files::shown(place.as_os_str().as_bytes());
                reporter.status(format!("The receipt is in {path}."));
            }
            LibraryEvent::ReceiptNotStored(why) => {
                *lock(&self.receipt_lost) = Some(why.clone());
            }
            LibraryEvent::Served { done, of } => {
                let of = of.map(|n| format!(" of {n}")).unwrap_or_default();
                reporter.status(format!("{done}{of} served. Waiting for the next."));
            }
            LibraryEvent::ReceiverFailed(error) => {
                self.of(receiver).receiver_failed(event, error);
                self.receiver_ended(receiver);
            }
            LibraryEvent::ConnectionLost { .. }
            | LibraryEvent::Stopped { seconds_left: Some(_), .. } => {
                self.report_progress();
                self.served.send_modify(HashSet::clear);
            }
            LibraryEvent::Stopped { by: Role::Receiver, seconds_left: None } => {
                self.receiver_ended(receiver);
            }
            LibraryEvent::ReceiverReconnected => self.receiver_ended(receiver),
            LibraryEvent::UnauthorizedPeer => {
                reporter.status("A peer was refused: its ticket belongs to another machine.");
            }
            LibraryEvent::OfferPostponed => {
                reporter.status("The receiver made a dry run. Waiting for it to come back.");
                self.receiver_ended(receiver);
            }
            LibraryEvent::Path { .. } => self.of(receiver).path(event),
            LibraryEvent::ClocksDiffer { peer, seconds } => {
                report::clocks_differ(*peer, *seconds, reporter);
            }
            LibraryEvent::StateNotStored(_) => self.is_not_stored.store(true, Relaxed),
            _ => {}
        }
    }

    fn transfer_event(&self, receiver: Option<u64>, event: &TransferEvent<'_>) {
        match event {
            TransferEvent::Connected { peer, .. } => {
                lock(&self.started).entry(receiver).or_insert(StartedReceiver(*peer, false)).0 =
                    *peer;
            }
            TransferEvent::Accepted => {
                let mut started = lock(&self.started);
                started.entry(receiver).and_modify(|started| started.1 = true);
            }
            _ => {}
        }
        // Before the receiver has answered, there is no progress to show to people.
        let begins = match event {
            TransferEvent::Connected { .. } => !self.reporter.shows_status(),
            TransferEvent::Accepted => true,
            _ => false,
        };
        if begins {
            self.served.send_modify(|served| {
                served.insert(receiver);
            });
        }
        self.of(receiver).transfer_event(event);
    }
}

/// Locks a mutex, even after a panic. The protected data is valid after each change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Displays a number of receivers: `1 receiver`, `2 receivers`.
pub struct Receivers(pub u32);

impl std::fmt::Display for Receivers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} receiver{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}
