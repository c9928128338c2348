//! State that all operations of a client share, and its traffic counters.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;

use crate::config::DhtConfig;
use crate::nodes::NodeCache;

/// Most concurrent gets and puts. Each has a socket and sends at most about thirty datagrams per
/// second.
const MAX_OPERATIONS: usize = 8;

/// State shared by all operations.
pub struct Shared {
    pub config: DhtConfig,
    pub permits: Arc<Semaphore>,
    pub traffic: Counters,
    nodes: Mutex<NodeCache>,
}

impl Shared {
    pub fn new(config: DhtConfig) -> Self {
        let permits = Arc::new(Semaphore::new(MAX_OPERATIONS));
        Self { config, permits, traffic: Counters::default(), nodes: Mutex::default() }
    }

    pub fn nodes(&self) -> MutexGuard<'_, NodeCache> {
        // A panic cannot leave the node list inconsistent.
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Number of datagrams, and their bytes without headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Datagrams sent.
    pub sent: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Datagrams received.
    pub received: u64,
    /// Bytes received.
    pub received_bytes: u64,
}

#[derive(Debug, Default)]
pub struct Counters {
    sent: AtomicU64,
    sent_bytes: AtomicU64,
    received: AtomicU64,
    received_bytes: AtomicU64,
}

impl Counters {
    pub fn record_sent(&self, bytes: usize) {
        self.sent.fetch_add(1, Relaxed);
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub fn record_received(&self, bytes: usize) {
        self.received.fetch_add(1, Relaxed);
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
    }

    pub fn read(&self) -> Traffic {
        Traffic {
            sent: self.sent.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            received: self.received.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
        }
    }
}
