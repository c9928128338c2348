//! What holds of sessions, seen from outside.

mod handshakes;
mod messages;
mod saving;
mod support;
mod vectors;
