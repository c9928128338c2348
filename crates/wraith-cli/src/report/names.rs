//! What people call a peer: the name of a contact, or the beginning of the NodeId; and where it was found.

use wraith::state::Name;
use wraith::{FoundAt, NodeId};

use crate::home;

/// Letters of a NodeId that are shown where the whole would be in the way: 40 bits, for the eye only.
const SHORT_ID_LETTERS: usize = 8;

/// What we call this identity, if we know it. Contacts that cannot be read are told about by who needs them.
pub fn name_of(node_id: NodeId) -> Option<Name> {
    let book = home::open().ok()?.contacts().load().ok()?;
    book.with(node_id).map(|contact| contact.name.clone())
}

/// The same for people: without a name, the beginning of the NodeId.
pub fn shown(node_id: NodeId) -> String {
    match name_of(node_id) {
        Some(name) => name.to_string(),
        None => short_id(&node_id.to_string()).to_owned(),
    }
}

/// The beginning of a NodeId, for the eye.
pub fn short_id(node_id: &str) -> &str {
    node_id.get(..SHORT_ID_LETTERS).unwrap_or(node_id)
}

/// Where the other side was found, for scripts.
pub fn found_at(at: &FoundAt) -> &str {
    match at {
        FoundAt::Address => "address",
        FoundAt::Place(place) => place.name(),
    }
}
