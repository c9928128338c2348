//! An event log of a connection, for viewers such as qvis: packets sent, received and lost, and the
//! state of congestion control.
//!
//! The core passes [`Event`]s of fixed size to a [`Sink`] and neither formats nor writes them. A
//! [`SinkFactory`] in the configuration creates one sink per connection. Without a factory, each
//! logging hook costs one comparison. Times never go backwards within a sink. Invariant: an event
//! contains no secret, that is, no key, no NodeId and no content. [`json_seq`] encodes events as
//! text.

mod event;
pub mod json_seq;
mod recorder;

use std::fmt;

use crate::streams::Role;
use crate::{PathAddr, Time};

pub use event::{AckedRanges, CloseKind, Event, FrameKinds, Metrics, StreamFrame};
pub(crate) use recorder::Recorder;

/// Initial parameters of a connection's log.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LogStart {
    /// Start time of the log.
    pub now: Time,
    /// This side's role in the connection.
    pub role: Role,
    /// The peer's address.
    pub remote: PathAddr,
}

impl LogStart {
    /// Creates parameters of a log that begins at `now`, for side `role` with its peer at `remote`.
    pub fn new(now: Time, role: Role, remote: PathAddr) -> Self {
        Self { now, role, remote }
    }
}

/// Receives the events of one connection. Called for every packet on the thread that drives the
/// connection, so it must not block and should not allocate. Dropped with the connection.
pub trait Sink: fmt::Debug + Send {
    /// Records `event`, which happened at `now`.
    fn record(&mut self, now: Time, event: &Event);
}

/// Creates the sinks of an endpoint's connections.
pub trait SinkFactory: fmt::Debug + Send + Sync {
    /// Returns the sink of a new connection, or `None` to log nothing.
    fn sink(&self, start: &LogStart) -> Option<Box<dyn Sink>>;
}
