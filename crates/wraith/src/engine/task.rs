//! The task that owns an attempt, and the handle that owns the task.
//!
//! Invariants:
//!
//! - Dropping the handle cancels the work. Dropping a future made from it cancels nothing.
//! - The result is kept, so several callers may wait for it.
//! - No `Drop` in this module spawns, blocks or needs a runtime.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Error;
use crate::event::Observer;
use crate::event_publisher::{EventPublisher, Events};
use crate::progress::{Meter, ProgressReader};

/// How long a cancelled operation may take to notify its peers and store its data. After that, the
/// wait ends, but the shutdown continues.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

type Outcome<R> = Option<Result<Arc<R>, Error>>;

/// State shared by the work and its handle.
#[derive(Clone, Debug)]
pub(crate) struct TaskState {
    pub publisher: Arc<EventPublisher>,
    pub meter: Arc<Meter>,
    pub token: CancellationToken,
}

impl TaskState {
    pub fn new(publisher: EventPublisher) -> Self {
        Self {
            publisher: Arc::new(publisher),
            meter: Arc::default(),
            token: CancellationToken::new(),
        }
    }
}

/// Ends the event streams on drop, even if the runtime shuts down during the work.
struct EndOnDrop(Arc<EventPublisher>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end(Err(runtime_ended()));
    }
}

fn runtime_ended() -> Error {
    Error::new(crate::ErrorKind::Other, "the runtime has ended")
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
        let end = EndOnDrop(Arc::clone(&shared.publisher));
        let guard = Some(shared.token.clone().drop_guard());
        runtime.spawn(async move {
            let result = work.await.map(Arc::new);
            end.0.end(result.as_ref().map(|_| ()).map_err(Error::clone));
            outcome_tx.send_replace(Some(result));
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
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().expect("it was waited for until it is some"),
            Err(_) => Err(runtime_ended()),
        }
    }

    /// Cancels the work, and waits until its peers are notified and its data is stored.
    pub async fn cancel(self) -> Result<Arc<R>, Error> {
        self.shared.token.cancel();
        match tokio::time::timeout(CANCEL_WAIT, self.finished()).await {
            Ok(result) => result,
            Err(_) => Err(Error::new(crate::ErrorKind::Cancelled, "stopped")),
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
