//! One file for each; what it is about is said there.

pub(crate) mod code;
pub(crate) mod dht;
pub(crate) mod frames;
pub(crate) mod handshake;
pub(crate) mod hello;
pub(crate) mod journal;
pub(crate) mod manifest;
pub(crate) mod meeting;
pub(crate) mod message;
pub(crate) mod packet;
pub(crate) mod peer;
pub(crate) mod punch;
pub(crate) mod record;
pub(crate) mod relay;
pub(crate) mod rendezvous;
pub(crate) mod stranger;
pub(crate) mod ticket;
