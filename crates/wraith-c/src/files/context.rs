//! The state that the task, the callback thread and the caller of a transfer share. The events of a
//! service are reported in the same way.

use std::cell::Cell;
use std::ptr;
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::event::{OfferShown, wraith_answer_t};
use super::progress::Figures;
use crate::status::wraith_status_t::WRAITH_INVALID_STATE;
use crate::status::{Failure, Outcome};
use crate::waiting::{TaskResult, deadline, timed_out, wait_until};

/// An offer that waits for an answer, and where the answer goes.
pub(crate) type Question = (OfferShown, oneshot::Sender<wraith_answer_t>);

thread_local! {
    /// The transfer whose callbacks run on this thread; only compared, never dereferenced.
    static CALLS_BACK_FOR: Cell<*const TransferContext> = const { Cell::new(ptr::null()) };
}

/// State shared by the task, the callback thread and the caller.
pub(crate) struct TransferContext {
    /// Cancelled to stop the transfer.
    pub stop: CancellationToken,
    /// Cancelled when the handle is freed: no callback but `release` follows.
    pub freed: CancellationToken,
    /// Cancelled once no callback runs, and none will.
    pub callbacks_ended: CancellationToken,
    pub result: TaskResult<()>,
    questions: mpsc::UnboundedSender<Question>,
    pub figures: Figures,
}

impl TransferContext {
    pub fn new(
        stop: CancellationToken,
        freed: CancellationToken,
        result: TaskResult<()>,
    ) -> (Arc<Self>, mpsc::UnboundedReceiver<Question>) {
        let (questions, asked) = mpsc::unbounded_channel();
        let shared = Self {
            stop,
            freed,
            callbacks_ended: CancellationToken::new(),
            result,
            questions,
            figures: Figures::default(),
        };
        (Arc::new(shared), asked)
    }

    /// Marks this thread as the one that runs the callbacks.
    pub fn enter_callbacks(&self) {
        CALLS_BACK_FOR.set(self);
    }

    /// Asks the callback about an offer. Returns `None` if there is no callback any more.
    pub async fn ask(&self, offer: OfferShown) -> Option<wraith_answer_t> {
        let (answer_tx, answer) = oneshot::channel();
        self.questions.send((offer, answer_tx)).ok()?;
        answer.await.ok()
    }

    /// Waits for the end of `work`, and forwards a request to stop.
    pub async fn drive<T>(&self, stop: impl FnOnce(), work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        tokio::select! {
            end = &mut work => return end,
            () = self.stop.cancelled() => stop(),
        }
        work.await
    }

    /// Waits for the end of the transfer, as `wraith_transfer_wait` describes.
    pub fn wait(&self, timeout_ms: u64) -> Outcome {
        if ptr::eq(CALLS_BACK_FOR.get(), self) {
            let words = "a callback cannot wait for the transfer that called it";
            let refused = || Err(Failure::new(WRAITH_INVALID_STATE, words));
            return self.result.now().unwrap_or_else(refused);
        }
        let ended = wait_until(deadline(timeout_ms), async {
            self.callbacks_ended.cancelled().await;
            self.result.get().await
        });
        ended.unwrap_or_else(|| Err(timed_out()))
    }
}
