//! Frames between a relay and its clients, in both directions. Invariant: an accepted frame can be
//! encoded and decoded again.

pub(crate) use wraith_relay::fuzz::frame as run;
