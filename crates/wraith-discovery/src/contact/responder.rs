//! What a listener answers, wherever it is called: whoever shares a secret with us is told where to dial, everybody else
//! nothing.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use wraith_crypto::NodeId;

use super::Addresses;
use super::hour::unix_seconds;
use super::packet::{SALT_LEN, Said, open, seal};
use super::pair::Pair;
use super::replay::Calls;
use crate::place::{Place, PlaceError, Question, Responder, Response};

/// What a listener is told while it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContactEvent {
    /// This contact was told where to dial.
    Called(NodeId),
    /// Nobody can come from there at present.
    Lost(Place, PlaceError),
    /// Somebody can again.
    Back(Place),
}

/// Makes the list of our addresses; it is told ours as the place sees it.
pub type MakeAddresses = Box<dyn Fn(Option<IpAddr>) -> Addresses + Send + Sync>;

/// What all places of a listener share.
pub struct ContactResponder {
    pairs: Mutex<Vec<Pair>>,
    calls: Mutex<Calls>,
    addresses: MakeAddresses,
    /// One for each call of a contact and each change of a place: few, so they need no bound.
    events: mpsc::UnboundedSender<ContactEvent>,
}

impl ContactResponder {
    pub fn new(addresses: MakeAddresses, events: mpsc::UnboundedSender<ContactEvent>) -> Self {
        Self { pairs: Mutex::default(), calls: Mutex::default(), addresses, events }
    }

    /// Whom to answer from now on.
    pub fn set_pairs(&self, pairs: Vec<Pair>) {
        *lock(&self.pairs) = pairs;
    }

    pub fn tell(&self, event: ContactEvent) {
        // Without a handle there is nobody to tell.
        let _ = self.events.send(event);
    }

    /// Who calls with this packet, with which salt, and what time it is there.
    fn caller(&self, packet: &[u8]) -> Option<(Pair, [u8; SALT_LEN], u64)> {
        lock(&self.pairs).iter().find_map(|pair| match open(pair, packet)? {
            (salt, Said::Call { unix_seconds }) => Some((pair.clone(), salt, unix_seconds)),
            _ => None,
        })
    }
}

impl Responder for ContactResponder {
    /// Answers a packet if a contact calls with it for the first time.
    fn respond(&self, question: &Question<'_>) -> Option<Response> {
        let (pair, call, dated) = self.caller(question.message)?;
        if !lock(&self.calls).admit(unix_seconds(), call, dated) {
            return None;
        }
        let mut salt = [0; SALT_LEN];
        getrandom::fill(&mut salt).ok()?;
        let said = Said::Answer { call, addresses: (self.addresses)(question.seen) };
        let (events, called) = (self.events.clone(), ContactEvent::Called(pair.peer()));
        // As long as the question, so that its length tells nothing.
        let response = Response::new(seal(&pair, salt, &said, question.message.len()));
        Some(response.then(move || drop(events.send(called))))
    }
}

impl fmt::Debug for ContactResponder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContactResponder").field("pairs", &self.pairs).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whatever is behind these locks is replaced whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
