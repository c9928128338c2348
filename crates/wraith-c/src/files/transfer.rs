//! A running offer or fetch: its result, its progress, and its callbacks.

use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wraith::{Events, Offer};

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

static wraith_transfer_t: Table<Transfer> = Table::new(Kind::Transfer);

/// The object behind the caller's handle.
struct Transfer {
    shared: Arc<TransferContext>,
    /// `None` for a fetch.
    offer: Option<Arc<Offer>>,
    /// Keeps the node and its threads alive.
    _node: Arc<NodeRuntime>,
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
    offer: Option<Arc<Offer>>,
    reports: Reports,
    work: impl FnOnce(Arc<TransferContext>) -> W,
) -> Outcome<wraith_transfer_t>
where
    W: Future<Output = (Outcome, u64)> + Send + 'static,
{
    let (result_tx, result) = watch::channel(None);
    let (stop, freed) = (node.stop.child_token(), CancellationToken::new());
    let (shared, questions) = TransferContext::new(stop, freed, TaskResult(result));
    // A failure drops `work`, which stops the transfer.
    let transfer = Transfer { shared: Arc::clone(&shared), offer, _node: Arc::clone(&node) };
    let handle = wraith_transfer_t.insert(transfer)?;
    let Reports { callbacks, events, progress_ms } = reports;
    match callbacks {
        Some(callbacks) => {
            let shared = Arc::clone(&shared);
            let node = node.node.clone();
            let thread = CallbackThread { shared, node, events, questions, progress_ms };
            if let Err(failure) = thread.start(callbacks) {
                return wraith_transfer_t.remove(handle).and(Err(failure));
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
    pub fn wraith_transfer_code(transfer: Object<wraith_transfer_t>, out: Buffer) -> Outcome {
        let code = transfer.offer.as_ref().and_then(|offer| offer.code());
        out.write_found(code.map(ToString::to_string), "this transfer has no code")
    }

    /// Returns the ticket of an offer by ticket: a secret, valid for any receiver that has it.
    /// `WRAITH_NOT_FOUND` if there is none to show.
    pub fn wraith_transfer_ticket(transfer: Object<wraith_transfer_t>, out: Buffer) -> Outcome {
        let ticket = transfer.offer.as_ref().and_then(|offer| offer.ticket());
        out.write_found(ticket.map(ToString::to_string), "this transfer has no ticket")
    }

    /// Returns the NodeIds (32 bytes each, one after the other) of receivers that had the code of
    /// an unfinished earlier run of this offer. They can resume without a new code. No bytes if
    /// there are none.
    pub fn wraith_transfer_continues_for(
        transfer: Object<wraith_transfer_t>,
        out: Buffer,
    ) -> Outcome {
        let receivers = transfer.offer.iter().flat_map(|offer| offer.continues_for());
        out.write(&receivers.flat_map(|id| *id.as_bytes()).collect::<Vec<_>>())
    }

    /// Returns the progress of a transfer; after the end, the final figures.
    pub fn wraith_transfer_progress(
        transfer: Object<wraith_transfer_t>,
    ) -> Outcome<wraith_progress_t> {
        Ok(transfer.shared.figures.read())
    }

    /// Waits for the end of the transfer, for at most `timeout_ms` milliseconds (or
    /// `WRAITH_FOREVER`).
    ///
    /// Returns `WRAITH_OK`, the status of its failure, or `WRAITH_TIMED_OUT` if the transfer is
    /// still running. With any other result than `WRAITH_TIMED_OUT`, no callback is running and
    /// none will follow. Any number of threads may wait, any number of times.
    pub fn wraith_transfer_wait(transfer: Object<wraith_transfer_t>, timeout_ms: u64) -> Outcome {
        transfer.shared.wait(timeout_ms)
    }

    /// Requests a stop and returns at once; use `wraith_transfer_wait` to wait for the end.
    /// Verified data is kept, and the same transfer can be resumed later.
    pub fn wraith_transfer_cancel(transfer: Object<wraith_transfer_t>) -> Outcome {
        transfer.shared.stop.cancel();
        Ok(())
    }

    /// Frees the transfer, and stops it if it is running. Does not wait for a callback that is
    /// running. After that callback, only `release` is called.
    pub fn wraith_transfer_free(transfer: wraith_transfer_t) -> Outcome {
        wraith_transfer_t.remove(transfer).map(|transfer| {
            transfer.shared.freed.cancel();
            transfer.shared.stop.cancel();
        })
    }
);
