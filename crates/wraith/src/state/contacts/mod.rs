//! The user's contacts: identities with names chosen by the user.
//!
//! Invariant: a name stands for one key until the user changes it. No network message can change
//! it.

mod address;
mod book;
mod name;
mod store;

pub use address::{Address, AddressError};
pub use book::{Book, Contact, Meeting, Refused};
pub use name::{Name, NameError};
pub use store::ContactStore;
