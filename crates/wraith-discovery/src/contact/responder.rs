//! What a listener answers, wherever it is called: whoever shares a secret with us is told where to dial, everybody else
//! nothing.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc;
use wraith_crypto::NodeId;

use super::hour::unix_seconds;
use super::packet::{SALT_LEN, Said, open, seal};
use super::pair::Pair;
use super::replay::Calls;
use crate::place::{Place, PlaceError, Question, Responder, Response};
use crate::reach::{MakeReach, Reach};

/// What a listener is told while it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ContactEvent {
    /// This contact was told where to dial, and did not say where it can be reached itself.
    Called(NodeId),
    /// This contact looks for us, and says where it can be reached.
    LeftCall(Place, LeftCall),
    /// Nobody can come from there at present.
    Lost(Place, PlaceError),
    /// Somebody can again.
    Back(Place),
}

/// What a caller leaves for a listener that it cannot reach at once: both begin to send to each other then.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftCall {
    /// Who calls.
    pub peer: NodeId,
    /// Where it can be reached.
    pub reach: Reach,
    /// A secret of this attempt, which only the two know: it tells the right one's packets from all others.
    pub punch_secret: [u8; PUNCH_SECRET_LEN],
}

/// Bytes of the secret of one attempt to reach each other.
pub const PUNCH_SECRET_LEN: usize = 32;

/// The secret of one attempt to reach each other, as the caller has it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PunchSecret(pub [u8; PUNCH_SECRET_LEN]);

impl fmt::Debug for PunchSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PunchSecret(..)")
    }
}

impl fmt::Debug for LeftCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeftCall").field("peer", &self.peer).finish_non_exhaustive()
    }
}

/// What all places of a listener share.
pub struct ContactResponder {
    pairs: Mutex<Vec<Pair>>,
    calls: Mutex<Calls>,
    reach: MakeReach,
    /// One for each call of a contact and each change of a place: few, so they need no bound.
    events: mpsc::UnboundedSender<ContactEvent>,
}

impl ContactResponder {
    pub fn new(reach: MakeReach, events: mpsc::UnboundedSender<ContactEvent>) -> Self {
        Self { pairs: Mutex::default(), calls: Mutex::default(), reach, events }
    }

    /// Whom to answer from now on.
    pub fn set_pairs(&self, pairs: Vec<Pair>) {
        *lock(&self.pairs) = pairs;
    }

    /// Where we can be reached, for a record.
    pub fn reach(&self) -> Reach {
        (self.reach)(None)
    }

    pub fn tell(&self, event: ContactEvent) {
        // Without a handle there is nobody to tell.
        let _ = self.events.send(event);
    }

    /// Who calls with this packet, with which salt, what time it is there, and where it can be reached.
    fn caller(&self, packet: &[u8]) -> Option<(Pair, [u8; SALT_LEN], u64, Reach)> {
        lock(&self.pairs).iter().find_map(|pair| match open(pair, packet)? {
            (salt, Said::Call { unix_seconds, reach }) => {
                Some((pair.clone(), salt, unix_seconds, reach))
            }
            _ => None,
        })
    }
}

impl Responder for ContactResponder {
    /// Answers a packet if a contact calls with it for the first time.
    fn respond(&self, question: &Question<'_>) -> Option<Response> {
        let (pair, call, dated, reach) = self.caller(question.message)?;
        if !lock(&self.calls).admit(unix_seconds(), call, dated) {
            return None;
        }
        let mut salt = [0; SALT_LEN];
        getrandom::fill(&mut salt).ok()?;
        let said = Said::Answer { call, reach: (self.reach)(question.seen) };
        let (events, peer) = (self.events.clone(), pair.peer());
        let called = match reach.is_empty() {
            true => ContactEvent::Called(peer),
            false => {
                let punch_secret = *pair.punch_secret(&call);
                let call = LeftCall { peer, reach, punch_secret };
                ContactEvent::LeftCall(question.place.clone(), call)
            }
        };
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
