//! A meeting place that anyone can run: `wraith rendezvous` (SPEC §11.5).
//!
//! The server is blind. It hands out numbers and passes messages between the one who opened a number and those who join
//! it; the messages are those of [`crate::pake`], so it learns the number, the two addresses and the time, and can make a
//! meeting fail, but neither read nor forge the ticket.
//!
//! It is TCP. Everything it does fits in a few hundred bytes a minute, so speed is no reason for anything else; TCP brings
//! addresses that cannot be forged, which is what limits per address rest on, and a server that never sends to somebody
//! who did not ask; it passes the firewalls that stop UDP; and a reader of this code needs to know nothing more.

/// The TCP port that a server listens on when none is named: that of the local network's packets, which are UDP.
pub const DEFAULT_PORT: u16 = crate::lan::PORT;

mod client;
mod frame;
mod guest;
mod holder;
mod mailboxes;
mod probe;
mod server;

pub(crate) use client::Link;
pub use frame::{ClientFrame, No, NoFrame, ServerFrame, VERSION, split};
pub(crate) use guest::ask;
pub(crate) use holder::{Opening, hold};
pub use probe::probe;
pub use server::Server;
