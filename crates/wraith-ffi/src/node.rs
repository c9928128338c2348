//! A node: an identity with its meeting places, at which it finds peers. Offers, fetches, listeners,
//! services and connections start from it.

use std::fmt;
use std::sync::{Arc, LazyLock, mpsc};
use std::time::Duration;

use wraith::state::{StateDir, StateError};
use wraith::{ConnectBuilder, ListenBuilder, NodeBuilder, NodeGroup, RelayServer};

use crate::connection::{ConnectOptions, Connection, ServiceAddress, bounded};
use crate::content::{Content, Recipient, Target, address, node_id, set};
use crate::error::WraithError;
use crate::fetch::{FetchOptions, Incoming};
use crate::identity::Identity;
use crate::listen::{AcceptFilter, Listener};
use crate::offer::{Offer, OfferOptions};
use crate::runtime::{self, in_runtime};
use crate::secret::SecretText;
use crate::service::{Callers, Service, ServiceOptions};

/// All nodes of the process.
static ALL_NODES: LazyLock<NodeGroup> = LazyLock::new(NodeGroup::default);
/// How long the end of the program may wait until peers are notified.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

/// A relay server, and the token for it.
#[derive(Clone, uniffi::Record)]
pub struct Relay {
    /// Host name or IP address, without brackets.
    pub host: String,
    /// Port, for TCP and UDP.
    pub port: u16,
    /// Access token from the relay's operator.
    #[uniffi(default = None)]
    pub token: Option<Arc<SecretText>>,
}

/// Omits the token, which is secret.
impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// Options of a node. With the defaults it has a new identity, stores nothing, and meets peers only
/// on the local network and at known addresses, without any server.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct NodeOptions {
    /// Identity. Default: that of the state folder, or a new one.
    #[uniffi(default = None)]
    pub identity: Option<Arc<Identity>>,
    /// Folder for the identity, contacts and unfinished transfers. Default: they are kept in memory
    /// while the node exists.
    #[uniffi(default = None)]
    pub state_folder: Option<String>,
    /// Address and port for offers, listeners and services. Default: all addresses of this machine and a free port.
    #[uniffi(default = None)]
    pub listen: Option<String>,
    /// Local network discovery: `all` (the default), `off`, or the name of an interface.
    #[uniffi(default = None)]
    pub lan: Option<String>,
    /// Additional rendezvous server, `HOST` or `HOST:PORT`.
    #[uniffi(default = None)]
    pub rendezvous: Option<String>,
    /// Relays at which the node is reachable, used if no direct path works.
    #[uniffi(default = [])]
    pub relays: Vec<Relay>,
    /// Uses only relays, and does not reveal any address of this machine.
    #[uniffi(default = false)]
    pub relay_only: bool,
    /// Finds peers through the Mainline DHT.
    #[uniffi(default = false)]
    pub dht: bool,
    /// Requests a port mapping from the router.
    #[uniffi(default = false)]
    pub port_mapping: bool,
}

/// A contact of this node.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Contact {
    /// Local name of the contact.
    pub name: String,
    /// NodeId of the contact.
    pub node_id: String,
    /// Addresses entered by the user, at which the contact listens: `HOST` or `HOST:PORT`.
    #[uniffi(default = [])]
    pub addresses: Vec<String>,
}

/// An identity with its stored state and its meeting places. Objects created from a node stay valid
/// after it is freed.
#[derive(Debug, uniffi::Object)]
pub struct Node {
    node: wraith::Node,
    listen: Option<String>,
}

#[uniffi::export]
impl Node {
    /// Creates a node with these options.
    ///
    /// # Errors
    /// [`WraithError::InvalidInput`] for an invalid option; an error of the state folder if it
    /// cannot be read or created.
    #[uniffi::constructor]
    pub fn new(options: NodeOptions) -> Result<Arc<Self>, WraithError> {
        options.listen.as_deref().map(address).transpose()?;
        let node = builder(&options).runtime(runtime::handle()?).build()?;
        Ok(Arc::new(Self { node, listen: options.listen }))
    }

    /// Returns the NodeId of this node: 52 characters of base32.
    pub fn node_id(&self) -> String {
        self.node.id().to_string()
    }

    /// Starts an offer. Returns as soon as its code or ticket is available. Cancelling the call
    /// withdraws the offer.
    ///
    /// # Errors
    /// A path does not exist, or the address is not available; [`WraithError::NotFound`] if there
    /// is no contact of this name.
    pub async fn offer(
        &self,
        what: Content,
        to: Recipient,
        options: OfferOptions,
    ) -> Result<Arc<Offer>, WraithError> {
        let offer = options.apply(self.node.offer(what), self.listen.as_deref())?;
        let offer = match to {
            Recipient::Code => offer.by_code(),
            Recipient::Ticket => offer.by_ticket(),
            Recipient::Contact { name } => offer.to_contact(self.node.contact(&name)?),
        };
        let offer = in_runtime(offer.start()).await?;
        Ok(Offer::new(offer))
    }

    /// Finds the sender of a code or ticket (`source`) and receives its offer. Nothing is written
    /// before the offer is accepted. Cancelling the call stops the search.
    ///
    /// # Errors
    /// The sender was not found, the code is wrong, or the connection was lost and could not be
    /// restored.
    pub async fn fetch(
        &self,
        source: String,
        into: Target,
        options: FetchOptions,
    ) -> Result<Arc<Incoming>, WraithError> {
        let source: wraith::Source = source.trim().parse()?;
        let (target, memory) = into.open();
        let fetch = options.apply(self.node.fetch(source, target));
        let incoming = in_runtime(async { fetch.wait_for_offer().await }).await?;
        Ok(Incoming::new(incoming, memory))
    }

    /// Starts a listener that receives offers into this folder. `accept_filter` selects the peers.
    ///
    /// # Errors
    /// The contacts cannot be read, or the address is not available.
    pub async fn listen(
        &self,
        folder: String,
        accept_filter: AcceptFilter,
    ) -> Result<Arc<Listener>, WraithError> {
        let listen = self.node.listen(folder).accept_filter(accept_filter.into());
        let bind = self.listen.as_deref().map(address).transpose()?;
        let listener = in_runtime(set(listen, bind, ListenBuilder::bind_to).start()).await?;
        Ok(Listener::new(listener))
    }

    /// Starts a service, which accepts raw connections of these callers. Returns as soon as its code
    /// or ticket is available. Cancelling the call ends the service.
    ///
    /// # Errors
    /// No meeting place is available for the code, the contacts cannot be read, or the address is
    /// not available; [`WraithError::InvalidInput`] for an invalid name.
    pub async fn serve(
        &self,
        callers: Callers,
        options: ServiceOptions,
    ) -> Result<Arc<Service>, WraithError> {
        let service = options.apply(self.node.serve(), callers, self.listen.as_deref())?;
        let service = in_runtime(service.start()).await?;
        Ok(Service::new(service, self.node.clone()))
    }

    /// Finds a service and connects to it. Cancelling the call stops the search.
    ///
    /// # Errors
    /// [`WraithError::NotFound`] if the service or the contact was not found,
    /// [`WraithError::WrongCode`], [`WraithError::InvalidInput`] for a ticket of an offer.
    pub async fn connect(
        &self,
        to: ServiceAddress,
        options: ConnectOptions,
    ) -> Result<Arc<Connection>, WraithError> {
        let to: wraith::ServiceAddress = match to {
            ServiceAddress::Source { source } => source.trim().parse()?,
            ServiceAddress::Contact { contact, service } => {
                wraith::ServiceAddress::of_contact(self.node.contact(&contact)?, service)
            }
        };
        let timeout = options.timeout.map(bounded);
        let connect = set(self.node.connect(to), timeout, ConnectBuilder::timeout);
        let node = self.node.clone();
        Ok(match options.shared {
            true => Connection::shared(in_runtime(connect.shared()).await?, node),
            false => Connection::new(in_runtime(connect.open()).await?, node),
        })
    }

    /// Cancels all offers, fetches and listeners of this node, and waits until their peers are
    /// notified and received data is stored, at most 5 s. Services accept no more callers; raw
    /// connections stay open. Operations that start later fail with [`WraithError::Cancelled`]. A program calls this before it ends. Freeing the node cancels
    /// nothing.
    pub async fn shutdown(&self) {
        in_runtime(self.node.close()).await;
    }

    /// Returns the contacts of this node.
    ///
    /// # Errors
    /// The contacts cannot be read.
    pub fn contacts(&self) -> Result<Vec<Contact>, WraithError> {
        let book = self.node.contacts().load()?;
        Ok(book.contacts().iter().map(Contact::from).collect())
    }

    /// Adds a contact, or updates the addresses of an existing one.
    ///
    /// # Errors
    /// The name is invalid or belongs to another identity, the NodeId or an address is invalid, or
    /// the contacts cannot be written.
    pub fn add_contact(&self, contact: Contact) -> Result<(), WraithError> {
        let name = contact.name.parse().map_err(WraithError::invalid)?;
        let key = node_id(&contact.node_id)?;
        let addresses = contact.addresses.iter().map(|address| address.parse());
        let addresses = addresses.collect::<Result<Vec<_>, _>>().map_err(WraithError::invalid)?;
        self.node.contacts().change(|book| {
            book.add(&name, key).map_err(StateError::from)?;
            if !addresses.is_empty() {
                book.set_addresses(key, &addresses);
            }
            Ok(())
        })
    }

    /// Removes a contact.
    ///
    /// # Errors
    /// There is no contact of this name, or the contacts cannot be written.
    pub fn remove_contact(&self, name: String) -> Result<(), WraithError> {
        let name = name.parse().map_err(WraithError::invalid)?;
        self.node.contacts().change(|book| {
            book.remove(&name).map_err(StateError::from)?;
            Ok(())
        })
    }
}

/// Shuts down all nodes of the process, and waits at most 2 s until their peers are notified.
/// Blocks the thread. Nodes that are created later are shut down from the beginning.
///
/// A program calls this at its very end, for example in a shutdown hook of the JVM. Python does so
/// by itself when the interpreter exits.
#[uniffi::export]
pub fn shutdown_all_nodes() {
    let Some(runtime) = runtime::existing() else { return };
    let (ended_tx, ended) = mpsc::channel();
    // On a thread of the runtime, so that this thread may be one of any other runtime.
    runtime.spawn(async move {
        ALL_NODES.close().await;
        let _ = ended_tx.send(());
    });
    let _ = ended.recv_timeout(SHUTDOWN_TIMEOUT);
}

fn builder(options: &NodeOptions) -> NodeBuilder {
    let mut node = wraith::Node::builder().group(&ALL_NODES).port_mapping(options.port_mapping);
    let identity = options.identity.as_ref().map(|identity| identity.0.clone());
    node = set(node, identity, NodeBuilder::identity);
    node = set(node, options.state_folder.as_ref().map(StateDir::in_folder), NodeBuilder::state);
    node = set(node, options.lan.as_deref().map(lan), NodeBuilder::lan);
    node = set(node, options.rendezvous.as_deref(), NodeBuilder::rendezvous);
    for relay in &options.relays {
        let Relay { host, port, token } = relay.clone();
        let token = token.map(|token| token.text());
        node = node.relay(RelayServer { host, port, token });
    }
    if options.relay_only {
        node = node.relay_only();
    }
    if options.dht {
        node = node.dht(Vec::new());
    }
    node
}

fn lan(text: &str) -> wraith::Lan {
    match text.parse() {
        Ok(lan) => lan,
        Err(never) => match never {},
    }
}

impl From<&wraith::state::Contact> for Contact {
    fn from(contact: &wraith::state::Contact) -> Self {
        Self {
            name: contact.name.to_string(),
            node_id: contact.node_id.to_string(),
            addresses: contact.addresses.iter().map(ToString::to_string).collect(),
        }
    }
}
