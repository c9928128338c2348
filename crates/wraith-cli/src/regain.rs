//! Finding each other again (SPEC §12.3): a sender that has lost a receiver answers it wherever codes are met, and a receiver
//! that does not reach its sender where the ticket says asks there. So a transfer survives that the sender's address changes
//! while nothing is connected, and a sender that is started again elsewhere.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use wraith_crypto::{NodeId, SecretIdentity};
use wraith_discovery::contact::{Call, Found, Listening, Pair, call, listen};
use wraith_discovery::{Capability, Lan, Places};
use zeroize::Zeroizing;

use crate::listen::dialable;

/// Receivers that are answered at most; of more, the last ones.
const MAX_RECEIVERS: usize = 16;
/// Addresses that are believed at once; more than a machine has in a ticket.
const MAX_ADDRESSES: usize = 16;

/// The sender's side.
#[derive(Debug)]
pub struct Answering {
    seed: Zeroizing<[u8; 32]>,
    capability: Capability,
    places: Places,
    bound: SocketAddr,
    /// Who was lost, the last first.
    lost: Vec<Pair>,
    listening: Option<Listening>,
}

impl Answering {
    /// Answers nobody yet. `bound` is where receivers can dial.
    pub fn new(
        seed: [u8; 32],
        capability: Capability,
        mut places: Places,
        bound: SocketAddr,
    ) -> Self {
        if let (false, Lan::All) = (bound.ip().is_unspecified(), &places.lan) {
            // Who cannot reach the sender there need not hear of it.
            places.lan = Lan::With(bound.ip());
        }
        let seed = Zeroizing::new(seed);
        Self { seed, capability, places, bound, lost: Vec::new(), listening: None }
    }

    /// From now on this receiver is told where we are.
    pub fn lost(&mut self, receiver: NodeId) {
        let own = SecretIdentity::from_seed(*self.seed);
        // Somebody whose key is none was never connected.
        let Ok(pair) = Pair::of_transfer(&own, receiver, self.capability.as_bytes()) else {
            return;
        };
        self.lost.retain(|pair| pair.peer() != receiver);
        self.lost.insert(0, pair);
        self.lost.truncate(MAX_RECEIVERS);
        self.answer();
    }

    /// It is connected again, or done.
    pub fn back(&mut self, receiver: NodeId) {
        let before = self.lost.len();
        self.lost.retain(|pair| pair.peer() != receiver);
        if self.lost.len() != before {
            self.answer();
        }
    }

    fn answer(&mut self) {
        if self.lost.is_empty() {
            self.listening = None;
            return;
        }
        let bound = self.bound;
        let listening = self.listening.get_or_insert_with(|| {
            // What cannot be reached now may be later, and the receiver tries all it knows in any case.
            listen(&self.places, move |seen| dialable(bound, seen), |_| {})
        });
        listening.set_contacts(self.lost.clone());
    }
}

/// The receiver's side: a search that goes on until this is dropped.
#[derive(Debug)]
pub struct Asking {
    found: Arc<Mutex<Vec<SocketAddr>>>,
    _call: Option<Call>,
}

impl Asking {
    /// Begins to look for the sender of this transfer.
    pub fn begin(
        own: &SecretIdentity,
        sender: NodeId,
        capability: &Capability,
        places: &Places,
    ) -> Self {
        let found = Arc::<Mutex<Vec<SocketAddr>>>::default();
        let list = Arc::clone(&found);
        let tell = move |news| {
            if let Found::At(_, mut addresses) = news {
                addresses.truncate(MAX_ADDRESSES);
                *list.lock().unwrap_or_else(PoisonError::into_inner) = addresses;
            }
        };
        let pair = Pair::of_transfer(own, sender, capability.as_bytes());
        // Without a search the addresses of the ticket remain.
        let call = pair.ok().and_then(|pair| call(&pair, places, tell).ok());
        Self { found, _call: call }
    }

    /// Where the sender says that it is.
    pub fn found(&self) -> Vec<SocketAddr> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
