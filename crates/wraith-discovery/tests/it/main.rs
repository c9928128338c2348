//! Behaviour of the whole crate over real sockets, one module per subject.

mod cancelling;
mod codes;
mod contacts;
mod long_codes;
mod nearby;
mod own_place;
mod store;
mod support;
mod waiting;
