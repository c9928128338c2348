//! How one side learns where the other is and what it may fetch. For now that is one thing, the [`Ticket`]: everything
//! a receiver needs, on one line of text (SPEC §2).
//!
//! Invariant: a [`Ticket`] that exists is well formed. Text and bytes become one in [`Ticket::decode`] and `FromStr`,
//! and nowhere else; whatever they accept encodes to the same bytes again.

#![forbid(unsafe_code)]

mod capability;
mod ticket;

pub use capability::Capability;
pub use ticket::{MAX_ADDRESSES, Ticket, TicketError, VERSION};
