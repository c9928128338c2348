//! The contacts as a person meets them: the command, the question after a transfer, and names where a key would stand.

mod answers;
mod command;
mod keep;

pub use answers::Answers;
pub use command::{nobody, run};
pub use keep::{Keep, Other, after_transfer};

use wraith::state::Name;
use wraith_crypto::NodeId;

use crate::home;
use crate::report::short_id;

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
