//! What the crate does as a whole, over real sockets: a module for each subject.

mod cancelling;
mod codes;
mod contacts;
mod long_codes;
mod own_place;
mod server;
mod store;
mod support;
mod waiting;
