//! Runs a future on the calling thread, which parks until its waker unparks it. So this crate needs
//! no async runtime.

use std::cell::RefCell;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// The waker of one thread.
#[derive(Debug)]
struct Parker {
    thread: Thread,
    woken: AtomicBool,
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.thread.unpark();
        }
    }
}

thread_local! {
    /// One parker per thread is enough: a nested `block_on` costs the outer one at most a spurious
    /// poll, because the outer one starts by polling again.
    static PARKER: RefCell<Option<(Arc<Parker>, Waker)>> = const { RefCell::new(None) };
}

fn parker() -> (Arc<Parker>, Waker) {
    PARKER.with_borrow_mut(|slot| {
        slot.get_or_insert_with(|| {
            let parker =
                Arc::new(Parker { thread: thread::current(), woken: AtomicBool::new(false) });
            (Arc::clone(&parker), Waker::from(parker))
        })
        .clone()
    })
}

/// Runs `future` to completion on this thread.
pub fn block_on<F: Future>(future: F) -> F::Output {
    run(future, None).expect("without a deadline it only returns with the output")
}

/// Runs `future` for at most `limit`. Returns `None` if it did not finish; the future is then
/// dropped.
pub fn block_on_timeout<F: Future>(future: F, limit: Duration) -> Option<F::Output> {
    run(future, Instant::now().checked_add(limit))
}

fn run<F: Future>(future: F, deadline: Option<Instant>) -> Option<F::Output> {
    let mut future = pin!(future);
    let (parker, waker) = parker();
    let mut cx = Context::from_waker(&waker);
    loop {
        parker.woken.store(false, Ordering::Release);
        if let Poll::Ready(output) = future.as_mut().poll(&mut cx) {
            // A nested call may have consumed the wake-up of an outer one: make the outer one poll
            // again.
            parker.woken.store(true, Ordering::Release);
            return Some(output);
        }
        while !parker.woken.load(Ordering::Acquire) {
            match deadline {
                None => thread::park(),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        parker.woken.store(true, Ordering::Release);
                        return None;
                    }
                    thread::park_timeout(left);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, poll_fn, ready};
    use std::sync::Mutex;

    #[test]
    fn a_ready_future_returns_at_once() {
        assert_eq!(block_on(ready(3)), 3);
    }

    #[test]
    fn another_thread_wakes_it() {
        let slot = Arc::new(Mutex::new((None, None::<Waker>)));
        let other = Arc::clone(&slot);
        let worker = thread::spawn(move || {
            let mut slot = other.lock().unwrap();
            slot.0 = Some(9);
            if let Some(waker) = slot.1.take() {
                waker.wake();
            }
        });
        let got = block_on(poll_fn(|cx| {
            let mut slot = slot.lock().unwrap();
            match slot.0.take() {
                Some(value) => Poll::Ready(value),
                None => {
                    slot.1 = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        }));
        assert_eq!(got, 9);
        worker.join().unwrap();
    }

    #[test]
    fn a_time_limit_ends_a_pending_future() {
        assert_eq!(block_on_timeout(pending::<()>(), Duration::from_millis(1)), None);
    }
}
