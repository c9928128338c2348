//! File transfer between two machines: a node with its offers and fetches.
//!
//! ```text
//!   transfer engine ──events──▶ Queue (bounded) ──▶ one callback thread per transfer ──▶ callbacks
//!   task on the node's runtime ──result, progress──▶ shared ──▶ functions of C that wait or read
//! ```
//!
//! The task runs one offer (sending) or fetch (receiving). The engine never waits for the queue: if
//! the queue is full, the oldest event is dropped.

pub mod event;
pub mod fetch;
pub mod node;
pub mod offer;
mod queue;
pub mod transfer;
