//! Answers of a DHT node, and the values stored under a key. Invariant: every accepted value is
//! within its bounds.

pub(crate) use wraith_dht::fuzz::answer as run;
