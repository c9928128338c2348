//! An offer under way.

use std::net::SocketAddr;
use std::sync::Arc;

use wraith_crypto::NodeId;
use wraith_discovery::{Code, Place, PlaceError, Ticket};

use crate::engine::task::Task;
use crate::error::Error;
use crate::hub::Events;
use crate::progress::ProgressReader;
use crate::report::Sent;

/// What a receiver can come with, and where it is waited for.
#[derive(Debug)]
pub(super) struct Shown {
    pub code: Option<Code>,
    pub places: Vec<Place>,
    pub missing: Vec<(Place, PlaceError)>,
    pub no_code: Option<Error>,
    /// None where a code brings it: then it is good for who has the code only.
    pub ticket: Option<Ticket>,
    pub continues_for: Vec<NodeId>,
    pub addresses: Vec<SocketAddr>,
}

/// An offer under way. Dropping it withdraws the code and stops what is being sent.
#[derive(Debug)]
pub struct Offer {
    pub(super) shown: Option<Shown>,
    pub(super) task: Task<Sent>,
}

impl Offer {
    /// The code, for the receiver.
    pub fn code(&self) -> Option<&Code> {
        self.shown.as_ref()?.code.as_ref()
    }

    /// The ticket, which holds everything a receiver needs; it is a secret, and good for whoever has it. `None` of an offer to a
    /// contact and of one by code: what a code brings is good for the one identity that had the code, and is not shown.
    pub fn ticket(&self) -> Option<&Ticket> {
        self.shown.as_ref()?.ticket.as_ref()
    }

    /// Where receivers can reach it, the most useful address first; empty of an offer to a contact.
    pub fn addresses(&self) -> &[SocketAddr] {
        self.shown.as_ref().map(|shown| &shown.addresses[..]).unwrap_or_default()
    }

    /// Who had a code of an earlier run of this offer, which did not come to its end, and can go on without a new one.
    /// [`OfferBuilder::anew`](crate::OfferBuilder::anew) ends that.
    pub fn continues_for(&self) -> &[NodeId] {
        self.shown.as_ref().map(|shown| &shown.continues_for[..]).unwrap_or_default()
    }

    /// Where the code is waited with.
    pub fn places(&self) -> &[Place] {
        self.shown.as_ref().map(|shown| &shown.places[..]).unwrap_or_default()
    }

    /// Where it is not, although it was to be, and why.
    pub fn missing(&self) -> &[(Place, PlaceError)] {
        self.shown.as_ref().map(|shown| &shown.missing[..]).unwrap_or_default()
    }

    /// Why there is no code although one was wanted. There is a ticket then, which needs no place to meet; or, where
    /// somebody had a code of an earlier run, neither, and only they can come ([`Self::continues_for`]).
    pub fn no_code(&self) -> Option<&Error> {
        self.shown.as_ref()?.no_code.as_ref()
    }

    /// What happens: the first stream tells it from the beginning, unless an observer was set or nobody asked for it in time
    /// (1024 events); every other one from now on.
    pub fn events(&self) -> Events {
        self.task.events()
    }

    /// How far the transfers are, together.
    pub fn progress(&self) -> ProgressReader {
        self.task.progress()
    }

    /// Waits until as many receivers as were wanted have confirmed everything. Cancel-safe, and may be called any number of
    /// times.
    ///
    /// # Errors
    /// Why it failed. Files that could not be sent are no error here: [`Sent::complete`].
    pub async fn finished(&self) -> Result<Arc<Sent>, Error> {
        self.task.finished().await
    }

    /// Stops it, and waits until the receivers were told. The same offer another time continues.
    ///
    /// # Errors
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), unless it had ended in another way before, or went to any number and was serving nobody.
    pub async fn cancel(self) -> Result<Arc<Sent>, Error> {
        self.task.cancel().await
    }

    /// Asks it to stop and does not wait; [`Self::finished`] does.
    pub fn stop(&self) {
        self.task.stop();
    }

    /// Lets it go on without this handle.
    pub fn detach(self) {
        self.task.detach();
    }
}
