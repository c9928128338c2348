//! The tokio runtime of this library, which runs all its tasks.
//!
//! Other languages poll futures from their own threads, outside any runtime. A tokio future needs
//! an entered runtime whenever it is polled; [`in_runtime`] provides it. UniFFI's built-in
//! alternative is one single-threaded runtime for all libraries of a process, in which one blocking
//! future stops all others.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::OnceLock;

use tokio::runtime::{Builder, EnterGuard, Handle, Runtime};

use crate::error::WraithError;

/// Tasks only wait for messages, deadlines and cancellation; packets and files have their own
/// threads.
const WORKERS: usize = 2;
/// Threads for blocking calls: name look-ups.
const BLOCKING_THREADS_MAX: usize = 4;

static RUNTIME: OnceLock<Result<Runtime, String>> = OnceLock::new();
/// The process that has the runtime's threads. A child of `fork` has none of them.
static OWNER: OnceLock<u32> = OnceLock::new();

/// Returns the runtime; the first call creates it.
///
/// # Errors
/// The operating system cannot create a thread.
pub(crate) fn handle() -> Result<Handle, WraithError> {
    let made = RUNTIME.get_or_init(|| {
        let _ = OWNER.set(std::process::id());
        Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_name("wraith-control")
            .enable_all()
            .build()
            .map_err(|error| error.to_string())
    });
    match made {
        Ok(runtime) => Ok(runtime.handle().clone()),
        Err(why) => Err(WraithError::Other(format!("no threads for wraith: {why}"))),
    }
}

/// Returns the runtime if a call in this process has created it.
pub(crate) fn existing() -> Option<Handle> {
    OWNER.get().filter(|owner| **owner == std::process::id())?;
    Some(RUNTIME.get()?.as_ref().ok()?.handle().clone())
}

/// Enters the runtime on this thread. Every object that needs the runtime comes from a node, whose
/// constructor has created it.
pub(crate) fn enter() -> EnterGuard<'static> {
    let made = RUNTIME.get().and_then(|made| made.as_ref().ok());
    made.expect("a node was made before").enter()
}

/// Wraps a future so that every poll runs inside the runtime.
pub(crate) async fn in_runtime<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _inside = enter();
        future.as_mut().poll(context)
    })
    .await
}
