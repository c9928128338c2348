//! The user interface of contacts: the command, and the question after a transfer.

mod command;
mod save_contact;

pub use command::{run, unknown_contact};
pub use save_contact::{SaveContact, TransferPeer, after_transfer};
