//! Relays on loopback, with real endpoints at both ends.

mod admission;
mod by_proxy;
mod endpoints;
mod lost_ways;
mod network;
mod operation;
mod proxy;
mod support;
mod where_seen;
