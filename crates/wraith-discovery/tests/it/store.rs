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
    Calling, ContactEvent, ContactListener, Found, Pair, listen, search, search_calling,
};
use wraith_discovery::record::{VALUE_LEN, find_ticket, publish_ticket};
use wraith_discovery::{
    BoxFuture, Capability, Place, PlaceError, Places, Reach, RecordKey, RecordLookup, RecordSeed,
    RecordStore, RelayAddr, StoredRecord,
};

use super::support::{PATIENCE, nowhere};

/// All records ever stored, and the present kind of answer.
#[derive(Debug, Default)]
pub struct Shelf {
    pub records: Mutex<HashMap<RecordKey, Vec<StoredRecord>>>,
    pub lie: Mutex<Lie>,
    /// Number of full searches.
    pub looks: AtomicU64,
}

/// Kind of answers.
#[derive(Clone, Debug, Default)]
pub enum Lie {
    /// The newest record.
    #[default]
    No,
    /// The oldest record: unsigned ones cannot be forged, but old ones can be replayed.
    Oldest,
    /// No answer.
    Silence,
    /// These records, which only an owner of the key can have signed.
    Instead(Vec<StoredRecord>),
}

#[derive(Clone, Debug, Default)]
pub struct Cellar(pub Arc<Shelf>);

impl Cellar {
    pub fn places(&self) -> Places {
        Places { stores: vec![Arc::new(self.clone())], ..nowhere() }
    }

    /// Returns the newest record of each key.
    pub fn newest(&self) -> HashMap<RecordKey, StoredRecord> {
        let records = self.0.records.lock().unwrap();
        records.iter().map(|(key, all)| (*key, all.last().unwrap().clone())).collect()
    }

    pub fn lie(&self, lie: Lie) {
        *self.0.lie.lock().unwrap() = lie;
    }
}

impl RecordStore for Cellar {
    fn place(&self) -> Place {
        Place::Dht
    }

    fn probe(&self) -> BoxFuture<'static, Result<(), PlaceError>> {
        let silent = matches!(*self.0.lie.lock().unwrap(), Lie::Silence);
        Box::pin(async move { if silent { Err(PlaceError::Silent) } else { Ok(()) } })
    }

    fn put(
        &self,
        seed: RecordSeed,
        mut record: StoredRecord,
    ) -> BoxFuture<'static, Result<(), PlaceError>> {
        let probe = self.probe();
        let shelf = Arc::clone(&self.0);
        Box::pin(async move {
            probe.await?;
            let mut records = shelf.records.lock().unwrap();
            let there = records.entry(seed.key()).or_default();
            if let Some(last) = there.last() {
                record.seq = record.seq.max(last.seq + 1);
            }
            there.push(record);
            Ok(())
        })
    }

    fn get(&self, key: RecordKey) -> Box<dyn RecordLookup> {
        self.0.looks.fetch_add(1, Relaxed);
        self.glance(key)
    }

    fn glance(&self, key: RecordKey) -> Box<dyn RecordLookup> {
        let there = self.0.records.lock().unwrap().get(&key).cloned().unwrap_or_default();
        let found = match &*self.0.lie.lock().unwrap() {
            Lie::No => Ok(there.last().cloned().into_iter().collect()),
            Lie::Oldest => Ok(there.first().cloned().into_iter().collect()),
            Lie::Silence => Err(PlaceError::Silent),
            Lie::Instead(records) => Ok(records.clone()),
        };
        Box::new(Look(found))
    }
}

struct Look(Result<Vec<StoredRecord>, PlaceError>);

impl RecordLookup for Look {
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
fn pair(a: u8, b: u8) -> [Pair; 2] {
    let [a, b] = [a, b].map(identity);
    [Pair::new(&a, b.node_id()).unwrap(), Pair::new(&b, a.node_id()).unwrap()]
}

fn address(n: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], n))
}

/// Returns this address and a relay.
fn reach(address: SocketAddr) -> Reach {
    let relay = RelayAddr::new("relay.example", 443, [5; 32], [6; 16]).unwrap();
    Reach { addresses: vec![address], relays: vec![relay] }
}

fn found_at(n: u16) -> Found {
    Found::At(Place::Dht, reach(address(n)), None)
}

/// Starts a listener for one end of a pair, at an address that the test may change.
async fn listener(cellar: &Cellar, pair: &Pair) -> (ContactListener, Arc<Mutex<SocketAddr>>) {
    let at = Arc::new(Mutex::new(address(1)));
    let ours = Arc::clone(&at);
    let make = Box::new(move |_| reach(*ours.lock().unwrap()));
    let listener = listen(&cellar.places(), make).await;
    listener.set_contacts(vec![pair.clone()]);
    (listener, at)
}

/// Paused time advances at once when all tasks wait.
#[tokio::test(start_paused = true)]
async fn a_contact_is_found_where_it_is_and_again_where_it_has_gone() {
    let cellar = Cellar::default();
    let [a, b] = pair(1, 2);
    let (listener, at) = listener(&cellar, &a).await;
    assert_eq!(listener.places(), [Place::Dht]);
    let mut search = search(&b, &cellar.places());
    assert_eq!(search.next().await, Some(found_at(1)));
    *at.lock().unwrap() = address(2);
    listener.addresses_changed();
    let moved = tokio::time::timeout(PATIENCE, search.next()).await.unwrap();
    assert_eq!(moved, Some(found_at(2)));
}

#[tokio::test(start_paused = true)]
async fn a_stranger_finds_nobody_and_records_tell_a_crawler_nothing() {
    let cellar = Cellar::default();
    let [a, _] = pair(1, 2);
    let (_listener, _) = listener(&cellar, &a).await;
    let [_, stranger] = pair(1, 3);
    let mut search = search(&stranger, &cellar.places());
    assert!(tokio::time::timeout(PATIENCE, search.next()).await.is_err());
    let newest = cellar.newest();
    assert_eq!(newest.len(), 1);
    for (key, record) in newest {
        assert_ne!(key, identity(1).node_id().0, "no key is a NodeId");
        assert_eq!(record.value.len(), VALUE_LEN);
        let seen = |wanted: &[u8]| record.value.windows(wanted.len()).any(|it| it == wanted);
        assert!(!seen(&identity(1).node_id().0) && !seen(&[192, 0, 2, 1]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_reaches_a_listener_with_where_the_caller_is_and_a_secret_once() {
    let cellar = Cellar::default();
    let [a, b] = pair(1, 2);
    let (mut listener, _) = listener(&cellar, &a).await;
    let calling = Calling { reach: Box::new(|_| reach(address(7))), punch_secret: [9; 32] };
    let mut search = search_calling(&b, &cellar.places(), Some(calling));
    let early = tokio::time::timeout(PATIENCE, listener.next_event()).await;
    assert!(early.is_err(), "left before the caller knew where it is: {early:?}");
    search.leave_call();
    let event = tokio::time::timeout(PATIENCE, listener.next_event()).await.unwrap();
    let Some(ContactEvent::PunchRequest(Place::Dht, call)) = event else { panic!("{event:?}") };
    assert_eq!((call.peer, call.reach, call.punch_secret), (b.own(), reach(address(7)), [9; 32]));
    search.close().await;
    let again = tokio::time::timeout(PATIENCE, listener.next_event()).await;
    assert!(again.is_err(), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn calls_are_looked_for_thoroughly_once_a_minute_and_glanced_at_in_between() {
    let cellar = Cellar::default();
    let [a, b] = pair(1, 2);
    let (mut listener, _) = listener(&cellar, &a).await;
    // After the faster search of the first minute.
    tokio::time::sleep(Duration::from_secs(100)).await;
    let before = cellar.0.looks.load(Relaxed);
    tokio::time::sleep(Duration::from_secs(600)).await;
    let looks = cellar.0.looks.load(Relaxed) - before;
    // Twice as many near a full hour.
    assert!((8..=22).contains(&looks), "{looks}");
    let calling = Calling { reach: Box::new(|_| reach(address(7))), punch_secret: [9; 32] };
    let mut search = search_calling(&b, &cellar.places(), Some(calling));
    search.leave_call();
    let left = Instant::now();
    let event = tokio::time::timeout(PATIENCE, listener.next_event()).await.unwrap();
    assert!(matches!(event, Some(ContactEvent::PunchRequest(..))), "{event:?}");
    assert!(left.elapsed() <= Duration::from_millis(2600), "{:?}", left.elapsed());
}

#[tokio::test(start_paused = true)]
async fn what_was_published_is_overwritten_in_the_end_by_what_looks_the_same() {
    let cellar = Cellar::default();
    let [a, b] = pair(1, 2);
    let (listener, _) = listener(&cellar, &a).await;
    let mut search = search(&b, &cellar.places());
    search.next().await.unwrap();
    drop(search);
    listener.close().await;
    assert!(cellar.newest().values().all(|record| record.value.len() == VALUE_LEN));
    let mut search = contact_search(&b, &cellar);
    assert!(tokio::time::timeout(PATIENCE, search.next()).await.is_err(), "withdrawn");
}

fn contact_search(pair: &Pair, cellar: &Cellar) -> wraith_discovery::contact::ContactSearch {
    search(pair, &cellar.places())
}

#[tokio::test(start_paused = true)]
async fn records_that_are_old_foreign_or_of_another_length_are_not_believed() {
    let cellar = Cellar::default();
    let [a, b] = pair(1, 2);
    let (listener, at) = listener(&cellar, &a).await;
    let mut search = contact_search(&b, &cellar);
    search.next().await.unwrap();
    *at.lock().unwrap() = address(2);
    listener.addresses_changed();
    assert_eq!(search.next().await, Some(found_at(2)));
    let (_, current) = cellar.newest().into_iter().next().unwrap();
    cellar.lie(Lie::Oldest);
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
        cellar.lie(Lie::Instead(records));
        let mut search = contact_search(&b, &cellar);
        assert!(tokio::time::timeout(PATIENCE, search.next()).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_that_says_nothing_is_told_once_and_comes_back() {
    let cellar = Cellar::default();
    cellar.lie(Lie::Silence);
    let [a, b] = pair(1, 2);
    let (mut listener, _) = listener(&cellar, &a).await;
    let lost = listener.next_event().await;
    assert_eq!(lost, Some(ContactEvent::Lost(Place::Dht, PlaceError::Silent)));
    let mut search = contact_search(&b, &cellar);
    assert_eq!(search.next().await, Some(Found::Not(Place::Dht, PlaceError::Silent)));
    cellar.lie(Lie::No);
    assert_eq!(listener.next_event().await, Some(ContactEvent::Back(Place::Dht)));
    assert_eq!(search.next().await, Some(found_at(1)));
}

#[tokio::test(start_paused = true)]
async fn who_has_a_ticket_finds_its_sender_where_it_is_now_and_nobody_else_does() {
    let cellar = Cellar::default();
    let stores = cellar.places().stores;
    let (sender, capability) = (identity(1).node_id(), Capability::from_bytes([1; 16]));
    let make = Box::new(|_| reach(address(3)));
    let record = publish_ticket(&stores, sender, &capability, make);
    let mut search = find_ticket(&stores, sender, &capability);
    assert_eq!(search.next().await, Some((Place::Dht, Ok(reach(address(3))))));
    let mut others = [
        find_ticket(&stores, NodeId([3; 32]), &capability),
        find_ticket(&stores, sender, &Capability::from_bytes([2; 16])),
    ];
    for other in &mut others {
        assert!(tokio::time::timeout(PATIENCE, other.next()).await.is_err());
    }
    record.withdraw().await;
    let mut search = find_ticket(&stores, sender, &capability);
    assert!(tokio::time::timeout(PATIENCE, search.next()).await.is_err());
}
