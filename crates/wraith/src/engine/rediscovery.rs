//! Finding each other again (SPEC §12.3), the side that is dialled: a sender that has lost a receiver answers it wherever codes
//! are met. So a transfer survives that the sender's address changes while nothing is connected, and a sender that is
//! started again elsewhere. The side that dials asks in [`super::dial`].

use tokio::task::JoinSet;
use wraith_crypto::{NodeId, SecretIdentity};
use wraith_discovery::contact::{ContactListener, Pair, listen};
use wraith_discovery::{Capability, Places};

use crate::state::MAX_RECEIVERS;
use crate::ways::Ways;

/// See the module.
#[derive(Debug)]
pub(crate) struct Rediscovery {
    identity: SecretIdentity,
    capability: Capability,
    places: Places,
    ways: Ways,
    /// Who was lost, the last first.
    lost: Vec<Pair>,
    listener: Option<ContactListener>,
    /// Listeners that withdraw what they have stored.
    closing: JoinSet<()>,
}

impl Rediscovery {
    /// Answers nobody yet. `ways` is where receivers can dial.
    pub fn new(
        identity: SecretIdentity,
        capability: Capability,
        places: Places,
        ways: Ways,
    ) -> Self {
        Self {
            identity,
            capability,
            places,
            ways,
            lost: Vec::new(),
            listener: None,
            closing: JoinSet::new(),
        }
    }

    /// From now on this receiver is told where we are.
    pub async fn lost(&mut self, receiver: NodeId) {
        // Somebody whose key is none was never connected.
        let Ok(pair) = Pair::of_transfer(&self.identity, receiver, self.capability.as_bytes())
        else {
            return;
        };
        self.lost.retain(|pair| pair.peer() != receiver);
        self.lost.insert(0, pair);
        self.lost.truncate(MAX_RECEIVERS);
        self.answer().await;
    }

    /// It is connected again, or done.
    pub async fn back(&mut self, receiver: NodeId) {
        let before = self.lost.len();
        self.lost.retain(|pair| pair.peer() != receiver);
        if self.lost.len() != before {
            self.answer().await;
        }
    }

    /// We can be reached elsewhere now.
    pub fn addresses_changed(&self) {
        self.listener.iter().for_each(ContactListener::addresses_changed);
    }

    /// Answers nobody any more, and withdraws what is stored, within a few seconds.
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
            // What cannot be reached now may be later, and the receiver tries all it knows in any case.
            let mut listener = listen(&self.places, self.ways.make_reach()).await;
            if let Some(events) = listener.take_events() {
                self.ways.let_callers_in(events);
            }
            self.listener = Some(listener);
        }
        if let Some(listener) = &self.listener {
            listener.set_contacts(self.lost.clone());
        }
    }
}
