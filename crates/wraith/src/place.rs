//! Building blocks for a custom [`MeetingPlace`](crate::MeetingPlace).
//!
//! A waiting side **announces** a topic (the name under which the two sides meet), and a searching
//! side **queries** it. The place carries sealed messages between the two sides and cannot read
//! them. [`NodeBuilder::place`](crate::NodeBuilder::place) adds a custom place to a node.

pub use wraith_discovery::{
    BoxFuture, ContactTag, EndSignal, MAX_MESSAGE_LEN, MAX_NAMEPLATE, MakeQuestion, PlaceCaps,
    Question, Refusal, Reply, Responder, Response, Topic,
};
