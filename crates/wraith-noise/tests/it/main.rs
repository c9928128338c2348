//! The handshake and the packets as their users see them.

mod allocation;
mod handshake;
mod low_order;
mod memory;
mod secrets;
