//! Whether a listener's place is usable, reported as events.

use std::sync::Arc;

use tokio::sync::watch;
use tracing::debug;

use super::responder::{ContactEvent, ContactResponder};
use crate::place::{PlaceError, PlaceName};

/// Status of a place, shared by all its tasks.
#[derive(Debug)]
pub struct PlaceStatus {
    place: PlaceName,
    is_lost: watch::Sender<bool>,
    pub responder: Arc<ContactResponder>,
}

impl PlaceStatus {
    pub fn new(place: PlaceName, responder: Arc<ContactResponder>) -> Self {
        Self { place, is_lost: watch::Sender::new(false), responder }
    }

    pub fn mark_down(&self, why: PlaceError) {
        debug!(place = self.place.name(), %why, "not listening for contacts");
        if !self.is_lost.send_replace(true) {
            self.responder.emit(ContactEvent::Lost(self.place.clone(), why));
        }
    }

    pub fn mark_up(&self) {
        debug!(place = self.place.name(), "listening for contacts");
        if self.is_lost.send_replace(false) {
            self.responder.emit(ContactEvent::Back(self.place.clone()));
        }
    }
}
