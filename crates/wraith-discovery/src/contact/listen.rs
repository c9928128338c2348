//! Waiting for contacts at every place: whoever shares a secret with us is told where to dial, everybody else nothing.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use wraith_crypto::NodeId;

use super::lan::Ear;
use super::packet::{Said, open, seal};
use super::rendezvous;
use super::replay::Calls;
use super::{Addresses, MAX_CONTACTS, Pair, unix_seconds};
use crate::meet::Places;
use crate::meeting::Place;

/// Contacts that are waited for at a rendezvous server, each by a connection of its own: half of what a server allows one
/// address. The local network has room for all.
pub const MAX_AT_RENDEZVOUS: usize = 16;

/// What a listener is told while it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// This contact was told where to dial.
    Called(NodeId),
    /// Nobody can come from there at present.
    Lost(Place, String),
    /// Somebody can again.
    Back(Place),
}

/// Makes the list of our addresses; it is told the one that a rendezvous server saw.
pub(super) type MakeAddresses = Box<dyn Fn(Option<IpAddr>) -> Addresses + Send + Sync>;

/// What the places of a listener share.
pub(super) struct Board {
    pairs: Mutex<Vec<Pair>>,
    calls: Mutex<Calls>,
    addresses: MakeAddresses,
    tell: Box<dyn Fn(Happened) + Send + Sync>,
    stop: AtomicBool,
    /// The rendezvous server cannot be reached, and that was told.
    lost: AtomicBool,
}

impl Board {
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// The answer to a packet, if a contact calls with it for the first time. `seen`: our address, as the place saw it.
    pub fn answer(&self, packet: &[u8], seen: Option<IpAddr>) -> Option<Vec<u8>> {
        let (pair, salt, unix_seconds) = {
            let pairs = lock(&self.pairs);
            pairs.iter().find_map(|pair| match open(pair, packet)? {
                (salt, Said::Call { unix_seconds }) => Some((pair.clone(), salt, unix_seconds)),
                _ => None,
            })?
        };
        self.answer_to(&pair, salt, unix_seconds, seen, packet.len())
    }

    fn answer_to(
        &self,
        pair: &Pair,
        call: [u8; 16],
        dated: u64,
        seen: Option<IpAddr>,
        len: usize,
    ) -> Option<Vec<u8>> {
        if !lock(&self.calls).admit(unix_seconds(), call, dated) {
            return None;
        }
        let mut salt = [0; 16];
        getrandom::fill(&mut salt).ok()?;
        let said = Said::Answer { call, addresses: (self.addresses)(seen) };
        (self.tell)(Happened::Called(pair.peer()));
        Some(seal(pair, salt, &said, len))
    }

    pub fn lost(&self, place: &Place, why: String) {
        if !self.lost.swap(true, Relaxed) {
            (self.tell)(Happened::Lost(place.clone(), why));
        }
    }

    pub fn back(&self, place: &Place) {
        if self.lost.swap(false, Relaxed) {
            (self.tell)(Happened::Back(place.clone()));
        }
    }
}

impl fmt::Debug for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board").field("pairs", &self.pairs).finish_non_exhaustive()
    }
}

/// A listener, until this is dropped.
#[derive(Debug)]
pub struct Listening {
    board: Arc<Board>,
    places: Vec<Place>,
    missing: Vec<(Place, String)>,
    server: Option<String>,
    /// Of each contact that is waited for at the server: set to stop that.
    waits: Mutex<HashMap<NodeId, Arc<AtomicBool>>>,
}

impl Listening {
    /// Where it is waited.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Where it cannot be, and why.
    pub fn missing(&self) -> &[(Place, String)] {
        &self.missing
    }

    /// Whom to answer from now on, at most [`MAX_CONTACTS`], the most important first: only the first
    /// [`MAX_AT_RENDEZVOUS`] are waited for at a server.
    pub fn set_contacts(&self, mut pairs: Vec<Pair>) {
        pairs.truncate(MAX_CONTACTS);
        if let Some(server) = &self.server {
            let mut waits = lock(&self.waits);
            let wanted = &pairs[..pairs.len().min(MAX_AT_RENDEZVOUS)];
            waits.retain(|peer, stop| {
                let stays = wanted.iter().any(|pair| pair.peer() == *peer);
                stop.store(!stays, Relaxed);
                stays
            });
            for pair in wanted {
                waits.entry(pair.peer()).or_insert_with(|| {
                    let stop = Arc::new(AtomicBool::new(false));
                    let (theirs, board) = (Arc::clone(&stop), Arc::clone(&self.board));
                    let (server, pair) = (server.clone(), pair.clone());
                    let wait = move || rendezvous::wait(&server, &pair, &board, &theirs);
                    // Without a thread this contact is not found there; there are other places.
                    drop(thread::Builder::new().name("rendezvous".into()).spawn(wait));
                    stop
                });
            }
        }
        *lock(&self.board.pairs) = pairs;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.board.stop.store(true, Relaxed);
    }
}

/// Begins to answer at all places. `addresses` tells where we can be dialled, given our address as a rendezvous server saw it;
/// it and `tell` are called from other threads. Nobody is answered before [`Listening::set_contacts`].
pub fn listen(
    places: &Places,
    addresses: impl Fn(Option<IpAddr>) -> Addresses + Send + Sync + 'static,
    tell: impl Fn(Happened) + Send + Sync + 'static,
) -> Listening {
    let board = Arc::new(Board {
        pairs: Mutex::default(),
        calls: Mutex::default(),
        addresses: Box::new(addresses),
        tell: Box::new(tell),
        stop: AtomicBool::new(false),
        lost: AtomicBool::new(false),
    });
    let (mut at, mut missing) = (Vec::new(), Vec::new());
    let ear = Ear::new(places.lan.clone()).and_then(|ear| {
        let board = Arc::clone(&board);
        let listening = move || ear.listen(&board);
        thread::Builder::new().name("lan".into()).spawn(listening).map_err(|e| e.to_string())
    });
    match ear {
        Ok(_) => at.push(Place::Lan),
        Err(why) => missing.push((Place::Lan, why)),
    }
    at.extend(places.rendezvous.clone().map(Place::Rendezvous));
    let (server, waits) = (places.rendezvous.clone(), Mutex::default());
    Listening { board, places: at, missing, server, waits }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whatever is behind these locks is replaced whole.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
