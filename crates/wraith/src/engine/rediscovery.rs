//! Rediscovery (SPEC §12.3), on the dialled side. A sender that lost the connection to a receiver
//! answers the searches of that receiver at all meeting places (local network, rendezvous server,
//! DHT). So a transfer continues in two cases: the address of the sender changed while there was no
//! connection, or the sender was restarted elsewhere. The dialling side searches in
//! [`super::dial`].

use tokio::task::JoinSet;
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_discovery::contact::{ContactListener, ContactPair, listen};
use wraith_discovery::{Capability, Places};

use crate::paths::SocketPaths;
use crate::state::MAX_RECEIVERS;

/// The rediscovery of one sender (see the module docs).
#[derive(Debug)]
pub(crate) struct Rediscovery {
    identity: SecretIdentity,
    capability: Capability,
    places: Places,
    paths: SocketPaths,
    /// The lost receivers, the latest first.
    lost: Vec<ContactPair>,
    listener: Option<ContactListener>,
    /// Listeners that are withdrawing their stored records.
    closing: JoinSet<()>,
}

impl Rediscovery {
    /// Creates a rediscovery that answers no receiver yet. `paths` are the paths by which receivers
    /// can dial.
    pub fn new(
        identity: SecretIdentity,
        capability: Capability,
        places: Places,
        paths: SocketPaths,
    ) -> Self {
        Self {
            identity,
            capability,
            places,
            paths,
            lost: Vec::new(),
            listener: None,
            closing: JoinSet::new(),
        }
    }

    /// Starts to answer this receiver with our addresses.
    pub async fn lost(&mut self, receiver: NodeId) {
        // A peer with an invalid key was never connected.
        let Ok(pair) =
            ContactPair::of_transfer(&self.identity, receiver, self.capability.as_bytes())
        else {
            return;
        };
        self.lost.retain(|pair| pair.peer() != receiver);
        self.lost.insert(0, pair);
        self.lost.truncate(MAX_RECEIVERS);
        self.answer().await;
    }

    /// Stops answering a receiver that reconnected or is done.
    pub async fn back(&mut self, receiver: NodeId) {
        let before = self.lost.len();
        self.lost.retain(|pair| pair.peer() != receiver);
        if self.lost.len() != before {
            self.answer().await;
        }
    }

    /// Publishes a change of our addresses.
    pub fn addresses_changed(&self) {
        self.listener.iter().for_each(ContactListener::addresses_changed);
    }

    /// Stops answering, and withdraws the stored records within a few seconds.
    pub async fn close(&mut self) {
        self.lost.clear();
        self.answer().await;
        while self.closing.join_next().await.is_some() {}
    }

    async fn answer(&mut self) {
        if self.lost.is_empty() {
            if let Some(listener) = self.listener.take() {
                while self.closing.try_join_next().is_some() {}
                self.closing.spawn(listener.close());
            }
            return;
        }
        if self.listener.is_none() {
            // A place that is unreachable now may recover, and the receiver tries all its places
            // anyway.
            let mut listener = listen(&self.places, self.paths.make_reach()).await;
            if let Some(events) = listener.take_events() {
                self.paths.punch_for_callers(events);
            }
            self.listener = Some(listener);
        }
        if let Some(listener) = &self.listener {
            listener.set_contacts(self.lost.clone());
        }
    }
}
