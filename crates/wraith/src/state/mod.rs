//! What a machine remembers between two runs.
//!
//! | file in the folder | what | type |
//! |---|---|---|
//! | `identity` | the secret key | [`StateDir::identity`] |
//! | `contacts.toml` | whom the user knows | [`ContactStore`] |
//! | `config.toml` | options that need not be typed | [`ConfigFile`] |
//! | `sends/HASH` | secret and port of an unfinished send, for whom it is good, and marks of the files it has read | [`UnfinishedSend`] |
//! | `receiving/HASH-N` | which process receives a transfer right now, and where to | [`OtherReceiver`] |
//! | `codes/HASH` | the ticket that a code brought | [`SavedTicket`] |
//! | `spent-codes` | which codes were tried, without the codes | [`SpentCodes`] |
//! | `dht-nodes` | nodes of the DHT that answered | [`NodeBuilder::dht`](crate::NodeBuilder::dht) |
//! | `received/*.record` | a signed list of each finished transfer | [`ReceivedStore`], [`Recorder`] |
//!
//! Invariants: only its owner can read any of it (folders 0700, files 0600). Every file but those in `receiving` is replaced whole by one commit (written
//! beside, flushed to the disk, renamed), so a reader meets the old content or the new and a crash leaves one of the two. A
//! change is read, made and committed under a lock, so programs that change at once lose nothing of each other. Every format has a
//! version; a file of a newer one is an error and is left alone.
//!
//! A [`StateDir`] names the folder, and nothing is written anywhere else but a receipt, where the user wants it ([`open_receipt`]); [`StateDir::in_memory`] keeps an identity and contacts for
//! as long as it lives and remembers nothing.

mod allowlist;
mod commit;
mod config;
mod contacts;
mod dht_nodes;
mod dir;
mod error;
mod file;
mod identity;
mod lock_file;
mod received;
mod receiving;
mod saved_ticket;
mod sent;
mod spent_codes;
mod unfinished_send;

pub use allowlist::ALLOWED_MAX;
pub(crate) use commit::make_folder;
pub use config::ConfigFile;
pub use contacts::{
    Address, AddressError, Book, Contact, ContactStore, Meeting, Name, NameError, Refused,
};
pub(crate) use dht_nodes::DhtNodes;
pub(crate) use dir::check_folder;
pub use dir::{StateDir, users_folder};
pub use error::{StateError, StateErrorKind};
pub use identity::IDENTITY_FILE;
pub(crate) use lock_file::lock_patiently;
pub use received::{
    Fault, Head, Line, Lines, ReceivedList, ReceivedStore, Recorder, Rest, What,
    open as open_record,
};
pub use receiving::OtherReceiver;
pub(crate) use receiving::Receiving;
pub use saved_ticket::SavedTicket;
pub(crate) use sent::Keeper;
pub use sent::{ReceiptLines, open_receipt};
pub use spent_codes::{CodeTag, SpentCodes, TriedBefore};
pub use unfinished_send::{MAX_RECEIVERS, Recipient, UnfinishedSend};
