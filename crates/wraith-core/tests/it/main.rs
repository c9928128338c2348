//! Tests of the core's public interface, one module per behaviour.

mod addresses;
mod allocations_of_connections;
mod allocations_of_recovery;
mod allocations_of_streams;
mod candidates;
mod closing;
mod counting;
mod datagrams;
mod doors;
mod half_open;
mod handshake;
mod handshake_flood;
mod hostile_acks;
mod hostile_peer;
mod hostile_ratchets;
mod hostile_responses;
mod linking;
mod moves;
mod own_controller;
mod pair;
mod qlog;
mod replays;
mod traces;
mod transfer;
