//! How one side learns where the other is and what it may fetch: with a [`Ticket`], everything a receiver needs on one
//! line of text (SPEC §2), or with a [`Code`], a nameplate and two words that people can say, which brings the ticket over
//! (SPEC §11), or, once it knows the other, without either ([`contact`], SPEC §12).
//!
//! ```text
//!   announce, join             contact::{listen, search}        what an application calls
//!   code exchange              contact exchange                 who may hear what; each written once
//!   ──────────────────── MeetingPlace ────────────────────      opaque sealed messages
//!   lan        rendezvous (client)        places of one's own
//! ```
//!
//! Everything that waits is a future on tokio, of any flavour; dropping it, or the handle that stands for it, ends it. There is
//! no thread, and nothing wakes up to look whether something has changed.
//!
//! Invariants: a [`Ticket`] that exists is well formed; text and bytes become one in [`Ticket::decode`] and `FromStr` and
//! nowhere else, and whatever they accept encodes to the same bytes again. A [`Code`] is good for one guess, whoever makes
//! it and wherever: [`Creator`] and [`pake::Joiner`] see to it on their sides, in one state for all places.

#![forbid(unsafe_code)]

mod backoff;
mod capability;
mod code;
mod connect;
pub mod contact;
pub mod lan;
mod place;
mod places;
pub mod rates;
mod reach;
pub mod record;
mod relay_addr;
pub mod rendezvous;
mod store;
mod ticket;
pub mod words;

pub use capability::Capability;
pub use code::{
    Code, CodeAnnouncement, CodeError, CodeEvent, CodeOptions, Creator, JoinError, Judged,
    MakeTicket, Met, NoRandomness, NotMet, Spend, TicketSide, announce, announce_long, join,
    join_reachable, message, pake,
};
pub use connect::{Connect, Connected, Connecting, Direct, Stream};
pub use lan::Lan;
pub use place::{
    Announcement, BoxFuture, ContactTag, End, LAST_WORD_TIMEOUT, MAX_MESSAGE_LEN, MAX_NAMEPLATE,
    MakeQuestion, MeetingPlace, Place, PlaceCaps, PlaceError, Query, Question, Refusal, Reply,
    Responder, Response, Topic,
};
pub use places::Places;
pub use reach::{MakeReach, Reach};
pub use relay_addr::{
    MAILBOX_LEN, MAX_HOST_LEN, MAX_RELAY_LEN, MAX_RELAYS, PIN_LEN, RelayAddr, RelayAddrError,
};
pub use store::{MAX_VALUE_LEN, RecordKey, RecordLookup, RecordSeed, RecordStore, StoredRecord};
pub use ticket::{MAX_ADDRESSES, Ticket, TicketError, VERSION};

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
