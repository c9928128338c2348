//! Discovery: how one side finds the other. There are three ways:
//!
//! - a [`Ticket`]: one line of text with everything that a receiver needs: the sender's public key
//!   and addresses, and the secret of the transfer (SPEC §2),
//! - a [`Code`]: a number (the nameplate) and two secret words that people can speak. A code
//!   transfers the ticket (SPEC §11),
//! - for known peers (contacts), neither ticket nor code ([`contact`], SPEC §12).
//!
//! ```text
//!   announce, join             contact::{listen, search}        the API of an application
//!   code exchange              contact exchange                 authorization; each written once
//!   ──────────────────── MeetingPlace ────────────────────      opaque sealed messages
//!   lan        rendezvous (client)        the application's own places
//! ```
//!
//! Every wait is a future on tokio, on a runtime of any flavour. Dropping the future, or its
//! handle, cancels it. There are no threads and no polling.
//!
//! Invariants:
//!
//! - A [`Ticket`] is well formed. [`Ticket::decode`] and `FromStr` are the only parsers, and
//!   accepted input encodes to the same bytes.
//! - A [`Code`] allows one guess in total, at all places together. [`Creator`] and [`pake::Joiner`]
//!   enforce this on their sides.

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
#[cfg(feature = "serde")]
mod serde_text;
mod store;
mod suspension;
mod ticket;
mod wall_clock;
mod way;
pub mod words;

pub use backoff::Backoff;
pub use capability::Capability;
pub use code::{
    Code, CodeAnnouncement, CodeError, CodeEvent, CodeOptions, Creator, JoinError, JoinErrorKind,
    JoinSuccess, MakeTicket, MarkSpent, NoRandomness, ProofVerdict, TicketSide, announce,
    announce_long, join, message, pake,
};
pub use connect::{Connect, Connected, Connecting, Direct, Stream};
pub use lan::Lan;
pub use place::{
    Announcement, BoxFuture, CLOSE_MESSAGE_TIMEOUT, ContactTag, EndSignal, MAX_MESSAGE_LEN,
    MAX_NAMEPLATE, MakeQuestion, MeetingPlace, PlaceCaps, PlaceError, PlaceName, Query, Question,
    Refusal, Reply, Responder, Response, Topic,
};
pub use places::Places;
pub use reach::{MAX_CUSTOM_WAYS, MakeReach, Reach};
pub use relay_addr::{
    MAILBOX_LEN, MAX_HOST_LEN, MAX_RELAY_LEN, MAX_RELAYS, PIN_LEN, RelayAddr, RelayAddrError,
};
pub use store::{MAX_VALUE_LEN, RecordKey, RecordLookup, RecordSeed, RecordStore, StoredRecord};
pub use suspension::{SuspensionMark, SuspensionWatch, TimeLimit, sleep_or_wake};
pub use ticket::{MAX_ADDRESSES, Ticket, TicketError, TicketKind, VERSION};
pub use wall_clock::unix_seconds;
pub use way::{CustomWay, MAX_WAY_LEN, Way, WayError};

/// Runs the README example as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
