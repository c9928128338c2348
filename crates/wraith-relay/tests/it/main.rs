//! Relays on the loopback interface, with real endpoints at both ends.

mod admission;
mod endpoints;
mod lost_ways;
mod network;
mod operation;
mod support;
