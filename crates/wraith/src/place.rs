//! What a [`MeetingPlace`](crate::MeetingPlace) of one's own is made of.
//!
//! Who waits **announces** a topic, who looks **queries** it; the place carries sealed messages between the two and understands none.
//! One that an application has made goes into [`NodeBuilder::place`](crate::NodeBuilder::place).

pub use wraith_discovery::{
    BoxFuture, ContactTag, End, MAX_MESSAGE_LEN, MAX_NAMEPLATE, MakeQuestion, PlaceCaps, Question,
    Refusal, Reply, Responder, Response, Topic,
};
