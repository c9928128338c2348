//! The handle of a running offer.

use std::net::SocketAddr;
use std::sync::Arc;

use wraith_crypto::NodeId;
use wraith_discovery::{Code, PlaceError, PlaceName, Ticket};

use crate::engine::task::{Task, transfer_handle};
use crate::error::Error;
use crate::event_publisher::Events;
use crate::progress::ProgressReader;
use crate::report::OfferSummary;

/// The code or ticket for receivers, and the places and addresses at which the offer waits. Empty
/// for an offer to a contact.
#[derive(Debug, Default)]
pub(super) struct PublishedOffer {
    pub code: Option<Code>,
    pub places: Vec<PlaceName>,
    pub missing: Vec<(PlaceName, PlaceError)>,
    pub no_code: Option<Error>,
    pub awaits_long_code: bool,
    /// `None` if a code delivers it: the ticket is then valid only for the peer that had the code.
    pub ticket: Option<Ticket>,
    pub continues_for: Vec<NodeId>,
    pub addresses: Vec<SocketAddr>,
    pub left_out: Vec<SocketAddr>,
}

/// A running offer. Drop withdraws the code and stops all its transfers.
#[derive(Debug)]
pub struct Offer {
    pub(super) shown: PublishedOffer,
    pub(super) task: Task<OfferSummary>,
}

impl Offer {
    /// Returns the code, for the receiver.
    pub fn code(&self) -> Option<&Code> {
        self.shown.code.as_ref()
    }

    /// Returns the ticket, which contains everything a receiver needs. The ticket is a secret, and
    /// valid for any peer that has it.
    ///
    /// `None` for an offer by code, to a contact or to an invitation. A ticket delivered by a code is
    /// valid only for the identity that had the code, and is not shown.
    pub fn ticket(&self) -> Option<&Ticket> {
        self.shown.ticket.as_ref()
    }

    /// Returns the addresses for receivers, the most useful first. Empty for an offer to a contact.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.shown.addresses
    }

    /// Returns the addresses of this machine that do not fit into a ticket, the most useful first. A
    /// receiver that can reach only these needs a code on the same local network, or a relay.
    pub fn addresses_left_out(&self) -> &[SocketAddr] {
        &self.shown.left_out
    }

    /// Returns the receivers that had a code of an earlier, unfinished run of this offer. They can
    /// resume without a new code. [`OfferBuilder::anew`](crate::OfferBuilder::anew) revokes that.
    pub fn continues_for(&self) -> &[NodeId] {
        &self.shown.continues_for
    }

    /// Returns the meeting places at which the code waits.
    pub fn places(&self) -> &[PlaceName] {
        &self.shown.places
    }

    /// Returns the configured places at which the code does not wait, and why.
    pub fn missing(&self) -> &[(PlaceName, PlaceError)] {
        &self.shown.missing
    }

    /// Returns why there is no code although one was requested. The offer then has a ticket, which
    /// needs no meeting place. If receivers had a code of an earlier run, it has no ticket either:
    /// only they can fetch ([`Self::continues_for`]).
    pub fn no_code(&self) -> Option<&Error> {
        self.shown.no_code.as_ref()
    }

    /// Returns whether a long code is being made, beside the short one.
    /// [`Event::LongCode`](crate::Event::LongCode) follows, or
    /// [`Event::NoLongCode`](crate::Event::NoLongCode).
    pub fn awaits_long_code(&self) -> bool {
        self.shown.awaits_long_code
    }
}

transfer_handle!(Offer, OfferSummary, task);
