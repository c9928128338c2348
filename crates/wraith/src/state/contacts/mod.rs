//! Whom this machine knows: identities with names that its user gave them.
//!
//! Invariant: a name stands for one key until its user says otherwise. Nothing that comes over a network changes which.

mod address;
mod book;
mod name;
mod store;

pub use address::{Address, AddressError};
pub use book::{Book, Contact, Meeting, Refused};
pub use name::{Name, NameError};
pub use store::ContactStore;
