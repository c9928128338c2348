//! Persistent state of a machine between two runs.
//!
//! | file in the folder | content | type |
//! |---|---|---|
//! | `identity` | the secret key | [`StateDir::identity`] |
//! | `handshakes` | IDs of received handshakes, against replays | `HandshakeLogFile` |
//! | `contacts.toml` | the user's contacts | [`ContactStore`] |
//! | `config.toml` | default options | [`ConfigFile`] |
//! | `sends/HASH` | secret and port of an unfinished send, its allowlist, and marks of the files it has read | [`UnfinishedSend`] |
//! | `receiving/HASH-N` | the process that currently receives a transfer, and its target | [`OtherReceiver`] |
//! | `codes/HASH` | the ticket that a code delivered | [`SavedTicket`] |
//! | `spent-codes` | hashes of the codes that were tried | [`SpentCodes`] |
//! | `dht-nodes` | DHT nodes that answered | [`NodeBuilder::dht`](crate::NodeBuilder::dht) |
//! | `received/*.record` | a signed list of each finished transfer | [`ReceivedStore`], [`ReceivedListRecorder`] |
//!
//! Invariants:
//!
//! - Only the owner can read the state (folders 0700, files 0600).
//! - Every file except `handshakes` and those in `receiving` is replaced as a whole by one commit: written beside,
//!   flushed to disk, renamed. A reader finds the old content or the new, also after a crash.
//! - A change is read, made and committed under a lock, so concurrent programs lose no changes.
//! - Every format has a version. A file of a newer version is an error and is left unchanged.
//!
//! A [`StateDir`] names the folder. Nothing is written outside of it except receipts, which the
//! user puts elsewhere ([`open_receipt`]). [`StateDir::in_memory`] keeps an identity and contacts
//! for its own lifetime and stores nothing.

mod allowlist;
mod commit;
mod config;
mod contacts;
mod dht_nodes;
mod dir;
mod error;
mod file;
mod folder;
mod handshake_log;
mod identity;
mod lock_file;
mod receipt_file;
mod received_list;
mod receiver_record;
mod saved_ticket;
mod spent_codes;
mod unfinished_send;

pub use allowlist::ALLOWED_MAX;
pub use config::ConfigFile;
pub(crate) use contacts::ContactsWatch;
pub use contacts::{
    Contact, ContactAddress, ContactAddressError, ContactBook, ContactError, ContactName,
    ContactNameError, ContactStore, LastSeen,
};
pub(crate) use dht_nodes::DhtNodes;
pub use dir::{StateDir, users_folder};
pub use error::{StateError, StateErrorKind};
pub(crate) use handshake_log::HandshakeLogFile;
pub use identity::IDENTITY_FILE;
pub(crate) use receipt_file::ReceiptWriter;
pub use receipt_file::{ReceiptReader, open_receipt};
pub use received_list::{
    OmittedCounts, ProofError, ReceiptEntry, ReceiptEntryKind, ReceiptHeader, ReceivedList,
    ReceivedListReader, ReceivedListRecorder, ReceivedStore, open as open_received_list,
};
pub use receiver_record::OtherReceiver;
pub(crate) use receiver_record::ReceiverRecord;
pub use saved_ticket::SavedTicket;
pub use spent_codes::{CodeTag, SpentCodes, TriedBefore};
pub use unfinished_send::{MAX_RECEIVERS, Recipient, UnfinishedSend};
