//! Parallel connections: further connections of one transfer, each with sockets and an I/O thread of its own on both sides
//! (SPEC §10.13).
//!
//! One I/O thread encrypts and sends what one core can. Where both sides have more cores, and the path is not what limits, the
//! chunks of large files are spread over several connections. Everything else stays on the first: control, the manifest, small
//! files, old copies. One that does not come about is done without; one that is lost later ends the transfer as the loss of the
//! first connection does, and it is resumed.

use std::io;
use std::sync::Arc;

use wraith_transport::{Connection, DoorKey, Endpoint};

use crate::limits::PARALLEL_MAX;

/// Makes the socket of one parallel connection.
pub type BindConnection = dyn Fn() -> io::Result<Endpoint> + Send + Sync;

/// Whether and how a side makes parallel connections.
#[derive(Clone, Default)]
pub struct ParallelConnections {
    most: usize,
    at_once: bool,
    bind: Option<Arc<BindConnection>>,
}

impl ParallelConnections {
    /// Up to `most` further connections (at most 3), over sockets that `bind` makes: of a sender such that accept, of a receiver
    /// such that dial, both with the identity of the transfer. They are made when one connection is not enough.
    pub fn new(
        most: usize,
        bind: impl Fn() -> io::Result<Endpoint> + Send + Sync + 'static,
    ) -> Self {
        Self { most: most.min(PARALLEL_MAX), at_once: false, bind: Some(Arc::new(bind)) }
    }

    /// A sender opens them at once, however fast the first connection is and however far the receiver.
    #[must_use]
    pub fn at_once(self) -> Self {
        Self { at_once: true, ..self }
    }

    pub(crate) fn most(&self) -> usize {
        if self.bind.is_some() { self.most } else { 0 }
    }

    pub(crate) fn is_at_once(&self) -> bool {
        self.at_once
    }

    pub(crate) fn bind(&self) -> io::Result<Endpoint> {
        match &self.bind {
            Some(bind) => bind(),
            None => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// What lets the receiver in at a parallel connection's port, and nobody else: it comes from the first connection.
pub(crate) fn door(first: &Connection) -> DoorKey {
    DoorKey::of_connection(&first.path().export_secret(b"wraith/2 parallel connections"))
}

impl std::fmt::Debug for ParallelConnections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParallelConnections").field("most", &self.most()).finish_non_exhaustive()
    }
}
