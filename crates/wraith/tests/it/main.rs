//! Integration tests of the library as an application uses it: real sockets on loopback, real
//! files, a real rendezvous server, and the examples run against each other.

mod async_io;
mod carriers;
mod consent;
mod contacts;
mod dropping;
mod errors;
mod events;
mod examples;
mod odd_streams;
mod offers;
mod own_place;
mod raw;
mod resuming;
mod runtimes;
mod serialized;
mod services;
mod stopping;
mod support;
