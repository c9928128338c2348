//! Codes: how two people bring a ticket from one machine to the other by saying a nameplate and two words (SPEC §11).
//!
//! The side that made the code is its **creator**, the one that typed it the **joiner**; the ticket is on either side. The
//! exchange is three questions of the joiner with one answer each, the same at every place:
//!
//! ```text
//!   joiner                      creator
//!   hello    ──────────────▶
//!            ◀──────────────    answer       nothing is decided yet
//!   proof    ──────────────▶                 the one guess, and who the joiner is
//!            ◀──────────────    welcome      with the ticket, or who the creator is
//!   ticket   ──────────────▶                 if the joiner has it
//!            ◀──────────────    ack
//! ```
//!
//! [`text`] is the code as people see it, [`pake`] what two words prove, [`message`] the bytes, [`creator`] what may be decided
//! how often, [`long`] the codes that need no server. [`announce`] and [`join`] bring them to all places at once.

mod announce;
mod creator;
mod join;
mod long;
pub mod message;
pub mod pake;
mod state;
mod text;

use std::net::IpAddr;

use thiserror::Error;
use wraith_crypto::NodeId;
use zeroize::Zeroizing;

pub use announce::{CodeAnnouncement, CodeOptions, announce};
pub use creator::{Creator, Judged};
pub use join::{JoinError, Met, NotMet, Spend, join, join_reachable};
pub use long::announce_long;
pub use pake::TicketSide;
pub use state::CodeEvent;
pub use text::{Code, CodeError};

/// Makes the bytes of the ticket for one identity; it is told our address as the place sees it. Called before the ticket leaves:
/// whoever serves it knows for whom it is before that one can come.
pub type MakeTicket = Box<dyn Fn(NodeId, Option<IpAddr>) -> Zeroizing<Vec<u8>> + Send + Sync>;

/// The system has no randomness, so no code can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the system has no randomness")]
pub struct NoRandomness;
