//! Relays on loopback, with real endpoints at both ends, and rendezvous servers.

mod admission;
mod endpoints;
mod lost_paths;
mod network;
mod observed_addresses;
mod operation;
mod proxy;
mod rendezvous;
mod support;
mod through_proxy;
