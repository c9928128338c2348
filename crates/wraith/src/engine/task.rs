//! The task that owns an attempt, and the handle that owns the task.
//!
//! Invariants: dropping the handle cancels the work, dropping a future made from it never does; the result stays, so that
//! several may wait for it; and no `Drop` here spawns, blocks or needs a runtime.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Error;
use crate::event::Observer;
use crate::hub::{Events, Hub};
use crate::progress::{Meter, ProgressReader};

/// How long a cancelled piece of work may take to tell its peers and put away what it has; beyond it the wait ends, not the
/// winding up.
const CANCEL_WAIT: Duration = Duration::from_secs(5);

type Outcome<R> = Option<Result<Arc<R>, Error>>;

/// What the work and its handle share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub hub: Arc<Hub>,
    pub meter: Arc<Meter>,
    pub token: CancellationToken,
}

impl Shared {
    pub fn new(hub: Hub) -> Self {
        Self { hub: Arc::new(hub), meter: Arc::default(), token: CancellationToken::new() }
    }
}

/// Ends the streams of events even where the runtime is shut down under the work.
struct End(Arc<Hub>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end(Err(runtime_ended()));
    }
}

fn runtime_ended() -> Error {
    Error::new(crate::ErrorKind::Other, "the runtime has ended")
}

/// The handle of work under way.
#[derive(Debug)]
pub(crate) struct Task<R> {
    shared: Shared,
    guard: Option<DropGuard>,
    outcome: watch::Receiver<Outcome<R>>,
}

impl<R: Send + Sync + 'static> Task<R> {
    pub fn spawn<F>(runtime: &Handle, shared: Shared, work: F) -> Self
    where
        F: Future<Output = Result<R, Error>> + Send + 'static,
    {
        let (tell, outcome) = watch::channel(None);
        let end = End(Arc::clone(&shared.hub));
        let guard = Some(shared.token.clone().drop_guard());
        runtime.spawn(async move {
            let result = work.await.map(Arc::new);
            end.0.end(result.as_ref().map(|_| ()).map_err(Error::clone));
            tell.send_replace(Some(result));
        });
        Self { shared, guard, outcome }
    }

    pub fn events(&self) -> Events {
        self.shared.hub.subscribe()
    }

    pub fn observe(&self, observer: Arc<dyn Observer>) {
        self.shared.hub.observe(observer);
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

    /// Asks the work to stop, and waits until its peers were told and what it has is put away.
    pub async fn cancel(self) -> Result<Arc<R>, Error> {
        self.shared.token.cancel();
        match tokio::time::timeout(CANCEL_WAIT, self.finished()).await {
            Ok(result) => result,
            Err(_) => Err(Error::new(crate::ErrorKind::Cancelled, "stopped")),
        }
    }

    /// Asks the work to stop, and does not wait.
    pub fn stop(&self) {
        self.shared.token.cancel();
    }

    /// Lets the work go on without the handle.
    pub fn detach(mut self) {
        if let Some(guard) = self.guard.take() {
            guard.disarm();
        }
    }
}
