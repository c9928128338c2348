//! Frames between a relay and its clients, either way: what is understood can be said again.

pub(crate) use wraith_relay::fuzz::frame as run;
