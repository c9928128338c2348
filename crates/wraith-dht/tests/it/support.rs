//! A network of its own, and records in it.

use std::net::Ipv4Addr;
use std::sync::OnceLock;
use std::time::Duration;

use mainline::Testnet;
use tokio::time::timeout;
use wraith_dht::{Dht, DhtConfig};
use wraith_discovery::{PlaceError, RecordSeed, RecordStore, StoredRecord};

/// Longer than anything here takes, so that a test that hangs fails.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// As many as make lookups of several hops, and start within two seconds.
const NODES: usize = 50;

/// Nodes on loopback, which know each other: the same for all tests, for as long as they run.
pub fn testnet() -> &'static Testnet {
    static TESTNET: OnceLock<Testnet> = OnceLock::new();
    TESTNET.get_or_init(|| Testnet::builder(NODES).build().expect("sockets on loopback"))
}

/// A client that knows these nodes.
pub fn client_of(bootstrap: Vec<String>) -> Dht {
    Dht::new(DhtConfig { bootstrap, bind: Ipv4Addr::LOCALHOST, ..DhtConfig::default() })
}

/// A client that knows one node of the network.
pub fn client() -> Dht {
    client_of(testnet().bootstrap[..1].to_vec())
}

pub fn record(seq: i64, byte: u8) -> StoredRecord {
    StoredRecord { seq, value: vec![byte; 900] }
}

pub async fn put(dht: &Dht, seed: &RecordSeed, record: StoredRecord) -> Result<(), PlaceError> {
    timeout(PATIENCE, dht.put(seed.clone(), record)).await.unwrap()
}

/// All that a look finds.
pub async fn get(dht: &Dht, seed: &RecordSeed) -> Result<Vec<StoredRecord>, PlaceError> {
    let mut lookup = dht.get(seed.key());
    let mut found = Vec::new();
    while let Some(record) = timeout(PATIENCE, lookup.next()).await.unwrap()? {
        found.push(record);
    }
    Ok(found)
}
