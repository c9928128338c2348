//! The accept filter of a listener: the current contents of the contacts file. Without a restart, a
//! removed contact gets no more answers, and an added contact is admitted.

use std::collections::HashSet;

use wraith_crypto::{NodeId, SecretIdentity};
use wraith_discovery::contact::ContactPair;
use wraith_transport::AccessKey;

use super::AcceptFilter;
use crate::error::Error;
use crate::node::Node;
use crate::paths::{node_ids, pairs_of};
use crate::state::Contact;

/// The accept filter (see the module docs).
#[derive(Debug)]
pub(super) struct Allowlist {
    identity: SecretIdentity,
    filter: AcceptFilter,
    contacts: Vec<Contact>,
}

impl Allowlist {
    /// Loads the contacts.
    ///
    /// # Errors
    /// The contacts cannot be read. A contact then looks like a stranger, so the listener must not
    /// start.
    pub fn load(node: &Node, filter: AcceptFilter) -> Result<Self, Error> {
        let contacts = node.contacts().load()?.contacts().to_vec();
        Ok(Self { identity: node.identity().clone(), filter, contacts })
    }

    pub fn len(&self) -> usize {
        self.contacts.len()
    }

    /// Returns the access keys: the public access key, unless only contacts are admitted, then one
    /// per contact. The first keys stay usable during any flood.
    pub fn access_keys(&self) -> Vec<AccessKey> {
        let own = self.identity.node_id();
        let of_contacts =
            self.pairs().into_iter().map(|pair| AccessKey::of_pair(pair.secret(), own));
        let public = (self.filter != AcceptFilter::Contacts).then(|| AccessKey::public(own));
        public.into_iter().chain(of_contacts).collect()
    }

    /// Returns the contact that holds this access key; `None` for the public one.
    pub fn holder_of(&self, access_key: &AccessKey) -> Option<NodeId> {
        // Strangers must not cost a key agreement for each contact.
        if access_key.is_public() {
            return None;
        }
        let own = self.identity.node_id();
        let mut pairs = self.pairs().into_iter();
        pairs
            .find(|pair| AccessKey::of_pair(pair.secret(), own) == *access_key)
            .map(|pair| pair.peer())
    }

    /// Returns the peers that get a connection; `None` means all.
    pub fn admitted(&self) -> Option<HashSet<NodeId>> {
        (self.filter == AcceptFilter::Contacts).then(|| node_ids(&self.contacts))
    }

    /// Replaces the contacts. Returns true if other peers are admitted now.
    pub fn set(&mut self, contacts: &[Contact]) -> bool {
        let is_changed = node_ids(contacts) != node_ids(&self.contacts);
        self.contacts = contacts.to_vec();
        is_changed
    }

    fn pairs(&self) -> Vec<ContactPair> {
        pairs_of(&self.identity, &self.contacts)
    }
}
