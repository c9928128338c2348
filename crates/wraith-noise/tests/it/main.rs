//! Handshake and packet protection, through the public API.

mod allocation;
mod handshake;
mod malicious_peer;
mod memory;
mod parties;
mod secrets;
