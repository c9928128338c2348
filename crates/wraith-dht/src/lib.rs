//! A client of the Mainline DHT as a record store ([`wraith_discovery::RecordStore`], SPEC §11.8).
//!
//! ```text
//! Dht            the store: known nodes and the limit of concurrent operations         store.rs, nodes.rs
//! Operation      one get or put with its own socket, which closes at its end           operation.rs
//! Lookup         selects the next node to ask; no I/O, no clock                        lookup.rs
//! krpc           the messages, in bencode                                              krpc.rs, bencode.rs
//! ```
//!
//! The crate is a client only: it contains no code that answers a request. Each operation has its
//! own socket, port and node ID. Nodes therefore cannot link two operations of one program by
//! socket, port or node ID. Between operations there is no socket, task or timer.
//!
//! Invariants; every node is considered hostile, and only IPv4 is used:
//!
//! - An operation asks at most [`lookup::MAX_QUERIES`] nodes whatever these answer, and sends only
//!   to addresses where a node may be.
//! - An answer is accepted only if it comes from the queried address and repeats the query's
//!   transaction ID.
//! - A value is accepted only if it verifies under the requested key.

#![forbid(unsafe_code)]

mod address_query;
mod bencode;
mod config;
#[doc(hidden)]
pub mod fuzz;
mod id;
mod krpc;
mod lookup;
mod nodes;
mod operation;
mod shared;
mod store;

pub use address_query::AddressQuery;
pub use config::{DEFAULT_BOOTSTRAP, DhtConfig};
pub use shared::Traffic;
pub use store::Dht;

/// Runs the README example as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
