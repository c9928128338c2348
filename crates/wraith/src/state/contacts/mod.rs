//! The user's contacts: identities with names chosen by the user.
//!
//! Invariant: a name stands for one key until the user changes it. No network message can change
//! it.

mod address;
mod book;
mod name;
mod store;
mod watch;

pub use address::{ContactAddress, ContactAddressError};
pub use book::{Contact, ContactBook, ContactError, LastSeen};
pub use name::{ContactName, ContactNameError};
pub use store::ContactStore;
pub(crate) use watch::ContactsWatch;
