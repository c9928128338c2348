//! Records at an in-process store. Anyone may read the store, and the store may return wrong
//! values.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_discovery::contact::{
    CallOptions, ContactEvent, ContactListener, ContactPair, SearchEvent, SearchTarget, listen,
    search, search_with_call,
};
use wraith_discovery::record::{VALUE_LEN, publish_ticket};
use wraith_discovery::{
    BoxFuture, Capability, PlaceError, PlaceName, Places, Reach, RecordKey, RecordLookup,
    RecordSeed, RecordStore, RelayAddr, StoredRecord,
};

use super::support::{PATIENCE, nowhere};

/// All records ever stored, and the present kind of answer.
#[derive(Debug, Default)]
pub struct StoreContents {
    pub records: Mutex<HashMap<RecordKey, Vec<StoredRecord>>>,
    pub fault: Mutex<Fault>,
    /// Number of full searches.
    pub full_lookups: AtomicU64,
}

/// Kind of answers.
#[derive(Clone, Debug, Default)]
pub enum Fault {
    /// The newest record.
    #[default]
    None,
    /// The oldest record: unsigned ones cannot be forged, but old ones can be replayed.
    Oldest,
    /// No answer.
    Silence,
    /// These records, which only an owner of the key can have signed.
    Instead(Vec<StoredRecord>),
}

#[derive(Clone, Debug, Default)]
pub struct InMemoryStore(pub Arc<StoreContents>);

impl InMemoryStore {
    pub fn places(&self) -> Places {
        Places { stores: vec![Arc::new(self.clone())], ..nowhere() }
    }

    /// Returns the newest record of each key.
    pub fn newest(&self) -> HashMap<RecordKey, StoredRecord> {
        let records = self.0.records.lock().unwrap();
        records.iter().map(|(key, all)| (*key, all.last().unwrap().clone())).collect()
    }

    pub fn set_fault(&self, fault: Fault) {
        *self.0.fault.lock().unwrap() = fault;
    }
}

impl RecordStore for InMemoryStore {
    fn place(&self) -> PlaceName {
        PlaceName::Dht
    }

    fn probe(&self) -> BoxFuture<'static, Result<(), PlaceError>> {
        let silent = matches!(*self.0.fault.lock().unwrap(), Fault::Silence);
        Box::pin(async move { if silent { Err(PlaceError::Silent) } else { Ok(()) } })
    }

    fn put(
        &self,
        seed: RecordSeed,
        mut record: StoredRecord,
    ) -> BoxFuture<'static, Result<(), PlaceError>> {
        let probe = self.probe();
        let contents = Arc::clone(&self.0);
        Box::pin(async move {
            probe.await?;
            let mut records = contents.records.lock().unwrap();
            let there = records.entry(seed.key()).or_default();
            if let Some(last) = there.last() {
                record.seq = record.seq.max(last.seq + 1);
            }
            there.push(record);
            Ok(())
        })
    }

    fn get(&self, key: RecordKey) -> Box<dyn RecordLookup> {
        self.0.full_lookups.fetch_add(1, Relaxed);
        self.get_from_known_nodes(key)
    }

    fn get_from_known_nodes(&self, key: RecordKey) -> Box<dyn RecordLookup> {
        let there = self.0.records.lock().unwrap().get(&key).cloned().unwrap_or_default();
        let found = match &*self.0.fault.lock().unwrap() {
            Fault::None => Ok(there.last().cloned().into_iter().collect()),
            Fault::Oldest => Ok(there.first().cloned().into_iter().collect()),
            Fault::Silence => Err(PlaceError::Silent),
            Fault::Instead(records) => Ok(records.clone()),
        };
        Box::new(InMemoryLookup(found))
    }
}

struct InMemoryLookup(Result<Vec<StoredRecord>, PlaceError>);

impl RecordLookup for InMemoryLookup {
    fn next(&mut self) -> BoxFuture<'_, Result<Option<StoredRecord>, PlaceError>> {
        let next = match &mut self.0 {
            Ok(records) => Ok((!records.is_empty()).then(|| records.remove(0))),
            Err(why) => Err(why.clone()),
        };
        Box::pin(async move { next })
    }
}

fn identity(n: u8) -> SecretIdentity {
    SecretIdentity::from_seed([n; 32])
}

/// Returns the two ends of a pair.
fn pair(a: u8, b: u8) -> [ContactPair; 2] {
    let [a, b] = [a, b].map(identity);
    [ContactPair::new(&a, b.node_id()).unwrap(), ContactPair::new(&b, a.node_id()).unwrap()]
}

fn address(n: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], n))
}

/// Returns this address and a relay.
fn reach(address: SocketAddr) -> Reach {
    let relay = RelayAddr::new("relay.example", 443, [5; 32], [6; 16]).unwrap();
    Reach::from(vec![address]).with([relay])
}

fn found_at(n: u16) -> SearchEvent {
    SearchEvent::Found(PlaceName::Dht, reach(address(n)), None)
}

/// Starts a listener for one end of a pair, at an address that the test may change.
async fn listener(
    store: &InMemoryStore,
    pair: &ContactPair,
) -> (ContactListener, Arc<Mutex<SocketAddr>>) {
    let at = Arc::new(Mutex::new(address(1)));
    let ours = Arc::clone(&at);
    let make = Box::new(move |_| reach(*ours.lock().unwrap()));
    let listener = listen(&store.places(), make).await;
    listener.set_contacts(vec![pair.clone()]);
    (listener, at)
}

/// Paused time advances at once when all tasks wait.
#[tokio::test(start_paused = true)]
async fn a_contact_is_found_again_after_its_address_changed() {
    let store = InMemoryStore::default();
    let [a, b] = pair(1, 2);
    let (listener, at) = listener(&store, &a).await;
    assert_eq!(listener.places(), [PlaceName::Dht]);
    let mut search = search(&b, &store.places());
    assert_eq!(search.next().await, Some(found_at(1)));
    *at.lock().unwrap() = address(2);
    listener.addresses_changed();
    let moved = tokio::time::timeout(PATIENCE, search.next()).await.unwrap();
    assert_eq!(moved, Some(found_at(2)));
}

#[tokio::test(start_paused = true)]
async fn a_stranger_finds_no_contact_and_records_reveal_nothing_to_a_crawler() {
    let store = InMemoryStore::default();
    let [a, _] = pair(1, 2);
    let (_listener, _) = listener(&store, &a).await;
    let [_, stranger] = pair(1, 3);
    let mut search = search(&stranger, &store.places());
    assert!(tokio::time::timeout(PATIENCE, search.next()).await.is_err());
    let newest = store.newest();
    assert_eq!(newest.len(), 1);
    for (key, record) in newest {
        assert_ne!(key, identity(1).node_id().0, "no key is a NodeId");
        assert_eq!(record.value.len(), VALUE_LEN);
        let seen = |wanted: &[u8]| record.value.windows(wanted.len()).any(|it| it == wanted);
        assert!(!seen(&identity(1).node_id().0) && !seen(&[192, 0, 2, 1]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_reaches_a_listener_once_with_the_callers_addresses_and_a_secret() {
    let store = InMemoryStore::default();
    let [a, b] = pair(1, 2);
    let (mut listener, _) = listener(&store, &a).await;
    let calling = CallOptions { reach: Box::new(|_| reach(address(7))), punch_secret: [9; 32] };
    let mut search = search_with_call(&b, &store.places(), Some(calling));
    let early = tokio::time::timeout(PATIENCE, listener.next_event()).await;
    assert!(early.is_err(), "left before the caller knew where it is: {early:?}");
    search.publish_call();
    let event = tokio::time::timeout(PATIENCE, listener.next_event()).await.unwrap();
    let Some(ContactEvent::PunchRequest(PlaceName::Dht, call)) = event else { panic!("{event:?}") };
    assert_eq!((call.peer, call.reach, call.punch_secret), (b.own(), reach(address(7)), [9; 32]));
    search.close().await;
    let again = tokio::time::timeout(PATIENCE, listener.next_event()).await;
    assert!(again.is_err(), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_get_a_full_search_once_a_minute_and_cheap_ones_in_between() {
    let store = InMemoryStore::default();
    let [a, b] = pair(1, 2);
    let (mut listener, _) = listener(&store, &a).await;
    // After the faster search of the first minute.
    tokio::time::sleep(Duration::from_secs(100)).await;
    let before = store.0.full_lookups.load(Relaxed);
    tokio::time::sleep(Duration::from_secs(600)).await;
    let full_lookups = store.0.full_lookups.load(Relaxed) - before;
    // Twice as many near a full hour.
    assert!((8..=22).contains(&full_lookups), "{full_lookups}");
    let calling = CallOptions { reach: Box::new(|_| reach(address(7))), punch_secret: [9; 32] };
    let mut search = search_with_call(&b, &store.places(), Some(calling));
    search.publish_call();
    let left = Instant::now();
    let event = tokio::time::timeout(PATIENCE, listener.next_event()).await.unwrap();
    assert!(matches!(event, Some(ContactEvent::PunchRequest(..))), "{event:?}");
    assert!(left.elapsed() <= Duration::from_millis(2600), "{:?}", left.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_record_is_overwritten_by_one_of_the_same_length() {
    let store = InMemoryStore::default();
    let [a, b] = pair(1, 2);
    let (listener, _) = listener(&store, &a).await;
    let mut search = search(&b, &store.places());
    search.next().await.unwrap();
    drop(search);
    listener.close().await;
    assert!(store.newest().values().all(|record| record.value.len() == VALUE_LEN));
    let mut search = contact_search(&b, &store);
    assert!(tokio::time::timeout(PATIENCE, search.next()).await.is_err(), "withdrawn");
}

fn contact_search(
    pair: &ContactPair,
    store: &InMemoryStore,
) -> wraith_discovery::contact::ContactSearch {
    search(pair, &store.places())
}

#[tokio::test(start_paused = true)]
async fn old_foreign_or_odd_sized_records_are_ignored() {
    let store = InMemoryStore::default();
    let [a, b] = pair(1, 2);
    let (listener, at) = listener(&store, &a).await;
    let mut search = contact_search(&b, &store);
    search.next().await.unwrap();
    *at.lock().unwrap() = address(2);
    listener.addresses_changed();
    assert_eq!(search.next().await, Some(found_at(2)));
    let (_, current) = store.newest().into_iter().next().unwrap();
    store.set_fault(Fault::Oldest);
    let replayed = tokio::time::timeout(PATIENCE, search.next()).await;
    assert!(replayed.is_err(), "an old one does not follow a newer one: {replayed:?}");

    let instead = |seq, value: Vec<u8>| vec![StoredRecord { seq, value }];
    let longer = [&current.value[..], &[0]].concat();
    for records in [
        instead(i64::MAX, vec![0; VALUE_LEN]),
        instead(i64::MAX, longer),
        instead(i64::MAX, Vec::new()),
        vec![StoredRecord { seq: 1, value: vec![7; VALUE_LEN] }; 10_000],
    ] {
        store.set_fault(Fault::Instead(records));
        let mut search = contact_search(&b, &store);
        assert!(tokio::time::timeout(PATIENCE, search.next()).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_place_is_reported_once_and_recovers() {
    let store = InMemoryStore::default();
    store.set_fault(Fault::Silence);
    let [a, b] = pair(1, 2);
    let (mut listener, _) = listener(&store, &a).await;
    let lost = listener.next_event().await;
    assert_eq!(lost, Some(ContactEvent::Lost(PlaceName::Dht, PlaceError::Silent)));
    let mut search = contact_search(&b, &store);
    assert_eq!(
        search.next().await,
        Some(SearchEvent::PlaceFailed(PlaceName::Dht, PlaceError::Silent))
    );
    store.set_fault(Fault::None);
    assert_eq!(listener.next_event().await, Some(ContactEvent::Back(PlaceName::Dht)));
    assert_eq!(search.next().await, Some(found_at(1)));
}

#[tokio::test(start_paused = true)]
async fn only_a_ticket_holder_finds_the_senders_present_addresses() {
    let store = InMemoryStore::default();
    let stores = store.places().stores;
    let (sender, capability) = (identity(1).node_id(), Capability::from_bytes([1; 16]));
    let make = Box::new(|_| reach(address(3)));
    let record = publish_ticket(&stores, sender, &capability, make);
    let find = |sender, capability| {
        let target = SearchTarget { pair: None, ticket: Some((sender, capability)) };
        search_with_call(target, &store.places(), None)
    };
    let mut search = find(sender, &capability);
    assert_eq!(search.next().await, Some(found_at(3)));
    let other = Capability::from_bytes([2; 16]);
    let mut others = [find(NodeId([3; 32]), &capability), find(sender, &other)];
    for other in &mut others {
        assert!(tokio::time::timeout(PATIENCE, other.next()).await.is_err());
    }
    record.withdraw().await;
    let mut search = find(sender, &capability);
    assert!(tokio::time::timeout(PATIENCE, search.next()).await.is_err());
}
