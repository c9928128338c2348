//! Whom this machine knows: identities with names that its user gave them.
//!
//! Invariant: a name stands for one key until its user says otherwise. Nothing that comes over a network changes which.

mod address;
mod answers;
mod book;
mod command;
mod keep;
mod name;
mod store;

pub use address::Address;
pub use answers::Answers;
pub use book::{Contact, Meeting};
pub use command::{nobody, run};
pub use keep::{Keep, Other, after_transfer};
pub use name::Name;
pub use store::Store;

use wraith_crypto::NodeId;

use crate::home::Home;
use crate::report::short_id;

/// What we call this identity, if we know it. Contacts that cannot be read are told about by who needs them.
pub fn name_of(node_id: NodeId) -> Option<Name> {
    let book = Store::of(&Home::open().ok()?).load().ok()?;
    book.with(node_id).map(|contact| contact.name.clone())
}

/// The same for people: without a name, the beginning of the NodeId.
pub fn shown(node_id: NodeId) -> String {
    match name_of(node_id) {
        Some(name) => name.to_string(),
        None => short_id(&node_id.to_string()).to_owned(),
    }
}
