//! Raw connections: a peer that is invited to a [`Service`] gets an authenticated, encrypted
//! [`Connection`] with streams and datagrams.
//!
//! ```text
//!   role            the running service: its door, its codes, how it is found
//!   connect         the other side: finds the service and dials it
//!   shared_stream   a stream for several threads, as bindings of other languages need it
//! ```
//!
//! A service is found as an offer is: by its ticket, by a code that delivers the ticket, or by a
//! contact that knows its name; directly, through NATs, or through a relay.
//!
//! Each service has an access key per invitation, so the door shows for which service a peer came.
//! The dialler then sends a secret of the same invitation, on a stream of its own (SPEC §10.12). A
//! dialler that does not send it gets nothing.

mod callers;
mod connect;
mod role;
mod shared_stream;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use wraith_crypto::kdf;
use wraith_discovery::contact::ContactPair;
use wraith_discovery::{Capability, Code, PlaceError, PlaceName, Ticket};
use wraith_transport::Connection;
use zeroize::Zeroizing;

use crate::engine::task::Task;
use crate::error::{Error, ErrorKind};
use crate::event_publisher::Events;
use crate::node::Node;

pub use self::connect::{ConnectBuilder, ServiceAddress};
pub use self::shared_stream::{ReadToEndError, SharedStream};

/// Maximum length of a service's name in bytes.
const NAME_BYTES_MAX: usize = 255;
/// How long [`Service::close`] waits, if the end hangs.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

/// Configures a [`Service`].
#[must_use = "the service does nothing before start()"]
#[derive(Debug)]
pub struct ServiceBuilder {
    node: Node,
    capability: Option<Capability>,
    invited: Invited,
    bind: Option<SocketAddr>,
    is_isolated: bool,
    life: Option<Duration>,
}

/// The peers that are invited to a service.
#[derive(Clone, Debug)]
enum Invited {
    /// Peers with the ticket.
    Ticket,
    /// As many peers as the code has uses; `None` means any number.
    Code(Option<u32>),
    /// Contacts that know the name.
    Contacts(String),
}

impl Node {
    /// Accepts raw connections from peers that have the ticket or code, or from contacts.
    pub fn serve(&self) -> ServiceBuilder {
        ServiceBuilder {
            node: self.clone(),
            capability: None,
            invited: Invited::Ticket,
            bind: None,
            is_isolated: false,
            life: None,
        }
    }
}

impl ServiceBuilder {
    /// Invites every peer that has the ticket. This is the default.
    pub fn by_ticket(mut self) -> Self {
        self.invited = Invited::Ticket;
        self
    }

    /// Makes a code that delivers the ticket to one peer, or to as many as
    /// [`callers`](Self::callers) says. Each of them can connect any number of times.
    pub fn by_code(mut self) -> Self {
        self.invited = Invited::Code(Some(1));
        self
    }

    /// Sets the number of peers that can use the code; `None` means any number. Implies
    /// [`by_code`](Self::by_code).
    pub fn callers(mut self, callers: Option<u32>) -> Self {
        self.invited = Invited::Code(callers.map(|callers| callers.max(1)));
        self
    }

    /// Sets the lifetime of the code. Default: one hour, or one day for any number of callers.
    pub fn expires(mut self, life: Duration) -> Self {
        self.life = Some(life);
        self
    }

    /// Invites all contacts of the node, under a name that both sides know (1 to 255 bytes). A
    /// contact that is added later can connect at once; one that is removed gets no answer, and
    /// keeps the connections that [`Service::accept`] has returned. Such a service always uses the
    /// socket of the node, where contacts search.
    pub fn for_contacts(mut self, name: impl Into<String>) -> Self {
        self.invited = Invited::Contacts(name.into());
        self
    }

    /// Sets the capability that the ticket contains. Default: a new one each time. The same
    /// identity, capability and [port](Self::bind_to) make the ticket valid again after a restart.
    pub fn capability(mut self, capability: Capability) -> Self {
        self.capability = Some(capability);
        self
    }

    /// Sets the listening address, of a socket for this service alone. Default: the socket of the
    /// node.
    pub fn bind_to(mut self, address: SocketAddr) -> Self {
        self.bind = Some(address);
        self.isolated()
    }

    /// Gives the service a socket of its own, on a port chosen by the system. Without this, the
    /// node's offers, listeners and services share one socket, so an observer of the network can see
    /// that they belong together. A peer sees this in any case: all have the NodeId of the node.
    pub fn isolated(mut self) -> Self {
        self.is_isolated = true;
        self
    }

    /// Starts to accept connections.
    ///
    /// # Errors
    /// Listening on the address failed, no meeting place is available for the code, the contacts
    /// cannot be read, the name is empty or too long, a service for contacts has a socket of its own,
    /// or the system provides no socket or no randomness.
    pub async fn start(self) -> Result<Service, Error> {
        self.node.check_open()?;
        if let Invited::Contacts(name) = &self.invited {
            check_name(name)?;
            if self.is_isolated {
                let message = "a service for contacts uses the node's socket, where they search";
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
        }
        role::start(self).await
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        let message = format!("the name of a service has 1 to {NAME_BYTES_MAX} bytes");
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    Ok(())
}

/// Derives the secret of a service for one contact, which has the role of a capability (SPEC §12.5).
fn contact_secret(pair: &ContactPair, name: &str) -> Zeroizing<[u8; 32]> {
    let parts = [&pair.secret()[..], name.as_bytes()];
    Zeroizing::new(kdf::derive_parts("wraith/2 service of a contact", &parts))
}

/// Accepts raw connections from invited peers, until it is dropped. Connections that it returned
/// stay open.
#[derive(Debug)]
pub struct Service {
    ticket: Option<Ticket>,
    code: Option<Code>,
    address: SocketAddr,
    places: Vec<PlaceName>,
    missing: Vec<(PlaceName, PlaceError)>,
    /// Locked while a call waits for the next connection.
    connections: Mutex<Receiver<Connection>>,
    queue: Arc<callers::CallerQueue>,
    /// Cancelled by [`Self::close`]: the end also closes the connections that were returned.
    closed: CancellationToken,
    task: Task<()>,
}

impl Service {
    /// Returns the ticket for peers to connect with. It is a secret. It has the addresses at the time
    /// of the start. `None` for a service for contacts, and by code: the code delivers it.
    pub fn ticket(&self) -> Option<&Ticket> {
        self.ticket.as_ref()
    }

    /// Returns the code for peers to connect with, if the service has one.
    /// [`Event::LongCode`](crate::Event::LongCode) reports a code that takes longer to make.
    pub fn code(&self) -> Option<&Code> {
        self.code.as_ref()
    }

    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the meeting places at which peers with the code, or contacts, can find the service.
    pub fn places(&self) -> &[PlaceName] {
        &self.places
    }

    /// Returns the configured places at which they cannot find it, and why.
    pub fn missing(&self) -> &[(PlaceName, PlaceError)] {
        &self.missing
    }

    /// Returns a stream of events: of codes, meeting places, relays and paths. The first stream
    /// starts with the first event.
    pub fn events(&self) -> Events {
        self.task.events()
    }

    /// Returns the next connection of an invited peer. `None`: the service or the node was closed
    /// ([`Self::close`], [`Node::close`]), or no code is valid any more and no peer has used one. The
    /// last event ([`Self::events`]) has the reason. Cancel-safe. Concurrent calls take turns.
    pub async fn accept(&self) -> Option<Connection> {
        let mut connections = self.connections.lock().await;
        loop {
            let connection = tokio::select! {
                biased;
                () = self.closed.cancelled() => None,
                connection = connections.recv() => connection,
            }?;
            if self.queue.leave(&connection) {
                return Some(connection);
            }
        }
    }

    /// Like [`Self::accept`]. Returns `None` only after [`Self::close`] or [`Node::close`].
    ///
    /// # Errors
    /// As [`Self::finished`].
    pub async fn try_accept(&self) -> Result<Option<Connection>, Error> {
        match self.accept().await {
            None if !self.closed.is_cancelled() => self.finished().await.map(|()| None),
            accepted => Ok(accepted),
        }
    }

    /// Waits for the end of the service.
    ///
    /// # Errors
    /// [`ErrorKind::WrongCode`]: no code is valid any more, because of a wrong guess or its age, and
    /// no peer has used one. The node's runtime ended, or the service failed.
    pub async fn finished(&self) -> Result<(), Error> {
        self.task.finished().await.map(|_| ())
    }

    /// Ends the service gracefully. Accepts no more callers, delivers the finished streams of its
    /// connections, also of those that [`Self::accept`] returned, closes these connections, and
    /// waits for that, at most 3 s. Dropping the future ends only the wait.
    pub async fn close(&self) {
        self.closed.cancel();
        self.task.stop();
        let _ = timeout(CLOSE_WAIT, self.task.finished()).await;
    }
}
