//! Records: what two sides leave for each other at a place that stores ([`crate::RecordStore`], SPEC §11.7).
//!
//! A [`slot::Slot`] is a secret of both sides, for one who writes and one purpose. With the hour it gives the key that the record is
//! stored under and the key that it is sealed with; so who does not have the secret cannot find it, read it or overwrite it, and
//! cannot tell that two records of different hours have one writer. Every record has the same length.
//!
//! [`content`] is what a record says, [`slot`] the keys and the seal, [`publish`] keeps one up to date while somebody serves,
//! [`find`] looks for one, [`ticket`] is for who has a ticket whose sender has moved.
//!
//! Invariant: nothing that a store returns is believed before it has opened under the slot's key of that hour and is fresh by
//! its own times.

pub(crate) mod content;
pub(crate) mod find;
pub(crate) mod hour;
pub(crate) mod publish;
pub(crate) mod slot;
mod ticket;

pub use slot::VALUE_LEN;
pub(crate) use ticket::{HERE_LIFE_SECONDS, REPUBLISH_INTERVAL};
pub use ticket::{TicketRecord, TicketSearch, find_ticket, publish_ticket};
