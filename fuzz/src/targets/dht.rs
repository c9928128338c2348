//! What a node of the DHT answers, and what lies there under a key: whatever is believed is within its bounds.

pub(crate) use wraith_dht::fuzz::answer as run;
