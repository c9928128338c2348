//! The DHT client as a [`RecordStore`].

use std::fmt;
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use wraith_discovery::{
    BoxFuture, PlaceError, PlaceName, RecordKey, RecordLookup, RecordSeed, RecordStore,
    StoredRecord,
};

use crate::config::DhtConfig;
use crate::id::target_of;
use crate::krpc::SignedRecord;
use crate::nodes::NodeCache;
use crate::operation::{Event, Operation, no_randomness, resolve};

/// Most concurrent gets and puts. Each has a socket and sends at most about thirty datagrams per
/// second.
const MAX_OPERATIONS: usize = 8;

/// A client of the Mainline DHT. It sends nothing outside of operations. One client per process
/// suffices, because it remembers the nodes that answered.
#[derive(Clone)]
pub struct Dht(Arc<Shared>);

/// State shared by all operations.
pub struct Shared {
    pub config: DhtConfig,
    pub permits: Arc<Semaphore>,
    pub traffic: Counters,
    nodes: Mutex<NodeCache>,
}

impl Shared {
    pub fn nodes(&self) -> MutexGuard<'_, NodeCache> {
        // A panic cannot leave the node list inconsistent.
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dht {
    /// Creates a client. It sends nothing yet.
    pub fn new(config: DhtConfig) -> Self {
        Self(Arc::new(Shared {
            config,
            permits: Arc::new(Semaphore::new(MAX_OPERATIONS)),
            traffic: Counters::default(),
            nodes: Mutex::default(),
        }))
    }

    /// Returns at most 64 nodes that answered, most recent first, for [`DhtConfig::remembered`] of
    /// the next run. Before the first answer, returns the configured remembered nodes.
    pub fn good_nodes(&self) -> Vec<SocketAddrV4> {
        let good = self.0.nodes().most_recent();
        if good.is_empty() { self.0.config.remembered.clone() } else { good }
    }

    /// Returns at most `count` nodes for a single query such as
    /// [`AddressQuery`](crate::AddressQuery). They come from [`good_nodes`](Self::good_nodes), and
    /// from the bootstrap list while those are too few.
    pub async fn nodes_to_query(&self, count: usize) -> Vec<SocketAddrV4> {
        let mut nodes = self.good_nodes();
        for host in self.0.config.bootstrap.iter().take(count) {
            if nodes.len() >= count {
                break;
            }
            let response =
                resolve(host.clone()).await.into_iter().find(|node| !nodes.contains(node));
            nodes.extend(response);
        }
        nodes.truncate(count);
        nodes
    }

    /// Returns the traffic so far.
    pub fn traffic(&self) -> Traffic {
        self.0.traffic.read()
    }
}

impl fmt::Debug for Dht {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dht").field("traffic", &self.traffic()).finish_non_exhaustive()
    }
}

impl RecordStore for Dht {
    fn place(&self) -> PlaceName {
        PlaceName::Dht
    }

    fn probe(&self) -> BoxFuture<'static, Result<(), PlaceError>> {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            let mut target = [0; 20];
            getrandom::fill(&mut target).map_err(no_randomness)?;
            Operation::start_lookup(shared, target).await?.next_event(None).await.map(drop)
        })
    }

    fn put(
        &self,
        seed: RecordSeed,
        mut record: StoredRecord,
    ) -> BoxFuture<'static, Result<(), PlaceError>> {
        let shared = Arc::clone(&self.0);
        Box::pin(async move {
            let key = seed.key();
            let mut operation = Operation::start_lookup(shared, target_of(&key)).await?;
            loop {
                match operation.next_event(Some(&key)).await? {
                    Event::Record(there) => {
                        record.seq = record.seq.max(there.seq.saturating_add(1))
                    }
                    Event::Answer => {}
                    Event::Done => break,
                }
            }
            operation.store(&SignedRecord::new(&seed, record)).await
        })
    }

    fn get(&self, key: RecordKey) -> Box<dyn RecordLookup> {
        Box::new(RecordSearch::new(&self.0, key, false))
    }

    fn get_from_known_nodes(&self, key: RecordKey) -> Box<dyn RecordLookup> {
        Box::new(RecordSearch::new(&self.0, key, true))
    }
}

/// One search for a record.
struct RecordSearch {
    shared: Arc<Shared>,
    key: RecordKey,
    /// Whether only the closest known nodes are asked.
    known_nodes_only: bool,
    operation: Option<Operation>,
    newest: Option<i64>,
}

impl RecordSearch {
    fn new(shared: &Arc<Shared>, key: RecordKey, known_nodes_only: bool) -> Self {
        Self { shared: Arc::clone(shared), key, known_nodes_only, operation: None, newest: None }
    }
}

impl RecordLookup for RecordSearch {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<StoredRecord>, PlaceError>> {
        Box::pin(async move {
            loop {
                let operation = match &mut self.operation {
                    Some(operation) => operation,
                    None => {
                        let (shared, target) = (Arc::clone(&self.shared), target_of(&self.key));
                        self.operation.insert(match self.known_nodes_only {
                            true => Operation::start_at_known_nodes(shared, target).await?,
                            false => Operation::start_lookup(shared, target).await?,
                        })
                    }
                };
                match operation.next_event(Some(&self.key)).await? {
                    Event::Record(record) if self.newest.is_none_or(|it| record.seq > it) => {
                        self.newest = Some(record.seq);
                        return Ok(Some(record));
                    }
                    Event::Record(_) | Event::Answer => {}
                    Event::Done => return Ok(None),
                }
            }
        })
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

    fn read(&self) -> Traffic {
        Traffic {
            sent: self.sent.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            received: self.received.load(Relaxed),
            received_bytes: self.received_bytes.load(Relaxed),
        }
    }
}
