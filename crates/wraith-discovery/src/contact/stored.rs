//! Contacts at record stores (SPEC §12.4). A store does not answer calls. So each side publishes a
//! record with its addresses, and looks for the record of the other side.
//!
//! ```text
//!   listener  publishes its addresses, for each contact         caller    looks for them at 1, 1, 2, 3, 5, 10 s …
//!             looks for calls, each contact every 2.5 s         publishes a call with its own addresses
//! ```
//!
//! With more than three contacts, the listener's interval is 0.75 s times their number.
//!
//! If neither side is behind a NAT, the listener's record suffices: the caller dials. With a NAT on
//! both sides, the call makes the listener send at the same time as the caller.
//!
//! Invariant: a call is reported once, identified by its time of writing.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::select;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tracing::debug;
use wraith_crypto::NodeId;
use zeroize::Zeroizing;

use super::pair::ContactPair;
use super::place_status::PlaceStatus;
use super::responder::{
    ContactEvent, ContactResponder, PUNCH_SECRET_LEN, PunchRequest, PunchSecret,
};
use super::search_event::SearchEvent;
use crate::backoff::Backoff;
use crate::place::PlaceError;
use crate::reach::MakeReach;
use crate::record::content::{Content, Kind};
use crate::record::find::{self, RecordFinder};
use crate::record::publish::{MakeContent, Publication, Report};
use crate::record::slot::Slot;
use crate::record::{REACH_LIFE_SECONDS, REPUBLISH_INTERVAL};
use crate::store::RecordStore;

/// Most contacts with published records, most important first. Each costs about thirty datagrams
/// every 25 minutes. A full search for its call costs as many every minute, and each search in
/// between costs four.
const MAX_STORED_CONTACTS: usize = 16;
/// Interval between searches for a contact's call, which is how long the caller waits. The interval
/// grows with the number of contacts.
const CALL_INTERVAL: Duration = Duration::from_millis(2500);
/// Least interval between any two searches for calls. With 16 contacts, each contact's call is
/// searched for every 12 s.
const CALL_SPACING: Duration = Duration::from_millis(750);
/// Duration of the faster search after a change.
const FAST_SEARCH_TIME: Duration = Duration::from_secs(60);
/// Interval between searches during that time.
const FAST_SPACING: Duration = Duration::from_millis(500);
/// Interval between republications of a call, which is valid for twice as long: a caller that gave
/// up is not called back.
const CALL_REPUBLISH_INTERVAL: Duration = Duration::from_secs(60);
const CALL_LIFE_SECONDS: u64 = 120;
/// Most queued results of a search.
const MAX_WAITING: usize = 16;

/// The listener's part at one store.
#[derive(Debug)]
pub struct StoredContacts {
    store: Arc<dyn RecordStore>,
    responder: Arc<ContactResponder>,
    status: Arc<PlaceStatus>,
    published: Mutex<HashMap<NodeId, Publication>>,
    /// Contacts whose calls are searched for, and the end of the faster search.
    targets: watch::Sender<CallTargets>,
    /// The search for calls, and withdrawals.
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Clone, Debug, Default)]
struct CallTargets {
    pairs: Vec<ContactPair>,
    fast_until: Option<Instant>,
}

impl StoredContacts {
    pub fn new(
        store: Arc<dyn RecordStore>,
        responder: Arc<ContactResponder>,
        status: Arc<PlaceStatus>,
    ) -> Self {
        let targets = watch::Sender::default();
        let mut tasks = JoinSet::new();
        let calls = CallSearch {
            store: Arc::clone(&store),
            responder: Arc::clone(&responder),
            finders: HashMap::new(),
        };
        tasks.spawn(calls.run(targets.subscribe()));
        let (published, tasks) = (Mutex::default(), Mutex::new(tasks));
        Self { store, responder, status, published, targets, tasks }
    }

    /// Publishes the listener's addresses for the first of these contacts, withdraws all other
    /// records, and searches for the calls of the same contacts.
    pub fn publish_for(&self, pairs: &[ContactPair]) {
        let pairs = &pairs[..pairs.len().min(MAX_STORED_CONTACTS)];
        let mut published = lock(&self.published);
        let gone: Vec<NodeId> = (published.keys().copied())
            .filter(|peer| pairs.iter().all(|pair| pair.peer() != *peer))
            .collect();
        let is_new = |pair: &ContactPair| !published.contains_key(&pair.peer());
        let has_changed = !gone.is_empty() || pairs.iter().any(is_new);
        let mut tasks = lock(&self.tasks);
        // Removes finished tasks; the first task never ends.
        while tasks.try_join_next().is_some() {}
        for publication in gone.iter().filter_map(|peer| published.remove(peer)) {
            tasks.spawn(publication.withdraw());
        }
        for pair in pairs {
            published.entry(pair.peer()).or_insert_with(|| self.publish(pair));
        }
        self.targets.send_if_modified(|targets| {
            targets.pairs = pairs.to_vec();
            if has_changed {
                targets.fast_until = Some(Instant::now() + FAST_SEARCH_TIME);
            }
            has_changed
        });
    }

    /// Republishes after the listener's addresses changed.
    pub fn update(&self) {
        lock(&self.published).values().for_each(Publication::update);
        let fast_until = Some(Instant::now() + FAST_SEARCH_TIME);
        self.targets.send_modify(|targets| targets.fast_until = fast_until);
    }

    /// Withdraws all records in parallel.
    pub async fn withdraw(self) {
        let mut withdrawing = JoinSet::new();
        for (_, publication) in lock(&self.published).drain() {
            withdrawing.spawn(publication.withdraw());
        }
        while withdrawing.join_next().await.is_some() {}
    }

    fn publish(&self, pair: &ContactPair) -> Publication {
        let slot = Slot::of_listener(pair, pair.own());
        let (responder, status) = (Arc::clone(&self.responder), Arc::clone(&self.status));
        let make: MakeContent = Arc::new(move |now| {
            Content::new(Kind::Reach, now, REACH_LIFE_SECONDS, responder.reach())
        });
        let report: Report = Arc::new(move |_, written| match written {
            Ok(()) => status.mark_up(),
            Err(why) => status.mark_down(why),
        });
        let stores = [Arc::clone(&self.store)];
        Publication::start(&stores, &slot, REPUBLISH_INTERVAL, &make, &report)
    }
}

/// The search for contacts' calls.
struct CallSearch {
    store: Arc<dyn RecordStore>,
    responder: Arc<ContactResponder>,
    /// Finders per contact; each remembers its reported calls.
    finders: HashMap<NodeId, RecordFinder>,
}

impl CallSearch {
    async fn run(mut self, mut targets: watch::Receiver<CallTargets>) {
        let (mut turn, mut backoff) = (0, Backoff::of_a_place());
        loop {
            let CallTargets { pairs, fast_until } = targets.borrow_and_update().clone();
            self.finders.retain(|peer, _| pairs.iter().any(|pair| pair.peer() == *peer));
            let pause = match pairs.get(turn % pairs.len().max(1)) {
                Some(pair) => {
                    turn = turn.wrapping_add(1);
                    let result = self.lookup_call(pair).await;
                    let is_fast = fast_until.is_some_and(|until| Instant::now() < until);
                    match result {
                        // Errors of the store are reported by the publications.
                        Err(why) => {
                            debug!(place = self.store.place().name(), %why, "call lookup failed");
                            backoff.failed(Instant::now())
                        }
                        Ok(()) => {
                            backoff.succeeded(Instant::now());
                            let in_turn = CALL_SPACING.max(CALL_INTERVAL / pairs.len() as u32);
                            if is_fast { FAST_SPACING } else { in_turn }
                        }
                    }
                }
                // No contact is set yet.
                None => Duration::MAX,
            };
            select! {
                () = sleep(pause) => {}
                changed = targets.changed() => if changed.is_err() { return },
            }
        }
    }

    async fn lookup_call(&mut self, pair: &ContactPair) -> Result<(), PlaceError> {
        let (place, responder) = (self.store.place(), &self.responder);
        let finder = self.finders.entry(pair.peer()).or_insert_with(|| {
            RecordFinder::new(Arc::clone(&self.store), Slot::of_caller(pair, pair.peer()))
        });
        let result = finder.lookup_known_nodes(|content| {
            if let (Kind::Call, Ok(punch_secret)) = (content.kind, content.body[..].try_into()) {
                let call = PunchRequest { peer: pair.peer(), reach: content.reach, punch_secret };
                responder.emit(ContactEvent::PunchRequest(place.clone(), call));
            }
            ControlFlow::Continue(())
        });
        result.await
    }
}

/// Publishes a call for `pair.peer()` at all stores.
pub fn publish_call(
    stores: &[Arc<dyn RecordStore>],
    pair: &ContactPair,
    reach: Arc<MakeReach>,
    punch_secret: [u8; PUNCH_SECRET_LEN],
) -> Publication {
    let slot = Slot::of_caller(pair, pair.own());
    let secret = Zeroizing::new(punch_secret);
    let make: MakeContent = Arc::new(move |now| {
        Content::new(Kind::Call, now, CALL_LIFE_SECONDS, reach(None))
            .with_body(Zeroizing::new(secret.to_vec()))
    });
    // The search itself reports an unusable store.
    let report: Report = Arc::new(|_, _| {});
    Publication::start(stores, &slot, CALL_REPUBLISH_INTERVAL, &make, &report)
}

/// The search for the writer of `slot` at one store.
pub async fn report_contact(
    store: Arc<dyn RecordStore>,
    slot: Slot,
    secret: Option<PunchSecret>,
    results: mpsc::Sender<SearchEvent>,
) {
    let (reach_sender, mut found) = mpsc::channel::<find::ReachReport>(MAX_WAITING);
    let forwarding = async {
        while let Some((place, reach)) = found.recv().await {
            let found = match reach {
                Ok(reach) => SearchEvent::Found(place, reach, secret),
                Err(why) => SearchEvent::PlaceFailed(place, why),
            };
            // Without a receiver this task is about to end.
            let _ = results.send(found).await;
        }
    };
    tokio::join!(find::report_reach(store, slot, reach_sender), forwarding);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic cannot leave values behind these locks inconsistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
