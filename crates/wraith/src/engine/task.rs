//! The task that owns an attempt, and the handle that owns the task.
//!
//! Invariants:
//!
//! - Dropping the handle cancels the work. Dropping a future made from it cancels nothing.
//! - The result is kept, so several callers may wait for it.
//! - No `Drop` in this module spawns, blocks or needs a runtime.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::{Error, ErrorKind};
use crate::event::Observer;
use crate::event_publisher::{EventPublisher, Events};
use crate::node::Node;
use crate::node_core::{CANCEL_WAIT, NodeTasks};
use crate::progress::{Meter, ProgressReader};

type Outcome<R> = Option<Result<Arc<R>, Error>>;

/// State shared by the work and its handle.
#[derive(Clone, Debug)]
pub(crate) struct TaskState {
    pub publisher: Arc<EventPublisher>,
    pub meter: Arc<Meter>,
    pub token: CancellationToken,
    tasks: NodeTasks,
}

impl TaskState {
    pub fn new(node: &Node, publisher: EventPublisher) -> Self {
        let tasks = node.tasks().clone();
        Self {
            publisher: Arc::new(publisher),
            meter: Arc::default(),
            token: tasks.token().child_token(),
            tasks,
        }
    }
}

/// Ends the event streams and stores the result on drop, even if the runtime shuts down during the
/// work, or if an observer panics in it.
struct EndOnDrop<R> {
    publisher: Arc<EventPublisher>,
    outcome: watch::Sender<Outcome<R>>,
    result: Outcome<R>,
}

impl<R> EndOnDrop<R> {
    /// Ends with this result.
    fn with(mut self, result: Result<R, Error>) {
        self.result = Some(result.map(Arc::new));
    }
}

impl<R> Drop for EndOnDrop<R> {
    fn drop(&mut self) {
        let result = self.result.take().unwrap_or_else(|| {
            Err(match std::thread::panicking() {
                true => observer_panicked(),
                false => Error::new(ErrorKind::Other, "the runtime has ended"),
            })
        });
        self.publisher.end(result.as_ref().map(|_| ()).map_err(Error::clone));
        self.outcome.send_replace(Some(result));
    }
}

/// Runs the work, and cancels it if the observer panics in a task beside it.
async fn unless_observer_panics<R>(
    work: impl Future<Output = Result<R, Error>>,
    shared: &TaskState,
) -> Result<R, Error> {
    let panicked = shared.publisher.observer_panicked();
    let cancel = async {
        panicked.cancelled().await;
        shared.token.cancel();
        std::future::pending().await
    };
    let result = tokio::select! {
        result = work => result,
        result = cancel => result,
    };
    if panicked.is_cancelled() { Err(observer_panicked()) } else { result }
}

fn observer_panicked() -> Error {
    Error::new(ErrorKind::Panicked, "an observer of the transfer panicked")
}

/// The handle of running work.
#[derive(Debug)]
pub(crate) struct Task<R> {
    shared: TaskState,
    guard: Option<DropGuard>,
    outcome: watch::Receiver<Outcome<R>>,
}

impl<R: Send + Sync + 'static> Task<R> {
    pub fn spawn<F>(runtime: &Handle, shared: TaskState, work: F) -> Self
    where
        F: Future<Output = Result<R, Error>> + Send + 'static,
    {
        let (outcome_tx, outcome) = watch::channel(None);
        let publisher = Arc::clone(&shared.publisher);
        let (counted, shared_too) = (shared.tasks.begin(), shared.clone());
        let end = EndOnDrop { publisher, outcome: outcome_tx, result: None };
        let guard = Some(shared.token.clone().drop_guard());
        runtime.spawn(async move {
            // A panic in the work drops `work` before `end`.
            let result = unless_observer_panics(work, &shared_too).await;
            end.with(result);
            drop(counted);
        });
        Self { shared, guard, outcome }
    }

    pub fn events(&self) -> Events {
        self.shared.publisher.subscribe()
    }

    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.shared.publisher.observe(observer);
    }

    pub fn progress(&self) -> ProgressReader {
        ProgressReader::new(Arc::clone(&self.shared.meter))
    }

    pub fn is_over(&self) -> bool {
        self.outcome.borrow().is_some()
    }

    pub async fn finished(&self) -> Result<Arc<R>, Error> {
        let mut outcome = self.outcome.clone();
        let outcome = outcome.wait_for(Option::is_some).await;
        let outcome = outcome.expect("the result is stored before the sender is dropped");
        outcome.clone().expect("it was waited for until it is some")
    }

    /// Cancels the work, and waits until its peers are notified and its data is stored.
    pub async fn cancel(self) -> Result<Arc<R>, Error> {
        self.shared.token.cancel();
        match tokio::time::timeout(CANCEL_WAIT, self.finished()).await {
            Ok(result) => result,
            Err(_) => Err(Error::new(ErrorKind::Cancelled, "stopped")),
        }
    }

    /// Requests a stop and returns at once.
    pub fn stop(&self) {
        self.shared.token.cancel();
    }

    /// Lets the work continue without the handle.
    pub fn detach(mut self) {
        if let Some(guard) = self.guard.take() {
            guard.disarm();
        }
    }
}

/// Adds the methods of a handle with the task in its field `task`.
macro_rules! transfer_handle {
    ($handle:ident, $summary:ty, $task:tt) => {
        impl $handle {
            /// Returns a stream of events. The first stream starts with the first event, unless an
            /// observer was set or 1024 events passed before this call. Later streams start at the
            /// time of the call.
            pub fn events(&self) -> Events {
                self.$task.events()
            }

            /// Returns a reader for the progress, of all receivers together.
            pub fn progress(&self) -> ProgressReader {
                self.$task.progress()
            }

            /// Waits for the end: for an offer, until the requested number of receivers has
            /// confirmed everything. Cancel-safe; may be called any number of times.
            ///
            /// # Errors
            /// The reason of the failure. Files that could not be transferred are no error here;
            /// the method `complete` of the result reports them.
            pub async fn finished(&self) -> Result<Arc<$summary>, Error> {
                self.$task.finished().await
            }

            /// Cancels the work, and waits until the peers are notified and the received data is
            /// stored. The same offer or fetch can be resumed later.
            ///
            /// # Errors
            /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), except in two cases: the work
            /// had already ended, or it is an offer to any number of receivers that served none.
            pub async fn cancel(self) -> Result<Arc<$summary>, Error> {
                self.$task.cancel().await
            }

            /// Requests a stop and returns at once. Use [`Self::finished`] to wait for the end.
            pub fn stop(&self) {
                self.$task.stop();
            }

            /// Lets the work continue without this handle.
            pub fn detach(self) {
                self.$task.detach();
            }
        }
    };
}

pub(crate) use transfer_handle;
