//! Relays on the loopback interface, with real endpoints at both ends.

mod endpoints;
mod support;
