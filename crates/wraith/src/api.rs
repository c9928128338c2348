//! What can be done with a node: each begins a road of its own.

use std::path::PathBuf;

use wraith_discovery::Ticket;

use crate::fetch::{FetchBuilder, Source, Target};
use crate::invite::InvitationBuilder;
use crate::listen::ListenBuilder;
use crate::node::Node;
use crate::offer::OfferBuilder;
use crate::payload::Payload;
use crate::service::{ConnectBuilder, ServiceBuilder};

impl Node {
    /// Offers files, folders or a stream: by code or ticket to whoever has it, or to a contact.
    pub fn offer(&self, what: impl Into<Payload>) -> OfferBuilder {
        OfferBuilder::new(self.clone(), what.into())
    }

    /// Fetches what a code or ticket offers.
    pub fn fetch(&self, from: impl Into<Source>, into: impl Into<Target>) -> FetchBuilder {
        FetchBuilder::new(self.clone(), from.into(), into.into())
    }

    /// Makes a code for a sender, who brings its ticket to it: for a receiver that starts first.
    pub fn invite(&self) -> InvitationBuilder {
        InvitationBuilder::new(self.clone())
    }

    /// Takes offers from contacts, or from everybody who knows the NodeId, without a code.
    pub fn listen(&self, into: impl Into<PathBuf>) -> ListenBuilder {
        ListenBuilder::new(self.clone(), into.into())
    }

    /// Takes raw connections from whoever has the ticket.
    pub fn serve(&self) -> ServiceBuilder {
        ServiceBuilder::new(self.clone())
    }

    /// Connects to a [`Service`](crate::Service) by its ticket.
    pub fn connect(&self, to: Ticket) -> ConnectBuilder {
        ConnectBuilder::new(self.clone(), to)
    }
}
