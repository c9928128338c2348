//! Whether a lost transfer is worth another attempt, and until when.

use std::time::Duration;

use tokio::time::Instant;
use wraith_transfer::{Role, TransferError};

use crate::settings::Patience;

/// Between two attempts to reach somebody who cannot be reached at all (no route, no interface), or who went away.
pub(crate) const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// True if the peer of `own` may come back: the network went, or its user stopped it and may start it again.
pub(crate) fn may_come_back(error: &TransferError, own: Role) -> bool {
    match error {
        TransferError::NetworkLost { .. } => true,
        TransferError::Cancelled { role } => *role != own,
        _ => false,
    }
}

/// The end of a transfer whose peer was lost, and waited for in vain.
pub(crate) fn not_back(error: TransferError, reconnect: Duration) -> TransferError {
    match error {
        TransferError::NetworkLost { why } => {
            let why = format!("{why}; it did not come back within {} s", reconnect.as_secs());
            TransferError::NetworkLost { why }
        }
        error => error,
    }
}

/// The time to come back in. It begins anew only when something was won, so a peer that takes connections and drops them
/// keeps nobody for ever.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub deadline: Option<Instant>,
    furthest: u64,
    lost_before: bool,
}

impl Window {
    pub fn new(patience: Patience) -> Self {
        let deadline = patience.first.map(|first| Instant::now() + first);
        Self { deadline, furthest: 0, lost_before: false }
    }

    /// The peer was there, and said to come another time, which is now.
    pub fn begin(&mut self, patience: Patience) {
        *self = Self::new(patience);
    }

    /// A connection that worked was lost after `bytes` of the transfer were settled; the seconds that are left.
    pub fn lost(&mut self, bytes: u64, reconnect: Duration) -> u64 {
        let now = Instant::now();
        if !self.lost_before || bytes > self.furthest {
            self.furthest = self.furthest.max(bytes);
            self.deadline = Some(now + reconnect);
        }
        self.lost_before = true;
        self.deadline.map_or(0, |deadline| deadline.saturating_duration_since(now).as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_sides_stop_may_be_taken_back_and_ours_may_not() {
        let stopped = |role| TransferError::Cancelled { role };
        assert!(may_come_back(&stopped(Role::Sender), Role::Receiver));
        assert!(!may_come_back(&stopped(Role::Receiver), Role::Receiver));
        assert!(may_come_back(&TransferError::NetworkLost { why: String::new() }, Role::Sender));
        assert!(!may_come_back(&TransferError::WrongSecret, Role::Receiver));
    }

    #[tokio::test(start_paused = true)]
    async fn only_what_wins_something_gets_more_time() {
        let reconnect = Duration::from_secs(100);
        let mut window = Window::new(Patience { first: None, reconnect });
        assert_eq!(window.lost(10, reconnect), 100);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(window.lost(10, reconnect), 40, "nothing was won");
        assert_eq!(window.lost(11, reconnect), 100);
    }
}
