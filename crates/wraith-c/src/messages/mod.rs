//! Messages over any transport: handshakes and their sessions, long-lived conversations, and single
//! texts.

mod batch;
pub mod fragment;
pub mod handshake;
pub mod prekeys;
pub mod ratchet;
pub mod sealed_box;
pub mod session;
pub mod vault;
