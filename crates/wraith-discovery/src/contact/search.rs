//! The caller's side: looks for a contact at all places at once, until it is found or the search is
//! dropped.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tracing::debug;
use wraith_crypto::NodeId;

use super::hour::hours_to_try;
use super::packet::{ContactMessage, SALT_LEN, open, seal};
use super::pair::ContactPair;
use super::responder::{PUNCH_SECRET_LEN, PunchSecret};
use super::search_event::SearchEvent;
use super::stored;
use crate::Capability;
use crate::place::{MakeQuestion, MeetingPlace, PlaceError, Reply, Topic};
use crate::places::Places;
use crate::reach::{MakeReach, Reach};
use crate::record::publish::Publication;
use crate::record::slot::Slot;
use crate::wall_clock::unix_seconds;

/// Interval between attempts at a place. A server allows a burst of thirty attempts, then one every
/// 2 s.
const RETRY_INTERVAL: Duration = Duration::from_millis(700);
/// Most calls whose answers are accepted: all calls of the last ten seconds, and some more.
const MAX_CALLS: usize = 16;
/// Most queued results. If the queue is full, the search pauses.
const MAX_WAITING: usize = 64;

/// A running search; drop ends it.
pub struct ContactSearch {
    found: mpsc::Receiver<SearchEvent>,
    /// Publishes the caller's call, once.
    publish: Option<Box<dyn FnOnce() -> Publication + Send>>,
    /// The published call to the listener.
    call: Option<Publication>,
    _tasks: JoinSet<()>,
}

impl fmt::Debug for ContactSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContactSearch").field("call", &self.call).finish_non_exhaustive()
    }
}

/// A peer to search. It is found as the listener of a pair, by the capability of its ticket, or
/// both.
#[derive(Clone, Copy, Debug)]
pub struct SearchTarget<'a> {
    /// Searched at all places.
    pub pair: Option<&'a ContactPair>,
    /// The peer, and the capability under which it [publishes](crate::record::publish_ticket) its
    /// addresses.
    pub ticket: Option<(NodeId, &'a Capability)>,
}

impl<'a> From<&'a ContactPair> for SearchTarget<'a> {
    fn from(pair: &'a ContactPair) -> Self {
        Self { pair: Some(pair), ticket: None }
    }
}

/// Parameters of a call to a listener that cannot be reached directly: both sides then send at the
/// same time.
pub struct CallOptions {
    /// Returns the caller's addresses.
    pub reach: MakeReach,
    /// Secret of this attempt. A listener receives it through record stores ([`super::PunchRequest`]).
    pub punch_secret: [u8; PUNCH_SECRET_LEN],
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calling(secret)")
    }
}

impl ContactSearch {
    /// Returns each place's first result and its changes, or `None` if there is no place.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<SearchEvent> {
        self.found.recv().await
    }

    /// Publishes the call at the record stores, once. Call this when the caller's addresses are
    /// available. Must be called in a tokio runtime.
    pub fn publish_call(&mut self) {
        if let Some(publish) = self.publish.take() {
            self.call = Some(publish());
        }
    }

    /// Call this after the caller's addresses changed.
    pub fn addresses_changed(&self) {
        if let Some(call) = &self.call {
            call.update();
        }
    }

    /// Ends the search and withdraws the published call, within a few seconds. After a mere drop,
    /// the call stays until it expires, within two minutes.
    pub async fn close(self) {
        if let Some(call) = self.call {
            call.withdraw().await;
        }
    }
}

/// Looks for `pair.peer()` at these places. Must be called in a tokio runtime.
pub fn search(pair: &ContactPair, places: &Places) -> ContactSearch {
    search_with_call(pair, places, None)
}

/// Same as [`search`], and sends the caller's addresses to the contact: with each request to a
/// meeting place, and to record stores after [`ContactSearch::publish_call`]. The sender of a
/// ticket is searched at record stores only, and gets nothing. Must be called in a tokio runtime.
pub fn search_with_call<'a>(
    target: impl Into<SearchTarget<'a>>,
    places: &Places,
    calling: Option<CallOptions>,
) -> ContactSearch {
    let SearchTarget { pair, ticket } = target.into();
    let (results, found) = mpsc::channel(MAX_WAITING);
    let mut tasks = JoinSet::new();
    let (reach, secret) = match calling {
        Some(CallOptions { reach, punch_secret }) => (Some(Arc::new(reach)), Some(punch_secret)),
        None => (None, None),
    };
    let live =
        pair.iter().flat_map(|pair| places.all().into_iter().map(move |place| (pair, place)));
    for (pair, place) in live {
        // A listener on the same network reaches the caller at the packet's source address.
        let reach = reach.clone().filter(|_| !place.caps().broadcast);
        let search = PlaceSearch {
            place,
            pair: (*pair).clone(),
            reach,
            results: results.clone(),
            last: None,
        };
        tasks.spawn(search.run());
    }
    let listener = pair.map(|pair| (Slot::of_listener(pair, pair.peer()), secret.map(PunchSecret)));
    let sender = ticket.map(|(sender, capability)| (Slot::of_ticket(sender, capability), None));
    for (slot, secret) in listener.into_iter().chain(sender) {
        for store in &places.stores {
            let (store, slot) = (Arc::clone(store), slot.clone());
            tasks.spawn(stored::report_contact(store, slot, secret, results.clone()));
        }
    }
    let (stores, pair) = (places.stores.clone(), pair.cloned());
    let publish = reach.zip(secret).zip(pair).map(|((reach, secret), pair)| {
        Box::new(move || stored::publish_call(&stores, &pair, reach, secret)) as Box<_>
    });
    ContactSearch { found, publish, call: None, _tasks: tasks }
}

/// The search at one place.
struct PlaceSearch {
    place: Arc<dyn MeetingPlace>,
    pair: ContactPair,
    reach: Option<Arc<MakeReach>>,
    results: mpsc::Sender<SearchEvent>,
    last: Option<SearchEvent>,
}

/// Salts of the latest calls.
type CallSalts = Arc<Mutex<VecDeque<[u8; SALT_LEN]>>>;

impl PlaceSearch {
    async fn run(mut self) {
        loop {
            for topic in self.topics() {
                match self.query_once(topic).await {
                    Ok((reach, secret)) => {
                        self.report(SearchEvent::Found(self.place.place(), reach, secret)).await;
                    }
                    // The contact may arrive later.
                    Err(PlaceError::Nobody | PlaceError::Closed(_)) => {}
                    Err(why) => {
                        self.report(SearchEvent::PlaceFailed(self.place.place(), why)).await
                    }
                }
            }
            sleep(RETRY_INTERVAL).await;
        }
    }

    /// Returns the topics of the contact for all hours that its clock may show.
    fn topics(&self) -> Vec<Topic> {
        if self.place.caps().broadcast {
            return vec![Topic::AnyContact];
        }
        let tag = |hour: u64| Topic::Contact(self.pair.tag(self.pair.peer(), hour));
        hours_to_try(unix_seconds()).into_iter().map(tag).collect()
    }

    /// Makes one attempt and waits for an answer to one of its calls.
    async fn query_once(&self, topic: Topic) -> Result<(Reach, Option<PunchSecret>), PlaceError> {
        let calls = CallSalts::default();
        let mut query = self.place.query(topic, self.question(&calls));
        loop {
            let reply = query.next().await?;
            if let Some(found) = self.answer(&reply, &calls) {
                debug!(place = self.place.place().name(), "a contact was found");
                return Ok(found);
            }
        }
    }

    /// Returns a maker of calls with fresh salts, because a listener answers each call once.
    fn question(&self, calls: &CallSalts) -> MakeQuestion {
        let (pair, calls) = (self.pair.clone(), Arc::clone(calls));
        let ours = self.reach.clone();
        let len = self.place.caps().contact_message_len;
        Box::new(move || {
            let mut salt = [0; SALT_LEN];
            getrandom::fill(&mut salt).map_err(|_| PlaceError::no_randomness())?;
            let mut calls = calls.lock().unwrap_or_else(PoisonError::into_inner);
            if calls.len() >= MAX_CALLS {
                calls.pop_front();
            }
            calls.push_back(salt);
            let reach = ours.as_ref().map(|reach| reach(None)).unwrap_or_default();
            Ok(seal(
                &pair,
                salt,
                &ContactMessage::Call { unix_seconds: unix_seconds(), reach },
                len,
            ))
        })
    }

    /// Returns the contact's addresses if `reply` answers one of these calls.
    fn answer(&self, reply: &Reply, calls: &CallSalts) -> Option<(Reach, Option<PunchSecret>)> {
        let (_, ContactMessage::Answer { call, mut reach }) = open(&self.pair, &reply.message)?
        else {
            return None;
        };
        let is_ours = calls.lock().unwrap_or_else(PoisonError::into_inner).contains(&call);
        if let Some(from) = reply.from {
            reach.nearest_first(from);
        }
        let secret = || PunchSecret(*self.pair.punch_secret(&call));
        is_ours.then(|| (reach, self.reach.is_some().then(secret)))
    }

    /// Reports a changed result.
    async fn report(&mut self, found: SearchEvent) {
        if self.last.as_ref() != Some(&found) {
            self.last = Some(found.clone());
            // Without a receiver this task is about to end.
            let _ = self.results.send(found).await;
        }
    }
}
