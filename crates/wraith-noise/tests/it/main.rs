//! Handshake and packet protection, through the public API.

mod allocation;
mod by_hand;
mod handshake;
mod memory;
mod secrets;
