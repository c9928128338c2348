//! A running offer or fetch: its result, its progress, and its callback thread.

use std::cell::Cell;
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use wraith::{Observer, ProgressReader};

use super::event::Event;
use super::node::NodeRuntime;
use super::queue::{CallbackAction, Queue};
use crate::border::{Callbacks, Plain, export};
use crate::status::wraith_status_t::*;
use crate::status::{Failure, Outcome};
use crate::table::{Kind, Table};

/// An offer or a fetch.
pub type wraith_transfer_t = u64;

/// For `timeout_ms`: no time limit.
pub const WRAITH_FOREVER: u64 = u64::MAX;

/// Progress of a transfer, or its final figures.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct wraith_progress_t {
    /// Bytes settled: transferred, already present, or of failed files.
    pub bytes: u64,
    /// Bytes of all files in the offer.
    pub bytes_total: u64,
    /// Number of settled files.
    pub files: u64,
    /// Number of files in the offer.
    pub files_total: u64,
    /// Bytes transferred per second, averaged over the last five seconds.
    pub bytes_per_second: u64,
    /// Number of receivers that confirmed everything; set when an offer has ended.
    pub receivers: u64,
}

// SAFETY: integers.
unsafe impl Plain for wraith_progress_t {}

static TRANSFERS: Table<Transfer> = Table::new(Kind::Transfer);

/// Code, ticket and earlier receivers of an offer. Empty for a fetch.
#[derive(Default)]
pub(super) struct Invitation {
    pub code: Option<String>,
    pub ticket: Option<String>,
    /// NodeIds, one after the other.
    pub continues_for: Vec<u8>,
}

/// The object behind the caller's handle. Drop stops the transfer.
pub(super) struct Transfer {
    shared: Arc<TransferContext>,
    invitation: Invitation,
    /// Keeps the node and its threads alive.
    _node: Arc<NodeRuntime>,
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.shared.queue.close();
        self.shared.stop.cancel();
    }
}

thread_local! {
    /// The transfer whose callbacks run on this thread; only compared, never dereferenced.
    static CALLS_BACK_FOR: Cell<*const TransferContext> = const { Cell::new(ptr::null()) };
}

/// State shared by the task, the callback thread and the caller.
pub(super) struct TransferContext {
    pub queue: Queue,
    pub stop: CancellationToken,
    state: Mutex<TransferState>,
    changed: Condvar,
}

#[derive(Default)]
struct TransferState {
    result: Option<Outcome>,
    figures: Option<ProgressReader>,
    last_figures: wraith_progress_t,
    /// No callback runs, and none will.
    callbacks_ended: bool,
}

impl TransferContext {
    pub fn new(node: &NodeRuntime) -> Arc<Self> {
        Arc::new(Self {
            queue: Queue::default(),
            stop: node.stop.child_token(),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Sets the source of progress figures.
    pub fn set_figures(&self, figures: ProgressReader) {
        self.lock().figures = Some(figures);
    }

    pub fn queue_progress(&self) {
        let figures = self.lock().read();
        self.queue.set_progress(Event::progress(figures.files, figures.bytes));
    }

    /// Records the end and queues it as the last event.
    fn end(&self, result: Outcome, receivers: u64) {
        let mut state = self.lock();
        state.read();
        state.last_figures.bytes_per_second = 0;
        state.last_figures.receivers = receivers;
        state.figures = None;
        let last = match &result {
            Ok(()) => Event::done(),
            Err(failure) => Event::failed(failure),
        };
        state.result = Some(result);
        drop(state);
        self.queue.push(last);
        self.changed.notify_all();
    }

    /// Starts the callback thread, which runs until the last event is delivered.
    fn start_callbacks(self: &Arc<Self>, callbacks: Callbacks) -> Outcome {
        let shared = Arc::clone(self);
        let thread = thread::Builder::new().name("wraith-events".into()).spawn(move || {
            CALLS_BACK_FOR.set(Arc::as_ptr(&shared));
            loop {
                match shared.queue.next() {
                    CallbackAction::Event(event) => callbacks.report(&event),
                    CallbackAction::Question(offer, answer) => {
                        let _ = answer.send(callbacks.ask(&offer));
                    }
                    CallbackAction::End => break,
                }
            }
            callbacks.release();
            shared.set_callbacks_ended();
        });
        thread
            .map(drop)
            .map_err(|error| Failure::new(WRAITH_OTHER, format!("cannot start a thread: {error}")))
    }

    fn set_callbacks_ended(&self) {
        self.lock().callbacks_ended = true;
        self.changed.notify_all();
    }

    fn wait(&self, timeout: Option<Duration>) -> Outcome {
        let is_in_callback = ptr::eq(CALLS_BACK_FOR.get(), self);
        let is_over = |state: &TransferState| {
            state.result.is_some() && (state.callbacks_ended || is_in_callback)
        };
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let mut state = self.lock();
        while !is_over(&state) {
            if is_in_callback {
                let words = "a callback cannot wait for the transfer that called it";
                return Err(Failure::new(WRAITH_INVALID_STATE, words));
            }
            state = match deadline {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(Failure::new(WRAITH_TIMED_OUT, "it is not over yet"));
                    }
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        state.result.clone().expect("it is over")
    }

    fn lock(&self) -> MutexGuard<'_, TransferState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TransferState {
    fn read(&mut self) -> wraith_progress_t {
        if let Some(now) = self.figures.as_mut().and_then(ProgressReader::read) {
            self.last_figures = wraith_progress_t {
                bytes: now.bytes,
                bytes_total: now.bytes_total,
                files: now.files,
                files_total: now.files_total,
                bytes_per_second: now.bytes_per_second,
                receivers: 0,
            };
        }
        self.last_figures
    }
}

/// Reports the end of a transfer, even if its task is dropped together with the node's threads.
pub(super) struct EndGuard(Option<Arc<TransferContext>>);

impl EndGuard {
    pub fn new(shared: Arc<TransferContext>) -> Self {
        Self(Some(shared))
    }

    pub fn end(mut self, result: Outcome, receivers: u64) {
        if let Some(shared) = self.0.take() {
            shared.end(result, receivers);
        }
    }
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.end(Err(Failure::new(WRAITH_CANCELLED, "its node was freed")), 0);
        }
    }
}

/// Puts events into the queue.
pub(super) struct EventForwarder {
    pub shared: Arc<TransferContext>,
    pub node: wraith::Node,
}

impl Observer for EventForwarder {
    fn event(&self, _receiver: Option<u64>, event: &wraith::Event) {
        // The transfer reports its end itself.
        if !event.is_last() {
            let event = Event::of(event.clone(), |remote| self.node.shown(remote));
            self.shared.queue.push(event);
        }
    }
}

/// Creates the handle of a transfer whose task is running, and starts its callbacks.
pub(super) fn insert(
    node: Arc<NodeRuntime>,
    shared: Arc<TransferContext>,
    callbacks: Option<Callbacks>,
    invitation: Invitation,
) -> Outcome<wraith_transfer_t> {
    // From this point on, a failure drops the transfer, which stops the task.
    let transfer = Transfer { shared: Arc::clone(&shared), invitation, _node: node };
    let handle = TRANSFERS.insert(transfer)?;
    let begun = match callbacks {
        Some(callbacks) => shared.start_callbacks(callbacks),
        None => {
            shared.queue.close();
            shared.set_callbacks_ended();
            Ok(())
        }
    };
    match begun {
        Ok(()) => Ok(handle),
        Err(failure) => TRANSFERS.remove(handle).and(Err(failure)),
    }
}

export!(
    /// Returns the code of an offer, for people to say. `WRAITH_NOT_FOUND` if it has none; it then
    /// has a ticket.
    pub fn wraith_transfer_code(transfer: wraith_transfer_t, out: Buffer) -> Outcome {
        let transfer = TRANSFERS.get(transfer)?;
        let code = transfer.invitation.code.as_ref().ok_or_else(|| none("code"))?;
        out.write(code.as_bytes())
    }

    /// Returns the ticket of an offer by ticket: a secret, valid for any receiver that has it.
    /// `WRAITH_NOT_FOUND` if there is none to show.
    pub fn wraith_transfer_ticket(transfer: wraith_transfer_t, out: Buffer) -> Outcome {
        let transfer = TRANSFERS.get(transfer)?;
        let ticket = transfer.invitation.ticket.as_ref().ok_or_else(|| none("ticket"))?;
        out.write(ticket.as_bytes())
    }

    /// Returns the NodeIds (32 bytes each, one after the other) of receivers that had the code of
    /// an unfinished earlier run of this offer. They can resume without a new code. No bytes if
    /// there are none.
    pub fn wraith_transfer_continues_for(transfer: wraith_transfer_t, out: Buffer) -> Outcome {
        out.write(&TRANSFERS.get(transfer)?.invitation.continues_for)
    }

    /// Returns the progress of a transfer; after the end, the final figures.
    pub fn wraith_transfer_progress(transfer: wraith_transfer_t) -> Outcome<wraith_progress_t> {
        let transfer = TRANSFERS.get(transfer)?;
        let figures = transfer.shared.lock().read();
        Ok(figures)
    }

    /// Waits for the end of the transfer, for at most `timeout_ms` milliseconds (or
    /// `WRAITH_FOREVER`).
    ///
    /// Returns `WRAITH_OK`, the status of its failure, or `WRAITH_TIMED_OUT` if the transfer is
    /// still running. With any other result than `WRAITH_TIMED_OUT`, no callback is running and
    /// none will follow. Any number of threads may wait, any number of times.
    pub fn wraith_transfer_wait(transfer: wraith_transfer_t, timeout_ms: u64) -> Outcome {
        // Does not hold the transfer itself: freeing it meanwhile stops it.
        let shared = Arc::clone(&TRANSFERS.get(transfer)?.shared);
        let timeout = (timeout_ms != WRAITH_FOREVER).then(|| Duration::from_millis(timeout_ms));
        shared.wait(timeout)
    }

    /// Requests a stop and returns at once; use `wraith_transfer_wait` to wait for the end.
    /// Verified data is kept, and the same transfer can be resumed later.
    pub fn wraith_transfer_cancel(transfer: wraith_transfer_t) -> Outcome {
        TRANSFERS.get(transfer)?.shared.stop.cancel();
        Ok(())
    }

    /// Frees the transfer, and stops it if it is running. Does not wait for a callback that is
    /// running. After that callback, only `release` is called.
    pub fn wraith_transfer_free(transfer: wraith_transfer_t) -> Outcome {
        TRANSFERS.free(transfer)
    }
);

fn none(what: &str) -> Failure {
    Failure::new(WRAITH_NOT_FOUND, format!("this transfer has no {what}"))
}
