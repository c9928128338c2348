//! Waits for contacts at every place. A broadcast place has one topic for all contacts. Other
//! places have one per contact and hour. Record stores have one record per contact and hour.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::select;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wraith_crypto::NodeId;

use super::MAX_CONTACTS;
use super::hour::{hour, hour_after};
use super::pair::ContactPair;
use super::place_status::PlaceStatus;
use super::responder::{ContactEvent, ContactResponder};
use super::stored::StoredContacts;
use crate::backoff::Backoff;
use crate::place::{Announcement, EndSignal, MeetingPlace, PlaceError, PlaceName, Topic};
use crate::places::Places;
use crate::reach::MakeReach;

/// A running listener; drop ends it.
#[derive(Debug)]
pub struct ContactListener {
    places: Vec<PlaceName>,
    missing: Vec<(PlaceName, PlaceError)>,
    responder: Arc<ContactResponder>,
    contact_topics: Vec<ContactTopics>,
    stored: Vec<StoredContacts>,
    events: Option<ContactEvents>,
    /// Tasks of broadcast places.
    _broadcasts: JoinSet<()>,
}

/// Events of a listener, as a separate handle.
#[derive(Debug)]
pub struct ContactEvents(mpsc::UnboundedReceiver<ContactEvent>);

impl ContactEvents {
    /// Returns the next event, or `None` once the listener was dropped. Cancel-safe.
    pub async fn next(&mut self) -> Option<ContactEvent> {
        self.0.recv().await
    }
}

/// Starts to answer at all places. `reach` returns the listener's addresses. No contact is answered
/// before [`ContactListener::set_contacts`]. Must be called in a tokio runtime.
pub async fn listen(places: &Places, reach: MakeReach) -> ContactListener {
    let (sender, events) = mpsc::unbounded_channel();
    let responder = Arc::new(ContactResponder::new(reach, sender));
    let (mut at, mut missing) = (Vec::new(), Vec::new());
    let (mut broadcasts, mut contact_topics) = (JoinSet::new(), Vec::new());
    for place in places.all() {
        let name = place.place();
        let status = Arc::new(PlaceStatus::new(name.clone(), Arc::clone(&responder)));
        if !place.caps().broadcast {
            at.push(name);
            contact_topics.push(ContactTopics { place, status, tasks: Mutex::default() });
            continue;
        }
        match place.announce(Topic::AnyContact).await {
            Ok(announcement) => {
                at.push(name);
                broadcasts.spawn(serve_broadcast_place(place, announcement, status));
            }
            Err(why) => missing.push((name, why)),
        }
    }
    let mut stored = Vec::new();
    for store in &places.stores {
        at.push(store.place());
        let status = Arc::new(PlaceStatus::new(store.place(), Arc::clone(&responder)));
        stored.push(StoredContacts::new(Arc::clone(store), Arc::clone(&responder), status));
    }
    let events = Some(ContactEvents(events));
    ContactListener {
        places: at,
        missing,
        responder,
        contact_topics,
        stored,
        events,
        _broadcasts: broadcasts,
    }
}

impl ContactListener {
    /// Returns the places where the listener waits.
    pub fn places(&self) -> &[PlaceName] {
        &self.places
    }

    /// Returns the places that failed, with reasons.
    pub fn missing(&self) -> &[(PlaceName, PlaceError)] {
        &self.missing
    }

    /// Sets the contacts to answer, most important first and at most [`MAX_CONTACTS`]. A place with
    /// one topic per contact serves only the first few. Must be called in a tokio runtime.
    pub fn set_contacts(&self, mut pairs: Vec<ContactPair>) {
        pairs.truncate(MAX_CONTACTS);
        for contact_topics in &self.contact_topics {
            contact_topics.set_contacts(&pairs);
        }
        for stored in &self.stored {
            stored.publish_for(&pairs);
        }
        self.responder.set_pairs(pairs);
    }

    /// Call this after the listener's addresses changed. Records are republished, and contacts'
    /// calls are searched for at once.
    pub fn addresses_changed(&self) {
        for stored in &self.stored {
            stored.update();
        }
    }

    /// Ends the listener and withdraws its records, within a few seconds. After a mere drop,
    /// records stay until they expire.
    pub async fn close(self) {
        let mut withdrawing = JoinSet::new();
        for stored in self.stored {
            withdrawing.spawn(stored.withdraw());
        }
        while withdrawing.join_next().await.is_some() {}
    }

    /// Returns the next event, or `None` after [`Self::take_events`]. Cancel-safe.
    pub async fn next_event(&mut self) -> Option<ContactEvent> {
        match &mut self.events {
            Some(events) => events.next().await,
            None => None,
        }
    }

    /// Takes the events as a separate handle, once.
    pub fn take_events(&mut self) -> Option<ContactEvents> {
        self.events.take()
    }
}

/// A place with one topic per contact.
#[derive(Debug)]
struct ContactTopics {
    place: Arc<dyn MeetingPlace>,
    status: Arc<PlaceStatus>,
    /// One task per served contact.
    tasks: Mutex<HashMap<NodeId, JoinSet<()>>>,
}

impl ContactTopics {
    fn set_contacts(&self, pairs: &[ContactPair]) {
        let served_pairs = &pairs[..pairs.len().min(self.place.caps().contacts)];
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|peer, _| served_pairs.iter().any(|pair| pair.peer() == *peer));
        for pair in served_pairs {
            tasks.entry(pair.peer()).or_insert_with(|| {
                let (place, status) = (Arc::clone(&self.place), Arc::clone(&self.status));
                let mut task = JoinSet::new();
                task.spawn(serve_contact_topic(place, pair.clone(), status));
                task
            });
        }
    }
}

/// Task of one broadcast place.
async fn serve_broadcast_place(
    place: Arc<dyn MeetingPlace>,
    announcement: Box<dyn Announcement>,
    status: Arc<PlaceStatus>,
) {
    let (_never, end) = EndSignal::channel();
    let mut announced = Ok(announcement);
    let mut backoff = Backoff::of_a_place();
    loop {
        let Err(why) = serve_announcement(announced, &status, &end, &mut backoff).await else {
            return;
        };
        status.mark_down(why);
        backoff.wait().await;
        announced = place.announce(Topic::AnyContact).await;
    }
}

/// Task of one contact at a place with one topic per contact and hour.
async fn serve_contact_topic(
    place: Arc<dyn MeetingPlace>,
    pair: ContactPair,
    status: Arc<PlaceStatus>,
) {
    let (_never, end) = EndSignal::channel();
    let mut backoff = Backoff::of_a_place();
    loop {
        let now = hour();
        let topic = Topic::Contact(pair.tag(pair.own(), now));
        let served = async {
            let announced = place.announce(topic).await;
            serve_announcement(announced, &status, &end, &mut backoff).await
        };
        let result = select! {
            result = served => result,
            // The topic changes with the hour.
            () = hour_after(now) => continue,
        };
        let Err(why) = result else { return };
        status.mark_down(why);
        backoff.wait().await;
    }
}

/// Answers until the place is lost.
async fn serve_announcement(
    announced: Result<Box<dyn Announcement>, PlaceError>,
    status: &PlaceStatus,
    end: &EndSignal,
    backoff: &mut Backoff,
) -> Result<(), PlaceError> {
    let announcement = announced?;
    backoff.succeeded(Instant::now());
    status.mark_up();
    announcement.serve_queries(status.responder.clone(), end.clone()).await
}
