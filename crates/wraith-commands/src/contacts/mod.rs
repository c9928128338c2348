//! The user interface of contacts: the command, and the question after a transfer.

mod command;
mod save_contact;

pub use command::{find, run};
pub use save_contact::{SaveContact, TransferPeer, after_transfer};
