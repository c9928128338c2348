//! Selection of the places to use: built-in ones and those of the application.

use std::sync::Arc;

use crate::connect::{Connect, Direct};
use crate::lan::{Lan, LanPlace};
use crate::place::{MeetingPlace, PlaceName};
use crate::rendezvous::RendezvousPlace;
use crate::store::RecordStore;

/// The configured places.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Interfaces of the local network.
    pub lan: Lan,
    /// Rendezvous server, as `HOST:PORT`.
    pub rendezvous: Option<String>,
    /// Connector to that server; `None` connects directly.
    pub connect: Option<Arc<dyn Connect>>,
    /// The application's own places.
    pub others: Vec<Arc<dyn MeetingPlace>>,
    /// Record stores such as the DHT: for contacts, transfers, tickets and long codes.
    pub stores: Vec<Arc<dyn RecordStore>>,
}

impl Places {
    /// Returns all live meeting places, nearest first. A new kind of place needs one line here.
    pub fn all(&self) -> Vec<Arc<dyn MeetingPlace>> {
        let mut all: Vec<Arc<dyn MeetingPlace>> = Vec::new();
        all.extend(LanPlace::new(self.lan.clone()).map(|place| Arc::new(place) as _));
        all.extend(self.rendezvous.clone().map(|server| {
            let connect = self.connect.clone().unwrap_or_else(|| Arc::new(Direct));
            Arc::new(RendezvousPlace::new(server, connect)) as _
        }));
        all.extend(self.others.iter().cloned());
        all
    }

    /// Returns the names of the meeting places.
    pub fn names(&self) -> Vec<PlaceName> {
        self.all().iter().map(|place| place.place()).collect()
    }

    /// Returns the names of the record stores.
    pub fn store_names(&self) -> Vec<PlaceName> {
        self.stores.iter().map(|store| store.place()).collect()
    }
}
