//! How one side learns where the other is and what it may fetch: with a [`Ticket`], everything a receiver needs on one
//! line of text (SPEC §2), or with a [`Code`], a number and two words that people can say, which brings the ticket over
//! (SPEC §11), or, once it knows the other, without either ([`contact`], SPEC §12).
//!
//! Invariants: a [`Ticket`] that exists is well formed; text and bytes become one in [`Ticket::decode`] and `FromStr` and
//! nowhere else, and whatever they accept encodes to the same bytes again. A [`Code`] is good for one guess, whoever makes
//! it and wherever: [`Holder`] and [`Guest`] see to it on their sides.

#![forbid(unsafe_code)]

mod capability;
mod code;
pub mod contact;
mod holder;
pub mod lan;
mod meet;
mod meeting;
pub mod message;
pub mod pake;
mod rates;
pub mod rendezvous;
mod ticket;
pub mod words;

pub use capability::Capability;
pub use code::{Code, CodeError, MAX_NUMBER};
pub use holder::{Holder, Judged, Refusal};
pub use lan::Lan;
pub use meet::{Places, Search, Waiting, wait};
pub use meeting::{Happened, Met, NotMet, Place, Unmet};
pub use pake::{Giver, Guest};
pub use ticket::{MAX_ADDRESSES, Ticket, TicketError, VERSION};

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
