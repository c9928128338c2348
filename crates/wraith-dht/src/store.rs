//! The DHT client as a [`RecordStore`].

use std::fmt;
use std::net::SocketAddrV4;
use std::sync::Arc;

use wraith_discovery::{
    BoxFuture, PlaceError, PlaceName, RecordKey, RecordLookup, RecordSeed, RecordStore,
    StoredRecord,
};

use crate::config::DhtConfig;
use crate::id::target_of;
use crate::krpc::SignedRecord;
use crate::operation::{Event, Operation, no_randomness, resolve};
use crate::shared::{Shared, Traffic};

/// A client of the Mainline DHT. It sends nothing outside of operations. One client per process
/// suffices, because it remembers the nodes that answered.
#[derive(Clone)]
pub struct Dht(Arc<Shared>);

impl Dht {
    /// Creates a client. It sends nothing yet.
    pub fn new(config: DhtConfig) -> Self {
        Self(Arc::new(Shared::new(config)))
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
