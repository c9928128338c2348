//! The library as a program uses it: real sockets on loopback, real files, a real rendezvous server, and its examples run
//! against each other.

mod consent;
mod contacts;
mod dropping;
mod errors;
mod events;
mod examples;
mod file_vault;
mod offers;
mod own_place;
mod raw;
mod resuming;
mod runtimes;
mod support;
