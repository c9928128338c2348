//! Looking for a contact at every place at once, until it is found or nobody cares any more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use super::{Addresses, Pair, lan, rendezvous};
use crate::lan::Lan;
use crate::meet::Places;
use crate::meeting::Place;

/// What became of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The contact listens and says where.
    At(Place, Addresses),
    /// The place cannot be asked at present.
    Not(Place, String),
}

/// A search, which ends when this is dropped.
#[derive(Debug)]
pub struct Call {
    stop: Arc<AtomicBool>,
}

impl Drop for Call {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
    }
}

/// One place's part of a search: what it finds is told once, and again when it changes.
pub(super) struct Search {
    pub pair: Pair,
    stop: Arc<AtomicBool>,
    tell: Arc<dyn Fn(Found) + Send + Sync>,
    last: Option<Found>,
}

impl Search {
    pub fn is_over(&self) -> bool {
        self.stop.load(Relaxed)
    }

    pub fn tell(&mut self, found: Found) {
        if self.last.as_ref() != Some(&found) && !self.is_over() {
            (self.tell)(found.clone());
            self.last = Some(found);
        }
    }
}

/// Looks for `pair.peer()` at these places. `tell` is called from other threads.
///
/// # Errors
/// The system gives no thread.
pub fn call(
    pair: &Pair,
    places: &Places,
    tell: impl Fn(Found) + Send + Sync + 'static,
) -> io::Result<Call> {
    let (stop, tell) = (Arc::new(AtomicBool::new(false)), Arc::new(tell));
    let call = Call { stop: Arc::clone(&stop) };
    let search =
        || Search { pair: pair.clone(), stop: stop.clone(), tell: tell.clone(), last: None };
    if places.lan != Lan::Off {
        let (lan, search) = (places.lan.clone(), search());
        thread::Builder::new().name("lan".into()).spawn(move || lan::call(&lan, search))?;
    }
    if let Some(server) = places.rendezvous.clone() {
        let search = search();
        let name = "rendezvous".into();
        thread::Builder::new().name(name).spawn(move || rendezvous::call(&server, search))?;
    }
    Ok(call)
}
