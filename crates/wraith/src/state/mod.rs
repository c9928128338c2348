//! What a machine remembers between two runs.
//!
//! | file in the folder | what | type |
//! |---|---|---|
//! | `identity` | the secret key | [`StateDir::identity`] |
//! | `contacts.toml` | whom the user knows | [`ContactStore`] |
//! | `config.toml` | options that need not be typed | [`ConfigFile`] |
//! | `sends/HASH` | secret and port of an unfinished send | [`UnfinishedSend`] |
//! | `codes/HASH` | the ticket that a code brought | [`SavedTicket`] |
//! | `received/*.record` | a signed list of each finished transfer | [`ReceivedStore`], [`Recorder`] |
//!
//! Invariants: only its owner can read any of it (folders 0700, files 0600). Every file is replaced whole by one commit (written
//! beside, flushed to the disk, renamed), so a reader meets the old content or the new and a crash leaves one of the two. A
//! change is read, made and committed under a lock, so programs that change at once lose nothing of each other. Every format has a
//! version; a file of a newer one is an error and is left alone.
//!
//! A [`StateDir`] names the folder, and nothing is written anywhere else; [`StateDir::in_memory`] keeps an identity and contacts for
//! as long as it lives and remembers nothing.

mod commit;
mod config;
mod contacts;
mod dir;
mod error;
mod file;
mod identity;
mod received;
mod saved_ticket;
mod unfinished_send;

pub use config::ConfigFile;
pub use contacts::{
    Address, AddressError, Book, Contact, ContactStore, Meeting, Name, NameError, Refused,
};
pub use dir::{StateDir, users_folder};
pub use error::{StateError, StateErrorKind};
pub use identity::IDENTITY_FILE;
pub use received::{Fault, Head, Line, Lines, ReceivedList, ReceivedStore, Recorder, Rest, What};
pub use saved_ticket::SavedTicket;
pub use unfinished_send::{MAX_RECEIVERS, UnfinishedSend};
