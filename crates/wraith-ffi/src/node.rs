//! A node: an identity with the places where it meets others, from which everything else is made.

use std::fmt;
use std::sync::Arc;

use tokio::runtime::Handle;
use wraith::RelayServer;
use wraith::state::{StateDir, StateError};

use crate::content::{Content, Recipient, Target, address, node_id};
use crate::error::WraithError;
use crate::fetch::{FetchOptions, Incoming};
use crate::identity::Identity;
use crate::listen::{Admit, Listener};
use crate::offer::{Offer, OfferOptions};
use crate::runtime::{self, entered};
use crate::secret::SecretText;

/// A relay, and what it lets this node in with.
#[derive(Clone, uniffi::Record)]
pub struct Relay {
    /// A name or an IP address, without brackets.
    pub host: String,
    /// TCP and UDP.
    pub port: u16,
    /// A secret that its operator gave.
    #[uniffi(default = None)]
    pub token: Option<Arc<SecretText>>,
}

/// Without the token, which is a secret.
impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay")
            .field("host", &self.host)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// How a node is set up. Without anything said it has a new identity, remembers nothing, and meets others on the local network
/// and at addresses alone: no server of anybody.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct NodeOptions {
    /// Who it is. By default the identity of its state folder, or a new one.
    #[uniffi(default = None)]
    pub identity: Option<Arc<Identity>>,
    /// The folder where it remembers its identity, contacts and unfinished transfers. By default it remembers them as long as it
    /// lives, in memory.
    #[uniffi(default = None)]
    pub state_folder: Option<String>,
    /// The address and port that offers wait at; by default all of this machine's, and a free port.
    #[uniffi(default = None)]
    pub listen: Option<String>,
    /// Where on the local network to meet: `all` (the default), `off`, or the name of an interface.
    #[uniffi(default = None)]
    pub lan: Option<String>,
    /// Meets others at this rendezvous server too, `HOST` or `HOST:PORT`.
    #[uniffi(default = None)]
    pub rendezvous: Option<String>,
    /// Waits at these relays too, and goes through them where nothing else gets through.
    #[uniffi(default = [])]
    pub relays: Vec<Relay>,
    /// Uses nothing but relays, and tells nobody an address of this machine.
    #[uniffi(default = false)]
    pub relay_only: bool,
    /// Finds others over the Mainline DHT.
    #[uniffi(default = false)]
    pub dht: bool,
    /// Asks the router to lead others here.
    #[uniffi(default = false)]
    pub port_mapping: bool,
}

/// Somebody this node knows.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct Contact {
    /// What its user calls it.
    pub name: String,
    /// Its key.
    pub node_id: String,
    /// Where the user says that it listens: `HOST` or `HOST:PORT`.
    #[uniffi(default = [])]
    pub addresses: Vec<String>,
}

/// An identity, what it remembers, and where it meets others. What was made from it lives on when it is freed.
#[derive(Debug, uniffi::Object)]
pub struct Node {
    node: wraith::Node,
    listen: Option<String>,
    runtime: Handle,
}

#[uniffi::export]
impl Node {
    /// A node with these options.
    ///
    /// # Errors
    /// An option makes no sense, or the state folder cannot be read or made.
    #[uniffi::constructor]
    pub fn new(options: NodeOptions) -> Result<Arc<Self>, WraithError> {
        let runtime = runtime::handle()?;
        if let Some(listen) = &options.listen {
            address(listen)?;
        }
        let node = builder(&options)?.runtime(runtime.clone()).build()?;
        Ok(Arc::new(Self { node, listen: options.listen, runtime }))
    }

    /// Who this node is: 52 characters of base32.
    pub fn node_id(&self) -> String {
        self.node.id().to_string()
    }

    /// Offers something. Returns as soon as there is a code or ticket to show. Dropping the call withdraws it.
    ///
    /// # Errors
    /// A path is not there, or the address cannot be listened on; [`WraithError::NotFound`] if nobody is called so.
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
            Recipient::Contact { name } => offer.to_contact(self.contact(&name)?),
        };
        let offer = entered(self.runtime.clone(), offer.start()).await?;
        Ok(Offer::new(offer, self.runtime.clone()))
    }

    /// Finds the sender of a code or ticket (`source`) and hears what it offers. Nothing is written before the offer is accepted. Dropping
    /// the call stops it.
    ///
    /// # Errors
    /// Nobody was found, the code is wrong, or the connection was lost and did not come back.
    pub async fn fetch(
        &self,
        source: String,
        into: Target,
        options: FetchOptions,
    ) -> Result<Arc<Incoming>, WraithError> {
        let source: wraith::Source = source.trim().parse()?;
        let (target, memory) = into.open();
        let fetch = options.apply(self.node.fetch(source, target));
        let incoming = entered(self.runtime.clone(), async { fetch.ask().await }).await?;
        Ok(Incoming::new(incoming, memory, self.runtime.clone()))
    }

    /// Takes offers of contacts, or of everybody who knows the NodeId, into this folder.
    ///
    /// # Errors
    /// The contacts cannot be read, or the address cannot be listened on.
    pub async fn listen(&self, folder: String, admit: Admit) -> Result<Arc<Listener>, WraithError> {
        let mut listen = self.node.listen(folder).admit(admit.into());
        if let Some(at) = &self.listen {
            listen = listen.bind_to(address(at)?);
        }
        let listener = entered(self.runtime.clone(), listen.start()).await?;
        Ok(Listener::new(listener, self.runtime.clone()))
    }

    /// Whom it knows.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn contacts(&self) -> Result<Vec<Contact>, WraithError> {
        let book = self.node.contacts().load()?;
        Ok(book.contacts().iter().map(Contact::from).collect())
    }

    /// Remembers somebody, or where somebody who is known listens.
    ///
    /// # Errors
    /// The name is no name or belongs to another identity, the NodeId or an address makes no sense, or it cannot be written.
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

    /// Forgets somebody.
    ///
    /// # Errors
    /// Nobody is called so, or it cannot be written.
    pub fn remove_contact(&self, name: String) -> Result<(), WraithError> {
        let name = name.parse().map_err(WraithError::invalid)?;
        self.node.contacts().change(|book| {
            book.remove(&name).map_err(StateError::from)?;
            Ok(())
        })
    }
}

impl Node {
    fn contact(&self, name: &str) -> Result<wraith::state::Contact, WraithError> {
        let parsed = name.parse().map_err(WraithError::invalid)?;
        let book = self.node.contacts().load()?;
        let nobody = || WraithError::NotFound(format!("there is no contact called {name}"));
        book.named(&parsed).cloned().ok_or_else(nobody)
    }
}

fn builder(options: &NodeOptions) -> Result<wraith::NodeBuilder, WraithError> {
    let mut node = wraith::Node::builder().port_mapping(options.port_mapping);
    if let Some(identity) = &options.identity {
        node = node.identity(identity.0.clone());
    }
    if let Some(folder) = &options.state_folder {
        node = node.state(StateDir::in_folder(folder));
    }
    if let Some(lan) = &options.lan {
        node = node.lan(match lan.parse() {
            Ok(lan) => lan,
            Err(never) => match never {},
        });
    }
    if let Some(server) = &options.rendezvous {
        node = node.rendezvous(server);
    }
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
    Ok(node)
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
