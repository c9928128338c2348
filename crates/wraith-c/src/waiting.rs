//! Waiting: a call polls its future on the thread of the caller, on any thread, also inside a
//! runtime of the caller.

use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::status::wraith_status_t::{WRAITH_CANCELLED, WRAITH_TIMED_OUT};
use crate::status::{Failure, Outcome};

/// For `timeout_ms`: no time limit.
pub const WRAITH_FOREVER: u64 = u64::MAX;

/// Waits for `work`, for at most `timeout_ms` milliseconds and until `freed` is cancelled. Dropping
/// `work` must lose nothing.
pub(crate) fn wait<T>(
    timeout_ms: u64,
    freed: &CancellationToken,
    work: impl Future<Output = Outcome<T>>,
) -> Outcome<T> {
    let work = async {
        tokio::select! {
            biased;
            () = freed.cancelled() => {
                Err(Failure::new(WRAITH_CANCELLED, "the handle was freed or closed meanwhile"))
            }
            ended = work => ended,
        }
    };
    wait_until(deadline(timeout_ms), work).unwrap_or_else(|| Err(timed_out()))
}

/// Returns the end of a time limit; `None` if there is no limit.
pub(crate) fn deadline(timeout_ms: u64) -> Option<Instant> {
    let limit = (timeout_ms != WRAITH_FOREVER).then(|| Duration::from_millis(timeout_ms));
    limit.and_then(|limit| Instant::now().checked_add(limit))
}

pub(crate) fn timed_out() -> Failure {
    Failure::new(WRAITH_TIMED_OUT, "nothing came within the time limit")
}

/// Polls `work` once, and again at each wake-up until the deadline. Returns `None` if the deadline
/// comes first.
pub(crate) fn wait_until<T>(deadline: Option<Instant>, work: impl Future<Output = T>) -> Option<T> {
    let signal = Arc::new(Signal::default());
    let waker = Waker::from(Arc::clone(&signal));
    let mut work = pin!(work);
    loop {
        if let Poll::Ready(ended) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(ended);
        }
        if !signal.wait(deadline) {
            return None;
        }
    }
}

/// Wakes the thread that waits. It does not use the thread's handle of the standard library, which
/// is never freed on a main thread that is not Rust's.
#[derive(Debug, Default)]
struct Signal {
    is_woken: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    /// Waits for a wake-up. Returns false if the deadline comes first.
    fn wait(&self, deadline: Option<Instant>) -> bool {
        let mut is_woken = self.is_woken.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_woken {
            is_woken = match deadline {
                None => self.changed.wait(is_woken).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    let waited = self.changed.wait_timeout(is_woken, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *is_woken = false;
        true
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        *self.is_woken.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_one();
    }
}

/// The result of a task of a node, for any number of waiters.
#[derive(Clone, Debug)]
pub(crate) struct TaskResult<T>(pub(crate) watch::Receiver<Option<Outcome<T>>>);

impl<T: Clone> TaskResult<T> {
    /// Waits for the end of the task.
    pub async fn get(&self) -> Outcome<T> {
        match self.0.clone().wait_for(Option::is_some).await {
            Ok(result) => result.clone().expect("it was waited for until it is some"),
            Err(_) => Err(Failure::new(WRAITH_CANCELLED, "its node was freed")),
        }
    }

    /// Returns the result if the task has ended.
    pub fn now(&self) -> Option<Outcome<T>> {
        wait_until(Some(Instant::now()), self.get())
    }
}
