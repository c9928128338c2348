//! A relay for two machines that cannot reach each other directly, and what they need to use one (SPEC §13).
//!
//! ```text
//! one endpoint ── Relays (its mover) ══ UDP, or TLS ══▶ Server ◀══ UDP, or TLS ══ Relays ── the other endpoint
//! ```
//!
//! The relay passes on sealed packets and understands nothing of them; connections, loss recovery and congestion control are those of the
//! two endpoints. [`Server`] is the relay; [`Relays`] and [`RelayClient`] are for those who use one; [`RelayAddr`] says in a ticket
//! where somebody waits.
//!
//! Invariants: a stranger gets no answer by UDP and a plain web server by TLS; a client can use up what its limits say and
//! nothing of others; neither side believes a datagram's sender by its address.

#![forbid(unsafe_code)]

mod binding;
mod budget;
mod carrier;
mod client;
mod error;
mod frame;
#[doc(hidden)]
pub mod fuzz;
mod header;
mod outbox;
mod proof;
mod random;
mod server;
mod tls;
mod wire;

pub use client::{
    ASSOCIATION_HEADER_MAX, Associating, ConnectRelay, KIND, RelayClient, RelayConfig, Relays,
    Status, UdpAssociation, Way,
};
pub use error::{PinMismatch, RelayError, StartError};
pub use frame::{MAILBOX_BYTES, Mailbox, Refusal, VERSION, mailbox_of};
pub use header::{HEADER_BYTES, INNER_MAX};
pub use proof::Token;
pub use server::{Admission, Certificate, Counter, Limits, Metrics, Options, Server, Timeouts};
pub use tls::Pin;
pub use wraith_discovery::{
    Connect, Connected, Connecting, Direct, RelayAddr, RelayAddrError, Stream,
};

#[cfg(test)]
mod tests;

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
