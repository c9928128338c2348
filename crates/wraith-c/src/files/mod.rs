//! File transfer between two machines: a node with its offers and fetches.
//!
//! ```text
//!   transfer engine ──Events (bounded)──▶ one callback thread per transfer ──▶ callbacks
//!   task on the node's runtime ──result, progress──▶ context ──▶ functions of C that wait or read
//! ```
//!
//! The task runs one offer (sending) or fetch (receiving). The engine never waits for a callback:
//! if the callbacks are slow, the oldest event is dropped.

pub(crate) mod callback_thread;
pub(crate) mod context;
pub mod event;
pub mod fetch;
pub mod node;
pub mod offer;
pub mod progress;
pub mod transfer;
