//! Sending: [`Node::offer`](crate::Node::offer) by code, by ticket, or to a contact.
//!
//! ```text
//!   serve        waits for whoever has the code or ticket      call      goes to a contact
//!   ├── prepared     the socket, the ways to it, the ticket
//!   ├── code         what brings the ticket
//!   └── unfinished   what of it survives a crash (also of a call)
//! ```

mod call;
mod code;
mod handle;
mod prepared;
mod serve;
mod unfinished;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use wraith_discovery::Code;

use crate::error::Error;
use crate::event::Observer;
use crate::node::Node;
use crate::payload::Payload;
use crate::settings::{Patience, RECONNECT, SendSettings};
use crate::state::{ALLOWED_MAX, Contact, Recipient};

pub use self::handle::Offer;

/// To whom an offer goes.
#[derive(Clone, Debug)]
enum To {
    /// Whoever has a code that is made for it.
    Code,
    /// Whoever has the ticket.
    Ticket,
    /// The receiver that made this code.
    Invitation(Code),
    /// A contact that listens.
    Contact(Box<Contact>),
}

impl To {
    fn recipient(&self, node: &Node, settings: &SendSettings) -> Recipient {
        match self {
            Self::Code => {
                Recipient::Code { max: settings.receivers.map_or(ALLOWED_MAX, |n| n as usize) }
            }
            Self::Ticket => Recipient::Bearer,
            Self::Invitation(code) => Recipient::Invitation(node.spent_codes().tag(code)),
            Self::Contact(contact) => Recipient::Contact(contact.node_id),
        }
    }
}

/// An offer that is being prepared.
#[must_use = "nothing is offered before start()"]
pub struct OfferBuilder {
    node: Node,
    payload: Payload,
    to: To,
    settings: SendSettings,
    life: Option<Duration>,
    bind: Option<SocketAddr>,
    anew: bool,
    observer: Option<Arc<dyn Observer>>,
}

impl OfferBuilder {
    pub(crate) fn new(node: Node, payload: Payload) -> Self {
        let patience = Patience { first: None, reconnect: RECONNECT };
        let settings = SendSettings {
            rate: None,
            connections: None,
            delta: true,
            sync: true,
            receipt: None,
            receivers: Some(1),
            patience,
        };
        let (life, bind, observer) = (None, None, None);
        Self { node, payload, to: To::Code, settings, life, bind, anew: false, observer }
    }

    /// Makes a code for it, which people can say. This is the default.
    pub fn by_code(mut self) -> Self {
        self.to = To::Code;
        self
    }

    /// Makes no code: who has the ticket gets it.
    pub fn by_ticket(mut self) -> Self {
        self.to = To::Ticket;
        self
    }

    /// Brings it to the receiver that made this code ([`Node::invite`]).
    pub fn to_invitation(mut self, code: Code) -> Self {
        self.to = To::Invitation(code);
        self
    }

    /// Brings it to a contact, who listens ([`Node::listen`]).
    pub fn to_contact(mut self, contact: Contact) -> Self {
        self.to = To::Contact(Box::new(contact));
        self
    }

    /// Sends it to so many receivers, at once if they come at once.
    pub fn receivers(mut self, receivers: u32) -> Self {
        self.settings.receivers = Some(receivers.max(1));
        self
    }

    /// Sends it to whoever comes, until it is stopped.
    pub fn any_number(mut self) -> Self {
        self.settings.receivers = None;
        self
    }

    /// How long the code is good: an hour, or a day for any number of receivers, unless this says something else.
    pub fn expires(mut self, life: Duration) -> Self {
        self.life = Some(life);
        self
    }

    /// Sends no more than this many bytes a second, to all receivers together.
    pub fn rate(mut self, bytes_per_second: u64) -> Self {
        self.settings.rate = Some(bytes_per_second);
        self
    }

    /// Carries a transfer over this many connections at once (1 to 4), if the receiver allows them too. Without it there is one
    /// for every two cores, and only on a path that is faster than one connection.
    pub fn connections(mut self, connections: u8) -> Self {
        self.settings.connections = Some(connections);
        self
    }

    /// Whether, of a file of which the receiver has an older copy, only what differs is sent. It is, by default.
    pub fn delta(mut self, delta: bool) -> Self {
        self.settings.delta = delta;
        self
    }

    /// Whether a receiver confirms only when everything is on its stable storage, as its receipt then says
    /// ([`crate::Durability`]). It does, by default, unless it was told not to.
    pub fn sync(mut self, sync: bool) -> Self {
        self.settings.sync = sync;
        self
    }

    /// Keeps the receiver's receipt, with everything it is about, in the file `place`, or in a file of the folder `place`: for several
    /// receivers it is one. It can be checked anywhere ([`crate::state::open_receipt`]); [`crate::Event::ReceiptKept`] says where it is.
    pub fn receipt(mut self, place: PathBuf) -> Self {
        self.settings.receipt = Some(place);
        self
    }

    /// How long a receiver is waited for (for as long as it takes, unless this says something else), or a contact or the maker of a
    /// code looked for (10 s; 30 s on the DHT).
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.patience.first = Some(timeout);
        self
    }

    /// How long a receiver that was lost is waited for: 10 min, unless this says something else. Zero: not at all.
    pub fn reconnect(mut self, reconnect: Duration) -> Self {
        self.settings.patience.reconnect = reconnect;
        self
    }

    /// Listens on this address. By default on every address of this machine, and a port of its own choosing.
    pub fn bind_to(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self
    }

    /// Goes on with nothing of an earlier run: every ticket that one gave, shown or by code, is worth nothing from now on.
    pub fn anew(mut self) -> Self {
        self.anew = true;
        self
    }

    /// Tells everything that happens to `observer` too.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// Makes the code or ticket and waits for the receiver; or goes to the receiver that is known. Returns as soon as there is
    /// something to show: nothing of what is offered has been read by then.
    ///
    /// # Errors
    /// A path is not there, the address cannot be listened on, the contact cannot be known, or the maker of the code was not met.
    pub async fn start(self) -> Result<Offer, Error> {
        let payload = self.payload.clone().checked()?;
        match self.to.clone() {
            To::Contact(contact) => self.call(payload, *contact),
            _ => self.serve(payload).await,
        }
    }
}

impl std::fmt::Debug for OfferBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OfferBuilder").field("payload", &self.payload).finish_non_exhaustive()
    }
}
