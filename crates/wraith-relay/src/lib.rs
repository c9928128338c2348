//! The servers: a relay for two machines that cannot reach each other directly (SPEC §13), and the
//! [`rendezvous`] at which the two sides of a code meet (SPEC §11.5). The crate also has the relay's
//! client.
//!
//! ```text
//! one endpoint ── Relays (its mover) ══ UDP, or TLS ══▶ Server ◀══ UDP, or TLS ══ Relays ── the other endpoint
//! ```
//!
//! The relay forwards sealed packets and cannot read them. Connections, loss recovery and
//! congestion control belong to the two endpoints. [`Server`] is the relay. [`Relays`] and
//! [`RelayClient`] are the client side. [`RelayAddr`] is the address of a waiting peer in a ticket.
//!
//! Invariants:
//!
//! - Over UDP, a sender that is not a client gets no answer. Over TLS, it finds a plain web server.
//! - A client can use up its own limits, but not those of other clients.
//! - Neither side trusts the source address of a datagram.

#![forbid(unsafe_code)]

mod binding;
mod budget;
mod client;
mod error;
mod frame;
mod frame_stream;
#[doc(hidden)]
pub mod fuzz;
mod header;
mod lock;
mod metrics;
mod outbox;
mod proof;
mod random;
pub mod rendezvous;
mod server;
mod tls;
mod wire;

pub use client::{
    ASSOCIATION_HEADER_MAX, Associating, ConnectRelay, KIND, RelayClient, RelayConfig,
    RelayTransport, Relays, Status, UdpAssociation,
};
pub use error::{RelayError, StartError};
pub use frame::{MAILBOX_BYTES, Mailbox, Refusal, VERSION, mailbox_of};
pub use header::{HEADER_BYTES, INNER_MAX};
pub use metrics::Counter;
pub use proof::Token;
pub use server::{Admission, Certificate, Limits, Metrics, Options, Server, Timeouts};
pub use tls::{Pin, PinMismatch};
pub use wraith_discovery::{
    Connect, Connected, Connecting, Direct, RelayAddr, RelayAddrError, Stream,
};

#[cfg(test)]
mod tests;

/// Runs the README example as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
