//! The Mainline DHT as a place that stores ([`wraith_discovery::RecordStore`], SPEC §11.8).
//!
//! ```text
//! Dht            the store: which nodes are known, how many operations at once         store.rs, nodes.rs
//! Operation      one get or put, on a socket of its own, which ends with it            operation.rs
//! Lookup         which node to ask next; no I/O, no clock                              lookup.rs
//! krpc           the messages, in bencode                                              krpc.rs, bencode.rs
//! ```
//!
//! It is a client and cannot become anything else: there is no code here that answers a request. Each operation has a socket, a
//! port and node IDs of its own, so nodes cannot tell from those that two operations are of one program, and between operations
//! there is no socket, task or timer.
//!
//! Invariants: every node is hostile. An operation asks at most [`lookup::MAX_ASKED`] nodes whatever they answer, and only addresses
//! where a node may be; an answer counts if it comes from the address that was asked and repeats the transaction ID of that question; a
//! value counts if it verifies under the key that was asked for. IPv4 only.

#![forbid(unsafe_code)]

mod bencode;
mod config;
#[doc(hidden)]
pub mod fuzz;
mod id;
mod krpc;
mod lookup;
mod nodes;
mod operation;
mod seen;
mod store;

pub use config::{DEFAULT_BOOTSTRAP, DhtConfig};
pub use seen::SeenQuestion;
pub use store::{Dht, Traffic};

/// The example of the README, as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
