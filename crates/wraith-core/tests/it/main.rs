//! Tests of the core's public interface, one module per behaviour.

mod ack_games;
mod addresses;
mod allocations_of_connections;
mod allocations_of_recovery;
mod allocations_of_streams;
mod candidates;
mod closing;
mod counting;
mod datagrams;
mod half_open;
mod handshake;
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
mod whole_h1s;
