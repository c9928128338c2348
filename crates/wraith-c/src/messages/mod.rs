//! Messages over any transport: handshakes and their sessions, long-lived conversations, and single
//! texts.

pub mod fragment;
pub mod handshake;
pub mod prekeys;
pub mod ratchet;
pub mod ratchet_batch;
pub mod sealed_box;
pub mod session;
mod sizes;
pub mod vault;
