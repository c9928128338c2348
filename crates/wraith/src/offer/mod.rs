//! Sending: [`Node::offer`](crate::Node::offer) by code, by ticket, or to a contact.
//!
//! ```text
//!   by_code_or_ticket  waits for receivers with the code or ticket   to_contact  dials a contact
//!   └── prepared     the socket, its paths, the ticket; the part that survives a crash (for both)
//! ```

mod by_code_or_ticket;
mod handle;
mod prepared;
mod to_contact;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wraith_discovery::Code;

use crate::error::Error;
use crate::event::Observer;
use crate::node::Node;
use crate::payload::Payload;
use crate::settings::{RECONNECT, SendSettings, TransferOptions, transfer_options};
use crate::state::{Contact, Recipient};

pub use self::handle::Offer;

/// The recipient of an offer.
#[derive(Clone, Debug)]
enum OfferTarget {
    /// A receiver with the code made for this offer.
    Code,
    /// A receiver with the ticket.
    Ticket,
    /// The receiver that made this code.
    Invitation(Code),
    /// A contact that listens.
    Contact(Box<Contact>),
}

impl OfferTarget {
    fn recipient(&self, node: &Node, settings: &SendSettings) -> Recipient {
        match self {
            Self::Code => Recipient::Code { max: settings.receivers.map(|n| n as usize) },
            Self::Ticket => Recipient::Bearer,
            Self::Invitation(code) => Recipient::Invitation(node.spent_codes().tag(code)),
            Self::Contact(contact) => Recipient::Contact(contact.node_id),
        }
    }
}

/// Configures an [`Offer`].
#[must_use = "nothing is offered before start()"]
pub struct OfferBuilder {
    node: Node,
    payload: Payload,
    to: OfferTarget,
    settings: SendSettings,
    life: Option<Duration>,
    bind: Option<SocketAddr>,
    is_isolated: bool,
    anew: bool,
    observer: Option<Arc<dyn Observer>>,
}

transfer_options!(OfferBuilder);

impl Node {
    /// Offers files, folders or a stream, either by code or ticket or to a contact.
    pub fn offer(&self, what: impl Into<Payload>) -> OfferBuilder {
        let transfer = TransferOptions::default();
        OfferBuilder {
            node: self.clone(),
            payload: what.into(),
            to: OfferTarget::Code,
            settings: SendSettings {
                transfer,
                receipt: None,
                receivers: Some(1),
                keep_place: false,
            },
            life: None,
            bind: None,
            is_isolated: false,
            anew: false,
            observer: None,
        }
    }
}

impl OfferBuilder {
    /// Makes a code that people can say aloud. This is the default.
    pub fn by_code(mut self) -> Self {
        self.to = OfferTarget::Code;
        self
    }

    /// Makes no code. Any receiver that has the ticket can fetch.
    pub fn by_ticket(mut self) -> Self {
        self.to = OfferTarget::Ticket;
        self
    }

    /// Sends to the receiver that made this code ([`Node::invite`]).
    pub fn to_invitation(mut self, code: Code) -> Self {
        self.to = OfferTarget::Invitation(code);
        self
    }

    /// Sends to a contact that listens ([`Node::listen`]).
    pub fn to_contact(mut self, contact: Contact) -> Self {
        self.to = OfferTarget::Contact(Box::new(contact));
        self
    }

    /// Sets the number of receivers. They are served in parallel if they come at the same time.
    pub fn receivers(mut self, receivers: u32) -> Self {
        self.settings.receivers = Some(receivers.max(1));
        self
    }

    /// Serves any number of receivers, until the offer is stopped.
    pub fn any_number(mut self) -> Self {
        self.settings.receivers = None;
        self
    }

    /// Sets the lifetime of the code. Default: one hour, or one day for any number of receivers.
    pub fn expires(mut self, life: Duration) -> Self {
        self.life = Some(life);
        self
    }

    /// Stores the receiver's receipt and everything it covers in the file `place`, or in a new file
    /// in the folder `place`. For several receivers, `place` is a folder.
    ///
    /// [`crate::state::open_receipt`] verifies a receipt on any machine.
    /// [`crate::Event::ReceiptStored`] reports its path.
    pub fn receipt(mut self, place: PathBuf) -> Self {
        self.settings.receipt = Some(place);
        self
    }

    /// Sets whether an offer to one receiver goes on after its receiver has stopped, or wanted one
    /// stream of an offer that is none. If true, the receiver may start a fetch again. If it had
    /// accepted before it stopped, it has the time of [`Self::reconnect`]. Default: false, which
    /// ends the offer with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) or
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput). Without reconnecting, a receiver
    /// that stops ends the offer all the same.
    ///
    /// Offers to several receivers always go on.
    pub fn keep_place(mut self, keep_place: bool) -> Self {
        self.settings.keep_place = keep_place;
        self
    }

    /// Sets the listening address, of a socket for this offer alone. Default: the socket of the
    /// node.
    pub fn bind_to(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self.isolated()
    }

    /// Gives the offer a socket of its own, on a port chosen by the system. Without this, the node's
    /// offers, listeners and services share one socket, so an observer of the network can see that
    /// they belong together. A peer sees this in any case: all have the NodeId of the node.
    pub fn isolated(mut self) -> Self {
        self.is_isolated = true;
        self
    }

    /// Ignores earlier runs. All tickets of earlier runs become invalid, whether shown or delivered
    /// by code.
    pub fn anew(mut self) -> Self {
        self.anew = true;
        self
    }

    /// Starts the offer: makes the code or ticket and waits for receivers, or dials the known
    /// receiver. Returns as soon as there is a code or ticket to show; no file content has been
    /// read by then.
    ///
    /// # Errors
    /// A path does not exist, listening on the address failed, the contact's key is invalid, or the
    /// maker of the code was not found.
    pub async fn start(self) -> Result<Offer, Error> {
        self.node.check_open()?;
        let payload = self.payload.clone().checked()?;
        match self.to.clone() {
            OfferTarget::Contact(contact) => self.offer_to_contact(payload, *contact),
            _ => self.offer_by_code_or_ticket(payload).await,
        }
    }
}

wraith_crypto::redacted_debug!(OfferBuilder, payload);
