//! Messages between two who reach each other in any way: handshakes, and the sessions they lead to.

pub mod handshake;
pub mod session;
mod sizes;
