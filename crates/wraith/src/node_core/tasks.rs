//! The running tasks of a node, which the end of the node cancels.

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How long a cancelled operation may take to notify its peers and store its data. After that, the
/// wait ends, but the shutdown continues.
pub(crate) const CANCEL_WAIT: Duration = Duration::from_secs(5);

/// The tasks of a node, or of all nodes of a group.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeTasks {
    /// Parent of the tokens of all tasks.
    token: CancellationToken,
    running: watch::Sender<usize>,
    /// The counter of the node's group.
    running_in_group: Option<watch::Sender<usize>>,
}

impl NodeTasks {
    /// Returns the tasks of a new node in this group.
    pub fn new_member(&self) -> Self {
        Self {
            token: self.token.child_token(),
            running: watch::Sender::default(),
            running_in_group: Some(self.running.clone()),
        }
    }

    /// Returns the token that is cancelled when the node is closed.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Cancels all tasks, also later ones, and waits for their ends.
    pub async fn close(&self) {
        self.token.cancel();
        let mut running = self.running.subscribe();
        // This side keeps the channel open.
        let ended = running.wait_for(|running| *running == 0);
        let _ = tokio::time::timeout(CANCEL_WAIT, ended).await;
    }

    /// Counts a task until the result is dropped.
    pub fn begin(&self) -> CountedTask {
        let counters: Vec<_> =
            self.running_in_group.iter().chain([&self.running]).cloned().collect();
        for counter in &counters {
            counter.send_modify(|running| *running += 1);
        }
        CountedTask(counters)
    }
}

/// One of the running tasks of a node, in the counters of its group and of the node.
///
/// Invariant: the group's counter falls last. Once it is 0, no task wakes a waiter of a node any
/// more.
pub(crate) struct CountedTask(Vec<watch::Sender<usize>>);

impl Drop for CountedTask {
    fn drop(&mut self) {
        for counter in self.0.iter().rev() {
            counter.send_modify(|running| *running -= 1);
        }
    }
}
