//! A test network and its records.

use std::net::Ipv4Addr;
use std::sync::OnceLock;
use std::time::Duration;

use mainline::Testnet;
use tokio::time::timeout;
use wraith_dht::{Dht, DhtConfig};
use wraith_discovery::{PlaceError, RecordSeed, RecordStore, StoredRecord};

/// Longer than any step of these tests, so that a test that hangs fails.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Enough nodes for lookups of several hops, and few enough to start within two seconds.
const NODES: usize = 50;

/// Returns the nodes on loopback that all tests share. They run until the process ends.
pub fn testnet() -> &'static Testnet {
    static TESTNET: OnceLock<Testnet> = OnceLock::new();
    TESTNET.get_or_init(|| Testnet::builder(NODES).build().expect("sockets on loopback"))
}

/// Creates a client that bootstraps from these nodes.
pub fn client_of(bootstrap: Vec<String>) -> Dht {
    Dht::new(DhtConfig { bootstrap, bind: Ipv4Addr::LOCALHOST, ..DhtConfig::default() })
}

/// Creates a client that bootstraps from one node of the network.
pub fn client() -> Dht {
    client_of(testnet().bootstrap[..1].to_vec())
}

pub fn record(seq: i64, byte: u8) -> StoredRecord {
    StoredRecord { seq, value: vec![byte; 900] }
}

pub async fn put(dht: &Dht, seed: &RecordSeed, record: StoredRecord) -> Result<(), PlaceError> {
    timeout(PATIENCE, dht.put(seed.clone(), record)).await.unwrap()
}

/// Returns all records that a lookup finds.
pub async fn get(dht: &Dht, seed: &RecordSeed) -> Result<Vec<StoredRecord>, PlaceError> {
    let mut lookup = dht.get(seed.key());
    let mut found = Vec::new();
    while let Some(record) = timeout(PATIENCE, lookup.next()).await.unwrap()? {
        found.push(record);
    }
    Ok(found)
}
