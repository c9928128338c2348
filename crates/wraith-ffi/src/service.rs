//! A service: accepts raw connections of invited peers.

use std::sync::Arc;
use std::time::Duration;

use wraith::ServiceBuilder;

use crate::connection::{Connection, bounded};
use crate::content::{address, set};
use crate::error::WraithError;
use crate::event::{Event, EventReader};
use crate::runtime::in_runtime;

/// The peers that are invited to a service.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum Callers {
    /// Peers that use the code made for the service.
    Code,
    /// Every peer that has the ticket.
    Ticket,
    /// All contacts of the node that know the name.
    Contacts {
        /// Name of the service: 1 to 255 bytes.
        name: String,
    },
}

/// Options of a service.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct ServiceOptions {
    /// Number of peers that can use the code; 0 counts as 1. Each of them can connect any number of
    /// times.
    #[uniffi(default = 1)]
    pub callers: u32,
    /// Any number of peers can use the code; overrides `callers`. The largest value of `callers` has
    /// the same effect, as in C.
    #[uniffi(default = false)]
    pub any_number: bool,
    /// Lifetime of a code. Default: an hour, or a day for any number of peers.
    #[uniffi(default = None)]
    pub expires: Option<Duration>,
    /// Local address and port of a socket for this service alone, instead of the node's. Not for
    /// [`Callers::Contacts`], who look for the socket of the node.
    #[uniffi(default = None)]
    pub listen: Option<String>,
    /// Gives the service a socket of its own. Without this, the offers and services of a node share
    /// one, so an observer of the network can see that they belong together.
    #[uniffi(default = false)]
    pub isolated: bool,
}

impl ServiceOptions {
    /// Applies these options to `service`; `listen` is the address of the node.
    pub(crate) fn apply(
        self,
        mut service: ServiceBuilder,
        callers: Callers,
        listen: Option<&str>,
    ) -> Result<ServiceBuilder, WraithError> {
        // Contacts look for the socket of the node.
        let listen = listen.filter(|_| !matches!(callers, Callers::Contacts { .. }));
        service = match callers {
            Callers::Ticket => service.by_ticket(),
            Callers::Contacts { name } => service.for_contacts(name),
            Callers::Code => {
                let any_number = self.any_number || self.callers == u32::MAX;
                service.callers(Some(self.callers).filter(|_| !any_number))
            }
        };
        let listen = self.listen.as_deref().or(listen).map(address).transpose()?;
        service = set(service, self.expires.map(bounded), ServiceBuilder::expires);
        service = set(service, listen, ServiceBuilder::bind_to);
        Ok(if self.isolated { service.isolated() } else { service })
    }
}

/// Accepts raw connections of invited peers. Freeing it accepts no more callers; its connections
/// stay open.
#[derive(Debug, uniffi::Object)]
pub struct Service {
    service: wraith::Service,
    events: EventReader,
    node: wraith::Node,
}

impl Service {
    pub(crate) fn new(service: wraith::Service, node: wraith::Node) -> Arc<Self> {
        Arc::new(Self { events: EventReader::new(service.events()), service, node })
    }
}

#[uniffi::export]
impl Service {
    /// Returns the code for callers to enter, or null if the service has none.
    pub fn code(&self) -> Option<String> {
        self.service.code().map(ToString::to_string)
    }

    /// Returns the ticket of a service by ticket, or null. It is valid for any holder: keep it
    /// secret.
    pub fn ticket(&self) -> Option<String> {
        self.service.ticket().map(ToString::to_string)
    }

    /// Returns the listening address and port.
    pub fn address(&self) -> String {
        self.service.address().to_string()
    }

    /// Returns the meeting places at which peers with the code, or contacts, can find the service.
    pub fn places(&self) -> Vec<String> {
        self.service.places().iter().map(ToString::to_string).collect()
    }

    /// Waits for the next connection of an invited peer. Returns null after
    /// [`Service::shutdown`], or after that of the node. Concurrent calls are served in turn. A
    /// service keeps at most 64 connections that no call has accepted.
    ///
    /// # Errors
    /// [`WraithError::WrongCode`] if the code is no longer valid, and no peer has used it.
    pub async fn accept(&self) -> Result<Option<Arc<Connection>>, WraithError> {
        let connection = in_runtime(self.service.try_accept()).await?;
        Ok(connection.map(|open| Connection::new(open, self.node.clone())))
    }

    /// Returns the next event of the service: of codes, meeting places, relays and paths. Null after
    /// its end.
    pub async fn next_event(&self) -> Option<Event> {
        in_runtime(self.events.next()).await
    }

    /// Ends the service gracefully: it accepts no more callers, delivers the finished streams of all
    /// its connections, also of accepted ones, and closes these connections. Waits for that, at most
    /// 3 s.
    pub async fn shutdown(&self) {
        in_runtime(self.service.close()).await;
    }
}
