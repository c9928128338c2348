//! Raw connections: services, connections to them, and the streams of a connection.
//!
//! ```text
//!   wraith_serve ──▶ service ──accept──▶ connection ──open, accept──▶ stream
//!   wraith_connect ──────────────────────▶ connection
//! ```
//!
//! A call that waits polls its future on the thread of the caller, until the time limit or until
//! its handle is freed. Only finding a service is a task of the node's runtime.
//!
//! Every object keeps the node and what it came from alive, so handles may be freed in any order.

pub mod connection;
pub mod service;
pub mod stream;

use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use wraith::CloseReason;

use crate::files::transfer::WRAITH_FOREVER;
use crate::status::wraith_status_t::{
    WRAITH_CANCELLED, WRAITH_CONNECTION_CLOSED, WRAITH_TIMED_OUT,
};
use crate::status::{Failure, Outcome};

/// Waits for `work`, for at most `timeout_ms` milliseconds and until `freed` is cancelled. Dropping
/// `work` must lose nothing.
fn wait<T>(
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
    let limit = (timeout_ms != WRAITH_FOREVER).then(|| Duration::from_millis(timeout_ms));
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let signal = Arc::new(Signal::default());
    let waker = Waker::from(Arc::clone(&signal));
    let mut work = pin!(work);
    loop {
        if let Poll::Ready(ended) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
            return ended;
        }
        if !signal.wait(deadline) {
            return Err(Failure::new(WRAITH_TIMED_OUT, "nothing came within the time limit"));
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

/// The failure of a call whose connection has ended.
fn ended(reason: &CloseReason) -> Failure {
    Failure::new(WRAITH_CONNECTION_CLOSED, format!("the connection has ended: {reason}"))
}
