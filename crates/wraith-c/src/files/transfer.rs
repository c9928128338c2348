//! A running offer or fetch: its result, its progress, and its callbacks.

use std::sync::Arc;

use tokio::sync::watch;
use wraith::Events;

use super::callback_thread::CallbackThread;
use super::context::TransferContext;
use super::node::NodeRuntime;
use super::progress::wraith_progress_t;
use crate::border::{Callbacks, export};
use crate::status::Outcome;
use crate::table::{Kind, Table};
use crate::waiting::TaskResult;

/// An offer or a fetch.
pub type wraith_transfer_t = u64;

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
struct Transfer {
    shared: Arc<TransferContext>,
    invitation: Invitation,
    /// Keeps the node and its threads alive.
    _node: Arc<NodeRuntime>,
}

impl Drop for Transfer {
    fn drop(&mut self) {
        self.shared.freed.cancel();
        self.shared.stop.cancel();
    }
}

/// How a transfer reports to its caller.
pub(super) struct Reports {
    pub callbacks: Option<Callbacks>,
    pub events: Events,
    /// Interval of progress events; 0 for none.
    pub progress_ms: u64,
}

/// Creates the handle of a transfer, starts its callbacks, and runs it: `work` returns its result
/// and the number of receivers.
pub(super) fn start<W>(
    node: Arc<NodeRuntime>,
    invitation: Invitation,
    reports: Reports,
    work: impl FnOnce(Arc<TransferContext>) -> W,
) -> Outcome<wraith_transfer_t>
where
    W: Future<Output = (Outcome, u64)> + Send + 'static,
{
    let (result_tx, result) = watch::channel(None);
    let (shared, questions) = TransferContext::new(node.stop.child_token(), TaskResult(result));
    // From this point on, a failure drops the transfer, which stops the task.
    let transfer = Transfer { shared: Arc::clone(&shared), invitation, _node: Arc::clone(&node) };
    let handle = TRANSFERS.insert(transfer)?;
    let Reports { callbacks, events, progress_ms } = reports;
    match callbacks {
        Some(callbacks) => {
            let shared = Arc::clone(&shared);
            let node = node.node.clone();
            let thread = CallbackThread { shared, node, events, questions, progress_ms };
            if let Err(failure) = thread.start(callbacks) {
                return TRANSFERS.remove(handle).and(Err(failure));
            }
        }
        None => shared.callbacks_ended.cancel(),
    }
    let work = work(Arc::clone(&shared));
    node.spawn(async move {
        let (result, receivers) = work.await;
        shared.figures.end(receivers);
        result_tx.send_replace(Some(result));
    });
    Ok(handle)
}

export!(
    /// Returns the code of an offer, for people to say. `WRAITH_NOT_FOUND` if it has none; it then
    /// has a ticket.
    pub fn wraith_transfer_code(transfer: wraith_transfer_t, out: Buffer) -> Outcome {
        let transfer = TRANSFERS.get(transfer)?;
        out.write_found(transfer.invitation.code.as_ref(), "this transfer has no code")
    }

    /// Returns the ticket of an offer by ticket: a secret, valid for any receiver that has it.
    /// `WRAITH_NOT_FOUND` if there is none to show.
    pub fn wraith_transfer_ticket(transfer: wraith_transfer_t, out: Buffer) -> Outcome {
        let transfer = TRANSFERS.get(transfer)?;
        out.write_found(transfer.invitation.ticket.as_ref(), "this transfer has no ticket")
    }

    /// Returns the NodeIds (32 bytes each, one after the other) of receivers that had the code of
    /// an unfinished earlier run of this offer. They can resume without a new code. No bytes if
    /// there are none.
    pub fn wraith_transfer_continues_for(transfer: wraith_transfer_t, out: Buffer) -> Outcome {
        out.write(&TRANSFERS.get(transfer)?.invitation.continues_for)
    }

    /// Returns the progress of a transfer; after the end, the final figures.
    pub fn wraith_transfer_progress(transfer: wraith_transfer_t) -> Outcome<wraith_progress_t> {
        Ok(TRANSFERS.get(transfer)?.shared.figures.read())
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
        shared.wait(timeout_ms)
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
