//! Codes: one person tells another a number (the nameplate) and two secret words, and their
//! machines then transfer a ticket (SPEC §11). A ticket is the text with the sender's public key
//! and addresses and the secret of the transfer.
//!
//! The side that made the code is its **creator**; the side that typed it is the **joiner**. Either
//! the creator or the joiner has the ticket. The joiner sends three requests with one response
//! each, the same at every place:
//!
//! ```text
//!   joiner                      creator
//!   hello    ──────────────▶
//!            ◀──────────────    answer       nothing is decided yet
//!   proof    ──────────────▶                 the only guess, and the joiner's identity
//!            ◀──────────────    welcome      the ticket, or the creator's identity
//!   ticket   ──────────────▶                 if the joiner has it
//!            ◀──────────────    ack
//! ```
//!
//! - [`text`]: the code as people see it
//! - [`pake`]: the proof of the words
//! - [`message`]: the encoding
//! - [`creator`]: the limits on guesses and uses
//! - [`long`]: codes that need no server
//! - [`announce`] and [`join`]: the exchange at all places at once

mod announce;
mod attempts;
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
pub use attempts::{JoinError, JoinErrorKind, JoinSuccess};
pub use creator::{Creator, ProofVerdict};
pub use join::{MarkSpent, join};
pub use long::announce_long;
pub use pake::TicketSide;
pub use state::CodeEvent;
pub use text::{Code, CodeError};

/// Makes the bytes of the ticket for one identity. The argument is the address of this machine as
/// the place sees it. Called before the ticket is sent, so the sender can expect this identity
/// before it connects. Returns `None` if the offer has no room for another identity; the code then
/// ends as used. So several codes of one offer share one count.
pub type MakeTicket =
    Box<dyn Fn(NodeId, Option<IpAddr>) -> Option<Zeroizing<Vec<u8>>> + Send + Sync>;

/// The system has no randomness, so no code can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the system has no randomness")]
pub struct NoRandomness;
