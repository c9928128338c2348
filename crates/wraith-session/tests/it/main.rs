//! What holds of sessions, seen from outside.

mod handshakes;
mod messages;
mod ratchet;
mod saving;
mod stored;
mod support;
mod vectors;
