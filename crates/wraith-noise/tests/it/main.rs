//! The handshake and the packets as their users see them.

mod allocation;
mod by_hand;
mod handshake;
mod memory;
mod secrets;
