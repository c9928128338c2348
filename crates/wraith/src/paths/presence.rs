//! Lets contacts find a socket of this node at the meeting places.
//!
//! A socket has one presence, which all roles for contacts share: the listener, and services for
//! contacts. So contacts get one answer, and each place has one entry. The presence also watches the
//! contacts: without a restart, a new contact finds the socket, and a removed one gets no answer.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_discovery::contact::{ContactEvent, ContactListener, ContactPair, listen};
use wraith_discovery::{PlaceError, PlaceName};

use super::{SocketPaths, lock};
use crate::clock_reports::ClockReports;
use crate::error::Error;
use crate::event::Event;
use crate::event_publisher::EventPublisher;
use crate::node_core::{NodeCore, reachable_places};
use crate::state::{Contact, ContactsWatch};

/// The contacts of a node at some moment.
pub(crate) type Contacts = Arc<Vec<Contact>>;

/// The presence of a socket, as one role uses it. Dropping the last one ends the presence.
#[derive(Debug)]
pub(crate) struct Presence(Arc<Shared>);

impl Drop for Presence {
    fn drop(&mut self) {
        if self.0.leave() {
            self.0.stop.cancel();
        }
    }
}

/// The presence of a socket, for later roles.
#[derive(Debug, Default)]
pub(crate) struct CurrentPresence(tokio::sync::Mutex<Weak<Shared>>);

#[derive(Debug)]
struct Shared {
    places: Vec<PlaceName>,
    missing: Vec<(PlaceName, PlaceError)>,
    contacts: watch::Receiver<Contacts>,
    readers: Arc<Readers>,
    roles: Mutex<usize>,
    stop: CancellationToken,
    /// Becomes true once the records at the places are withdrawn.
    ended: watch::Receiver<bool>,
}

/// The publishers of the roles, which get the events of a presence.
#[derive(Debug, Default)]
struct Readers(Mutex<Vec<(Weak<EventPublisher>, ClockReports)>>);

impl Readers {
    fn add(&self, publisher: &Arc<EventPublisher>, clocks: &ClockReports) {
        let mut readers = lock(&self.0);
        readers.retain(|(reader, _)| reader.strong_count() > 0);
        readers.push((Arc::downgrade(publisher), clocks.clone()));
    }

    fn publish(&self, event: &Event) {
        let readers = lock(&self.0).clone();
        for publisher in readers.iter().filter_map(|(reader, _)| reader.upgrade()) {
            publisher.publish_beside(None, event.clone());
        }
    }

    fn report_clock(&self, peer: NodeId, seconds: i64) {
        let readers = lock(&self.0).clone();
        for (_, clocks) in readers.iter().filter(|(reader, _)| reader.strong_count() > 0) {
            clocks.report(Some(peer), seconds);
        }
    }
}

impl Presence {
    /// Joins the presence of the socket, or starts it. `publisher` gets its events.
    ///
    /// # Errors
    /// The contacts cannot be read.
    pub async fn of(
        paths: &SocketPaths,
        publisher: &Arc<EventPublisher>,
        clocks: &ClockReports,
    ) -> Result<Self, Error> {
        let mut current = paths.inner.presence.0.lock().await;
        let shared = match current.upgrade().filter(|shared| shared.join()) {
            Some(shared) => shared,
            None => {
                if let Some(ending) = current.upgrade() {
                    // Its withdrawal would replace the new records.
                    let _ = ending.ended.clone().wait_for(|ended| *ended).await;
                }
                let shared = Arc::new(Shared::start(paths.of_all_roles()).await?);
                *current = Arc::downgrade(&shared);
                shared
            }
        };
        shared.readers.add(publisher, clocks);
        Ok(Self(shared))
    }

    /// Returns the meeting places at which contacts can find the socket.
    pub fn places(&self) -> &[PlaceName] {
        &self.0.places
    }

    /// Returns the configured places at which contacts cannot find it, and why.
    pub fn missing(&self) -> &[(PlaceName, PlaceError)] {
        &self.0.missing
    }

    /// Returns the contacts, and their changes.
    pub fn contacts(&self) -> watch::Receiver<Contacts> {
        self.0.contacts.clone()
    }

    /// Leaves the presence. The last role withdraws the records at the meeting places, within a few
    /// seconds.
    pub async fn close(self) {
        let shared = Arc::clone(&self.0);
        drop(self);
        if shared.stop.is_cancelled() {
            // Without the task there is nothing left to withdraw.
            let _ = shared.ended.clone().wait_for(|ended| *ended).await;
        }
    }
}

impl Shared {
    async fn start(paths: SocketPaths) -> Result<Self, Error> {
        let core = Arc::clone(&paths.inner.core);
        let watch = {
            let _entered = core.runtime.enter();
            // Start the watch before the contacts are read, so that no change is missed.
            ContactsWatch::new(&core.state)
        };
        let contacts = Contacts::new(core.state.contacts().load()?.contacts().to_vec());
        let places = reachable_places(&core.places, paths.endpoint().local_addr());
        let listener = listen(&places, paths.make_reach()).await;
        listener.set_contacts(pairs_of(&core.identity, &contacts));
        let (at, missing) = (listener.places().to_vec(), listener.missing().to_vec());
        let (contacts_tx, contacts) = watch::channel(contacts);
        let (ended_tx, ended) = watch::channel(false);
        let (stop, readers) = (CancellationToken::new(), Arc::<Readers>::default());
        let task = PresenceTask {
            core,
            paths: paths.clone(),
            listener,
            watch,
            contacts: contacts_tx,
            is_damaged: false,
            readers: Arc::clone(&readers),
            stop: stop.clone(),
        };
        paths.keep_observed_fresh();
        paths.spawn(async move {
            task.run().await;
            ended_tx.send_replace(true);
        });
        Ok(Self { places: at, missing, contacts, readers, roles: Mutex::new(1), stop, ended })
    }

    fn join(&self) -> bool {
        let mut roles = lock(&self.roles);
        *roles += usize::from(*roles > 0);
        *roles > 0
    }

    /// Returns true for the last role.
    fn leave(&self) -> bool {
        let mut roles = lock(&self.roles);
        *roles -= 1;
        *roles == 0
    }
}

struct PresenceTask {
    core: Arc<NodeCore>,
    paths: SocketPaths,
    listener: ContactListener,
    watch: ContactsWatch,
    contacts: watch::Sender<Contacts>,
    /// The read error of the contacts was already reported.
    is_damaged: bool,
    readers: Arc<Readers>,
    stop: CancellationToken,
}

impl PresenceTask {
    async fn run(mut self) {
        let mut changes = self.paths.changes();
        loop {
            tokio::select! {
                Ok(()) = changes.changed() => self.listener.addresses_changed(),
                Some(event) = self.listener.next_event() => self.contact_event(event),
                () = self.watch.changed() => self.reload(),
                () = self.stop.cancelled() => break,
            }
        }
        self.listener.close().await;
    }

    fn contact_event(&self, event: ContactEvent) {
        match event {
            ContactEvent::ClockDiffers(peer, seconds) => self.readers.report_clock(peer, seconds),
            ContactEvent::PunchRequest(_, call) => {
                self.paths.punch_for_caller(call.punch_secret, call.reach.addresses());
            }
            ContactEvent::Lost(place, why) => {
                self.readers.publish(&Event::PlaceLost { place, why });
            }
            ContactEvent::Back(place) => self.readers.publish(&Event::PlaceBack(place)),
            _ => {}
        }
    }

    /// Applies a possible change of the contacts. If they cannot be read, the previous ones remain.
    fn reload(&mut self) {
        match self.core.state.contacts().load() {
            Ok(book) => {
                self.is_damaged = false;
                let now = Contacts::new(book.contacts().to_vec());
                if node_ids(&now) != node_ids(&self.contacts.borrow()) {
                    self.listener.set_contacts(pairs_of(&self.core.identity, &now));
                    self.contacts.send_replace(now);
                }
            }
            Err(error) if !std::mem::replace(&mut self.is_damaged, true) => {
                let what = format!("{error}; the previous contacts remain in effect");
                self.readers.publish(&Event::Note { path: String::new(), what });
            }
            Err(_) => {}
        }
    }
}

/// Returns the pairs with these contacts, the most recently met first: a rendezvous server has no
/// room for all.
pub(crate) fn pairs_of(own: &SecretIdentity, contacts: &[Contact]) -> Vec<ContactPair> {
    let mut contacts: Vec<_> = contacts.iter().collect();
    contacts.sort_by_key(|contact| Reverse(contact.last_met));
    contacts.iter().filter_map(|contact| ContactPair::new(own, contact.node_id).ok()).collect()
}

pub(crate) fn node_ids(contacts: &[Contact]) -> HashSet<NodeId> {
    contacts.iter().map(|contact| contact.node_id).collect()
}
