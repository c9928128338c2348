//! Retry policy: until when a lost transfer is worth another attempt.
//!
//! Only a lost network is waited for. A peer that stops the transfer ends it on both sides.

use std::time::Duration;

use wraith_discovery::TimeLimit;
use wraith_transfer::TransferError;

use crate::error::{Cause, Error, ErrorKind};

/// Returns the final error of a transfer whose lost peer did not return in time.
pub(crate) fn reconnect_error(error: TransferError, reconnect: Duration) -> Error {
    if !matches!(error, TransferError::NetworkLost { .. }) {
        return error.into();
    }
    let message = format!("{error}; it did not come back within {} s", reconnect.as_secs());
    Error::because(ErrorKind::NetworkLost, message, Cause::Transfer(error))
}

/// Waits until the limit is reached; for ever without one. Cancel-safe.
pub(super) async fn reached(limit: Option<&mut TimeLimit>) {
    match limit {
        Some(limit) => limit.reached().await,
        None => std::future::pending().await,
    }
}

/// The reconnect window. It restarts only after progress, so a peer that accepts connections and
/// drops them cannot extend the wait for ever.
#[derive(Debug)]
pub(crate) struct ReconnectWindow {
    pub limit: Option<TimeLimit>,
    furthest: u64,
    lost_before: bool,
}

impl ReconnectWindow {
    pub fn new(timeout: Option<Duration>) -> Self {
        Self { limit: timeout.map(TimeLimit::new), furthest: 0, lost_before: false }
    }

    /// Restarts the window: the peer answered, and asked to be dialled again.
    pub fn restart(&mut self, timeout: Option<Duration>) {
        *self = Self::new(timeout);
    }

    /// Records the loss of an established connection after `bytes` were settled. Returns the
    /// seconds left.
    pub fn lost(&mut self, bytes: u64, reconnect: Duration) -> u64 {
        if !self.lost_before || bytes > self.furthest {
            self.furthest = self.furthest.max(bytes);
            self.limit = Some(TimeLimit::new(reconnect));
        }
        self.lost_before = true;
        self.limit.as_mut().map_or(0, |limit| limit.left().as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_progress_extends_the_reconnect_window() {
        let reconnect = Duration::from_secs(100);
        let mut window = ReconnectWindow::new(None);
        assert_eq!(window.lost(10, reconnect), 100);
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(window.lost(10, reconnect), 40, "nothing was won");
        assert_eq!(window.lost(11, reconnect), 100);
    }
}
