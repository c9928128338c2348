//! A record of handshakes that outlives an endpoint, injected by the caller (SPEC §3.4).

use std::fmt;
use std::sync::Arc;

use wraith_noise::AccessKey;

/// A record of the authentic H1s that all endpoints of one identity have received, including those
/// of earlier processes.
///
/// While it is complete, an H1 that is not in it is no replay, with any time in it. The clocks
/// of both sides may then differ by years.
pub trait HandshakeLog: Send + Sync {
    /// Records the ID of an H1 under `access_key`, and returns whether it was there before. The I/O
    /// thread calls it once for each new authentic H1, before the answer, so it must not block.
    fn record(&self, access_key: &AccessKey, id: &[u8; 16]) -> LogResult;
}

/// Whether a [`HandshakeLog`] had an entry before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogResult {
    /// The log is complete and did not have it.
    New,
    /// The log had it, or another process uses the log now. The H1 gets no answer.
    Known,
    /// The log does not have it but is incomplete for this access key, or cannot be read or written.
    Unknown,
}

/// The log of an endpoint, if it has one.
#[derive(Clone, Default)]
pub struct SharedHandshakeLog(Option<Arc<dyn HandshakeLog>>);

impl SharedHandshakeLog {
    /// Wraps a log.
    pub fn new(log: Arc<dyn HandshakeLog>) -> Self {
        Self(Some(log))
    }

    pub(crate) fn record(&self, access_key: &AccessKey, id: &[u8; 16]) -> LogResult {
        self.0.as_ref().map_or(LogResult::Unknown, |log| log.record(access_key, id))
    }
}

impl fmt::Debug for SharedHandshakeLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedHandshakeLog").field(&self.0.is_some()).finish()
    }
}
