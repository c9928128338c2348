//! File transfer between two machines: a node with its offers and fetches.
//!
//! ```text
//!   engine threads ──▶ Queue (bounded, never waits) ──▶ one thread a transfer ──▶ callbacks
//!   task on the node's runtime: offer or fetch ──▶ Shared (result, figures) ──▶ wait, progress
//! ```

pub mod event;
pub mod fetch;
pub mod node;
pub mod offer;
mod queue;
pub mod transfer;
