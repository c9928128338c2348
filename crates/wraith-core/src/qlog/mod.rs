//! An event log of a connection, for viewers such as qvis: what was sent, received and lost, and what congestion control
//! made of it.
//!
//! The core hands [`Event`]s of fixed size to a [`Sink`] and neither formats nor writes. A [`SinkFactory`] in the
//! configuration makes one sink for each connection; without one, a hook costs one comparison. Times never go backwards
//! within a sink. Nothing secret is in an event: no key, no NodeId, no content. [`json_seq`] turns events into text.

mod event;
pub mod json_seq;
mod recorder;

use std::fmt;

use crate::streams::Role;
use crate::{PathAddr, Time};

pub use event::{AckedRanges, CloseKind, Event, FrameKinds, Metrics, StreamFrame};
pub(crate) use recorder::Recorder;

/// What a connection is when its log begins.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Start {
    /// The first time of the log.
    pub now: Time,
    /// Which side we are.
    pub role: Role,
    /// Where the peer is.
    pub remote: PathAddr,
}

impl Start {
    /// A log that begins at `now`, of the side `role`, whose peer is at `remote`.
    pub fn new(now: Time, role: Role, remote: PathAddr) -> Self {
        Self { now, role, remote }
    }
}

/// Takes the events of one connection. Called on the thread that drives the connection, for every packet: it must not
/// block, and should not allocate. Dropped with the connection.
pub trait Sink: fmt::Debug + Send {
    /// Something happened at `now`.
    fn record(&mut self, now: Time, event: &Event);
}

/// Makes the sinks of an endpoint's connections.
pub trait SinkFactory: fmt::Debug + Send + Sync {
    /// The sink of a connection that begins; `None` if it is not to be logged.
    fn sink(&self, start: &Start) -> Option<Box<dyn Sink>>;
}
