//! Who may come: the contacts as they stand in their file now, so that one who is removed meets silence from then on, and one
//! who is added is welcome, without a restart.

use std::cmp::Reverse;
use std::collections::HashSet;

use wraith_crypto::{NodeId, SecretIdentity};
use wraith_discovery::contact::Pair;
use wraith_transport::DoorKey;

use super::Admit;
use crate::error::Error;
use crate::node::Node;
use crate::state::Contact;

/// See the module.
#[derive(Debug)]
pub(super) struct Allowlist {
    identity: SecretIdentity,
    admit: Admit,
    contacts: Vec<Contact>,
    /// That the file cannot be read was told.
    is_damaged: bool,
}

impl Allowlist {
    /// # Errors
    /// The contacts cannot be read. Then nobody can be told from a stranger, and nothing begins.
    pub fn load(node: &Node, admit: Admit) -> Result<Self, Error> {
        let contacts = node.contacts().load()?.contacts().to_vec();
        Ok(Self { identity: node.identity().clone(), admit, contacts, is_damaged: false })
    }

    pub fn len(&self) -> usize {
        self.contacts.len()
    }

    /// One for everybody unless contacts alone are taken, and one for each contact: the first of them are open during any flood.
    pub fn doors(&self) -> Vec<DoorKey> {
        let own = self.identity.node_id();
        let of_contacts = self.pairs().into_iter().map(|pair| DoorKey::of_pair(pair.secret(), own));
        let everybody = (self.admit != Admit::Contacts).then(|| DoorKey::of_everybody(own));
        everybody.into_iter().chain(of_contacts).collect()
    }

    /// Who gets a connection; `None` is everybody.
    pub fn admitted(&self) -> Option<HashSet<NodeId>> {
        (self.admit == Admit::Contacts).then(|| node_ids(&self.contacts))
    }

    /// Reads the contacts again. True if others are in it now.
    ///
    /// # Errors
    /// They cannot be read; told once, until they can again.
    pub fn reload(&mut self, node: &Node) -> Result<bool, Error> {
        match node.contacts().load() {
            Ok(book) => {
                let changed = node_ids(book.contacts()) != node_ids(&self.contacts);
                self.contacts = book.contacts().to_vec();
                self.is_damaged = false;
                Ok(changed)
            }
            Err(error) if !std::mem::replace(&mut self.is_damaged, true) => Err(error.into()),
            Err(_) => Ok(false),
        }
    }

    /// Who was met last comes first: there is not room for all at a rendezvous server.
    pub fn pairs(&self) -> Vec<Pair> {
        let mut contacts: Vec<_> = self.contacts.iter().collect();
        contacts.sort_by_key(|contact| Reverse(contact.last_met));
        let pair = |contact: &&Contact| Pair::new(&self.identity, contact.node_id).ok();
        contacts.iter().filter_map(pair).collect()
    }
}

fn node_ids(contacts: &[Contact]) -> HashSet<NodeId> {
    contacts.iter().map(|contact| contact.node_id).collect()
}
