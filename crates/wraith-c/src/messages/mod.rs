//! Messages between two who reach each other in any way: handshakes and the sessions they lead to, conversations that last,
//! and single texts.

pub mod fragment;
pub mod handshake;
pub mod prekeys;
pub mod ratchet;
pub mod ratchet_batch;
pub mod sealed_box;
pub mod session;
mod sizes;
pub mod vault;
