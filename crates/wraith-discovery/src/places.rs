//! Which places are used: those of this crate, and those that an application brings along.

use std::sync::Arc;

use crate::connect::{Connect, Direct};
use crate::lan::{Lan, LanPlace};
use crate::place::{MeetingPlace, Place};
use crate::rendezvous::RendezvousPlace;
use crate::store::RecordStore;

/// The places to use.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// On the local network.
    pub lan: Lan,
    /// At this server, as `HOST:PORT`.
    pub rendezvous: Option<String>,
    /// How that server is reached: straight, if this is none.
    pub connect: Option<Arc<dyn Connect>>,
    /// Beside those.
    pub others: Vec<Arc<dyn MeetingPlace>>,
    /// Where records are left, as on the DHT: for contacts, transfers, tickets and long codes.
    pub stores: Vec<Arc<dyn RecordStore>>,
}

impl Places {
    /// All where both sides are there at the same time, the nearest first. A new kind of place is one more line here.
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

    /// What they are called.
    pub fn names(&self) -> Vec<Place> {
        self.all().iter().map(|place| place.place()).collect()
    }

    /// What those that store are called.
    pub fn store_names(&self) -> Vec<Place> {
        self.stores.iter().map(|store| store.place()).collect()
    }
}
