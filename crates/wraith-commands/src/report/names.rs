//! Display names of peers: the name of a contact, or the start of the NodeId.

use wraith::NodeId;
use wraith::state::ContactName;

use crate::home;

/// Letters of a NodeId that tell the peers of one command apart: 40 bits. A stranger can generate
/// keys until one has these letters.
const SHORT_ID_LETTERS: usize = 8;
/// Letters of a NodeId where a person decides by it: 80 bits, more than anyone can search.
const DECISION_ID_LETTERS: usize = 16;

/// Returns the contact name of this identity, if it is a contact. Ignores an unreadable contact
/// list; commands that need it report the error.
pub fn name_of(node_id: NodeId) -> Option<ContactName> {
    let book = home::open().ok()?.contacts().load().ok()?;
    book.with(node_id).map(|contact| contact.name.clone())
}

/// Returns the contact name, or else so much of the NodeId that nobody finds another key with it.
pub fn shown(node_id: NodeId) -> String {
    match name_of(node_id) {
        Some(name) => name.to_string(),
        None => decision_id(&node_id.to_string()).to_owned(),
    }
}

/// Returns the start of a NodeId, for status lines.
pub fn short_id(node_id: &str) -> &str {
    node_id.get(..SHORT_ID_LETTERS).unwrap_or(node_id)
}

/// Returns the start of a NodeId, for a decision.
pub fn decision_id(node_id: &str) -> &str {
    node_id.get(..DECISION_ID_LETTERS).unwrap_or(node_id)
}
