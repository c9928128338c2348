//! The core as its users see it, one module a behaviour.

mod addresses;
mod allocations_of_connections;
mod allocations_of_recovery;
mod allocations_of_streams;
mod closing;
mod counting;
mod datagrams;
mod half_open;
mod handshake;
mod own_controller;
mod pair;
mod qlog;
mod traces;
mod transfer;
