//! The core over simulated links, one module a behaviour.

mod asymmetric;
mod beyond_32_bits;
mod blackhole;
mod closing;
mod corruption;
mod credit;
mod determinism;
mod ecn;
mod flood;
mod forwarder;
mod handshake_losses;
mod hostile_peers;
mod key_phases;
mod loss_reordering_duplication;
mod many_clients;
mod moves;
mod mtu;
mod nat_rebinding;
mod nat_traversal;
mod replay;
mod satellite;
mod silence;
mod slow_reader;
mod streams;
mod swarm;
mod ten_gigabit;
