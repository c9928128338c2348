//! An offer or a fetch under way: its result, its figures, and the thread that calls back.

use std::cell::Cell;
use std::ptr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use wraith::{Observer, ProgressReader};

use super::event::Event;
use super::node::Inner;
use super::queue::{Item, Queue};
use crate::border::{Callbacks, Plain, entry};
use crate::status::wraith_status_t::*;
use crate::status::{Failure, Outcome, wraith_status_t};
use crate::table::{Kind, Table};

/// An offer or a fetch.
pub type wraith_transfer_t = u64;

/// For `timeout_ms`: for as long as it takes.
pub const WRAITH_FOREVER: u64 = u64::MAX;

/// How far a transfer is, or what came of it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct wraith_progress_t {
    /// Bytes settled: moved, there already, or of files that failed.
    pub bytes: u64,
    /// Bytes of all files in the offer.
    pub bytes_total: u64,
    /// Files settled.
    pub files: u64,
    /// Files in the offer.
    pub files_total: u64,
    /// Bytes that moved in a second, over the last five seconds.
    pub bytes_per_second: u64,
    /// Receivers that have confirmed everything, of an offer that has ended.
    pub receivers: u64,
}

// SAFETY: integers.
unsafe impl Plain for wraith_progress_t {}

static TRANSFERS: Table<Transfer> = Table::new(Kind::Transfer);

/// What the caller holds. Dropping it stops the transfer.
pub(super) struct Transfer {
    shared: Arc<Shared>,
    code: Option<String>,
    ticket: Option<String>,
    /// Keeps the node and its threads.
    _node: Arc<Inner>,
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.shared.queue.close();
        self.shared.stop.cancel();
    }
}

thread_local! {
    /// The transfer whose callbacks this thread calls; only compared.
    static CALLS_BACK_FOR: Cell<*const Shared> = const { Cell::new(ptr::null()) };
}

/// What the task, the thread that calls back, and the caller share.
pub(super) struct Shared {
    pub queue: Queue,
    pub stop: CancellationToken,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    result: Option<Outcome>,
    figures: Option<ProgressReader>,
    last_figures: wraith_progress_t,
    /// No callback runs, and none will.
    is_told: bool,
}

impl Shared {
    pub fn new(node: &Inner) -> Arc<Self> {
        Arc::new(Self {
            queue: Queue::default(),
            stop: node.stop.child_token(),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// Reads figures from here from now on.
    pub fn set_figures(&self, figures: ProgressReader) {
        self.lock().figures = Some(figures);
    }

    pub fn tell_progress(&self) {
        let figures = self.lock().read();
        self.queue.progress(Event::progress(figures.files, figures.bytes));
    }

    /// The end, of which the thread that calls back hears last.
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
        self.queue.tell(last);
        self.changed.notify_all();
    }

    /// Calls back from a thread of its own, until the last event was told.
    fn begin_to_tell(self: &Arc<Self>, callbacks: Callbacks) -> Outcome {
        let shared = Arc::clone(self);
        let thread = thread::Builder::new().name("wraith-events".into()).spawn(move || {
            CALLS_BACK_FOR.set(Arc::as_ptr(&shared));
            loop {
                match shared.queue.next() {
                    Item::Tell(event) => callbacks.tell(&event),
                    Item::Ask(offer, answer) => drop(answer.send(callbacks.ask(&offer))),
                    Item::Over => break,
                }
            }
            callbacks.release();
            shared.told();
        });
        thread
            .map(drop)
            .map_err(|error| Failure::new(WRAITH_OTHER, format!("cannot start a thread: {error}")))
    }

    fn told(&self) {
        self.lock().is_told = true;
        self.changed.notify_all();
    }

    fn wait(&self, timeout: Option<Duration>) -> Outcome {
        let is_in_callback = ptr::eq(CALLS_BACK_FOR.get(), self);
        let is_over = |state: &State| state.result.is_some() && (state.is_told || is_in_callback);
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
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

/// Tells the end of a transfer, also where its task is thrown away with the node's threads.
pub(super) struct Ending(Option<Arc<Shared>>);

impl Ending {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self(Some(shared))
    }

    pub fn end(mut self, result: Outcome, receivers: u64) {
        if let Some(shared) = self.0.take() {
            shared.end(result, receivers);
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.end(Err(Failure::new(WRAITH_CANCELLED, "its node was freed")), 0);
        }
    }
}

/// Puts what happens into the queue.
pub(super) struct Teller {
    pub shared: Arc<Shared>,
    pub node: wraith::Node,
}

impl Observer for Teller {
    fn event(&self, _receiver: Option<u64>, event: &wraith::Event) {
        if let Some(event) = Event::of(event, |remote| self.node.shown(remote)) {
            self.shared.queue.tell(event);
        }
    }
}

/// Makes the handle of a transfer whose task runs, and begins to call back.
pub(super) fn insert(
    node: Arc<Inner>,
    shared: Arc<Shared>,
    callbacks: Option<Callbacks>,
    (code, ticket): (Option<String>, Option<String>),
) -> Outcome<wraith_transfer_t> {
    // From here on a failure drops it, which stops the task.
    let transfer = Transfer { shared: Arc::clone(&shared), code, ticket, _node: node };
    let handle = TRANSFERS.insert(transfer)?;
    let begun = match callbacks {
        Some(callbacks) => shared.begin_to_tell(callbacks),
        None => {
            shared.queue.close();
            shared.told();
            Ok(())
        }
    };
    match begun {
        Ok(()) => Ok(handle),
        Err(failure) => TRANSFERS.remove(handle).and(Err(failure)),
    }
}

/// The code of an offer, for people to say. `WRAITH_NOT_FOUND` if it has none: there is a ticket then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_transfer_code(
    transfer: wraith_transfer_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let (output, transfer) = (call.output(out, out_cap, out_len)?, TRANSFERS.get(transfer)?);
        let code = transfer.code.as_ref().ok_or_else(|| none("code"))?;
        output.write(code.as_bytes())
    })
}

/// The ticket of an offer by ticket: a secret, good for whoever has it. `WRAITH_NOT_FOUND` if it has none to show.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_transfer_ticket(
    transfer: wraith_transfer_t,
    out: *mut u8,
    out_cap: usize,
    out_len: *mut usize,
) -> wraith_status_t {
    entry!(|call| {
        let (output, transfer) = (call.output(out, out_cap, out_len)?, TRANSFERS.get(transfer)?);
        let ticket = transfer.ticket.as_ref().ok_or_else(|| none("ticket"))?;
        output.write(ticket.as_bytes())
    })
}

fn none(what: &str) -> Failure {
    Failure::new(WRAITH_NOT_FOUND, format!("this transfer has no {what}"))
}

/// How far it is. After the end, how far it came.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wraith_transfer_progress(
    transfer: wraith_transfer_t,
    out: *mut wraith_progress_t,
) -> wraith_status_t {
    entry!(|call| {
        let (place, transfer) = (call.place(out)?, TRANSFERS.get(transfer)?);
        let figures = transfer.shared.lock().read();
        place.put(figures);
        Ok(())
    })
}

/// Waits until it is over, `timeout_ms` milliseconds at most (`WRAITH_FOREVER`), and returns how it ended: `WRAITH_OK`, why
/// not, or `WRAITH_TIMED_OUT` if it goes on. After anything but that no callback runs and none will follow. Any number of
/// threads may wait, any number of times.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_transfer_wait(
    transfer: wraith_transfer_t,
    timeout_ms: u64,
) -> wraith_status_t {
    entry!(|_call| {
        // The transfer itself is not held: freeing it meanwhile stops it.
        let shared = Arc::clone(&TRANSFERS.get(transfer)?.shared);
        let timeout = (timeout_ms != WRAITH_FOREVER).then(|| Duration::from_millis(timeout_ms));
        shared.wait(timeout)
    })
}

/// Asks it to stop, and does not wait; `wraith_transfer_wait` does. What has arrived stays, and the same another time
/// continues.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_transfer_cancel(transfer: wraith_transfer_t) -> wraith_status_t {
    entry!(|_call| {
        TRANSFERS.get(transfer)?.shared.stop.cancel();
        Ok(())
    })
}

/// Frees it, and stops it if it runs. A callback that is running ends as it likes, and `release` is the only one that
/// follows; this does not wait for it.
#[unsafe(no_mangle)]
pub extern "C" fn wraith_transfer_free(transfer: wraith_transfer_t) -> wraith_status_t {
    entry!(|_call| TRANSFERS.remove(transfer).map(drop))
}
