//! Records: messages that two sides leave for each other at a store ([`crate::RecordStore`], SPEC
//! §11.7).
//!
//! A [`slot::Slot`] is a secret of both sides for one writer and one purpose. Slot and hour
//! together yield the storage key and the sealing key. A third party without the secret therefore
//! cannot find, read or overwrite the record. It cannot link records of different hours to one
//! writer either. All records have the same length.
//!
//! - [`content`]: the plaintext
//! - [`slot`]: keys and seal
//! - [`publish`]: keeps a record up to date
//! - [`find`]: searches for a record
//! - [`ticket`]: publishes the addresses of a sender for the holders of its ticket
//!
//! Invariant: a stored value is accepted only if it opens under the slot's key of that hour and is
//! fresh.

pub(crate) mod content;
pub(crate) mod find;
pub(crate) mod hour;
mod lengths;
pub(crate) mod publish;
pub(crate) mod slot;
mod ticket;

pub use lengths::VALUE_LEN;
pub(crate) use ticket::{REACH_LIFE_SECONDS, REPUBLISH_INTERVAL};
pub use ticket::{TicketRecord, publish_ticket};
