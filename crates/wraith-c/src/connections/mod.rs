//! Raw connections: services, connections to them, and the streams of a connection.
//!
//! ```text
//!   wraith_serve ──▶ service ──accept──▶ connection ──open, accept──▶ stream
//!   wraith_connect ──────────────────────▶ connection
//! ```
//!
//! A call that waits polls its future on the thread of the caller, until the time limit or until
//! its handle is freed. Only finding a service is a task of the node's runtime.
//!
//! Every object keeps the node and what it came from alive, so handles may be freed in any order.

pub mod connection;
pub mod service;
pub mod stream;

use wraith::CloseReason;

use crate::status::Failure;
use crate::status::wraith_status_t::WRAITH_CONNECTION_CLOSED;

/// The failure of a call whose connection has ended.
fn ended(reason: &CloseReason) -> Failure {
    Failure::new(WRAITH_CONNECTION_CLOSED, format!("the connection has ended: {reason}"))
}
