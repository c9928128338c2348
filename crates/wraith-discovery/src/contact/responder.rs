//! A listener's responder: it returns the listener's addresses to contacts and ignores all other
//! packets.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use wraith_crypto::NodeId;

use super::packet::{ContactMessage, SALT_LEN, open, seal};
use super::pair::ContactPair;
use super::replay::{CallReplayFilter, CallVerdict};
use crate::place::{PlaceError, PlaceName, Question, Responder, Response};
use crate::reach::{MakeReach, Reach};
use crate::wall_clock::unix_seconds;

/// An event of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContactEvent {
    /// This contact received the listener's addresses and did not send its own.
    Called(NodeId),
    /// A call of this contact got no answer: its time minus the listener's is this many seconds. An
    /// old call that a third party repeats also causes it, if an earlier process received it.
    ClockDiffers(NodeId, i64),
    /// This contact is looking for the listener and has sent its addresses.
    PunchRequest(PlaceName, PunchRequest),
    /// No contact can arrive at this place at present.
    Lost(PlaceName, PlaceError),
    /// The place has recovered.
    Back(PlaceName),
}

/// A caller's request for simultaneous hole punching, for a listener that it cannot reach directly.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PunchRequest {
    /// The caller.
    pub peer: NodeId,
    /// The caller's addresses.
    pub reach: Reach,
    /// Secret of this attempt, shared by the two peers. It authenticates their packets.
    pub punch_secret: [u8; PUNCH_SECRET_LEN],
}

/// Length of a hole-punching secret in bytes.
pub const PUNCH_SECRET_LEN: usize = 32;

/// The hole-punching secret of one attempt on the caller's side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PunchSecret(pub [u8; PUNCH_SECRET_LEN]);

impl fmt::Debug for PunchSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PunchSecret(..)")
    }
}

impl fmt::Debug for PunchRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PunchRequest").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// State shared by all places of a listener.
pub struct ContactResponder {
    pairs: Mutex<Vec<ContactPair>>,
    calls: Mutex<CallReplayFilter>,
    reach: MakeReach,
    /// One event per call of a contact and per change of a place; these are few, so the channel
    /// needs no limit.
    events: mpsc::UnboundedSender<ContactEvent>,
}

impl ContactResponder {
    pub fn new(reach: MakeReach, events: mpsc::UnboundedSender<ContactEvent>) -> Self {
        Self { pairs: Mutex::default(), calls: Mutex::default(), reach, events }
    }

    /// Sets the contacts to answer.
    pub fn set_pairs(&self, pairs: Vec<ContactPair>) {
        *lock(&self.pairs) = pairs;
    }

    /// Returns the listener's addresses for a record.
    pub fn reach(&self) -> Reach {
        (self.reach)(None)
    }

    pub fn emit(&self, event: ContactEvent) {
        // Without a handle the event is dropped.
        let _ = self.events.send(event);
    }

    /// Opens a call. Returns the contact, the salt, the caller's clock, and its addresses.
    fn caller(&self, packet: &[u8]) -> Option<(ContactPair, [u8; SALT_LEN], u64, Reach)> {
        lock(&self.pairs).iter().find_map(|pair| match open(pair, packet)? {
            (salt, ContactMessage::Call { unix_seconds, reach }) => {
                Some((pair.clone(), salt, unix_seconds, reach))
            }
            _ => None,
        })
    }
}

impl Responder for ContactResponder {
    /// Answers a contact's call once.
    fn respond(&self, question: &Question<'_>) -> Option<Response> {
        let (pair, call, dated, reach) = self.caller(question.message)?;
        let verdict = lock(&self.calls).admit(unix_seconds(), call, dated);
        match verdict {
            CallVerdict::New => {}
            CallVerdict::Known => return None,
            CallVerdict::ClockDiffers(seconds) => {
                self.emit(ContactEvent::ClockDiffers(pair.peer(), seconds));
                return None;
            }
        }
        let mut salt = [0; SALT_LEN];
        getrandom::fill(&mut salt).ok()?;
        let message = ContactMessage::Answer { call, reach: (self.reach)(question.seen) };
        let (events, peer) = (self.events.clone(), pair.peer());
        let called = match reach.is_empty() {
            true => ContactEvent::Called(peer),
            false => {
                let punch_secret = *pair.punch_secret(&call);
                let call = PunchRequest { peer, reach, punch_secret };
                ContactEvent::PunchRequest(question.place.clone(), call)
            }
        };
        // As long as the request, so that its length reveals nothing.
        let response = Response::new(seal(&pair, salt, &message, question.message.len()));
        Some(response.on_sent(move || drop(events.send(called))))
    }
}

impl fmt::Debug for ContactResponder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContactResponder").field("pairs", &self.pairs).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Values behind these locks are always replaced as a whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
