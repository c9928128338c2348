//! Parallel connections: additional connections of one transfer, each with its own sockets and I/O
//! thread on both sides (SPEC §10.13).
//!
//! One I/O thread encrypts and sends as much as one core can. If both sides have more cores and the
//! path is not the limit, the chunks of large files are spread over several connections. Everything
//! else stays on the first connection: control, manifest, small files, deltas.
//!
//! If a parallel connection cannot be established, the transfer continues without it. If one is
//! lost later, the transfer ends as if the first connection were lost; the transfer can be resumed.

use std::io;
use std::sync::Arc;

use wraith_transport::{AccessKey, Connection, Endpoint};

use crate::limits::PARALLEL_MAX;

/// Creates the socket of one parallel connection.
pub type BindConnection = dyn Fn() -> io::Result<Endpoint> + Send + Sync;

/// Configures whether and how a side makes parallel connections.
#[derive(Clone, Default)]
pub struct ParallelConnections {
    most: usize,
    at_once: bool,
    bind: Option<Arc<BindConnection>>,
}

impl ParallelConnections {
    /// Allows up to `most` additional connections (at most 3), over sockets from `bind`. A sender's
    /// sockets must accept, a receiver's must dial, both with the identity of the transfer. The
    /// connections are made when one connection is not enough.
    pub fn new(
        most: usize,
        bind: impl Fn() -> io::Result<Endpoint> + Send + Sync + 'static,
    ) -> Self {
        Self { most: most.min(PARALLEL_MAX), at_once: false, bind: Some(Arc::new(bind)) }
    }

    /// Makes a sender open the parallel connections at once, at any speed and round-trip time of
    /// the first connection.
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

/// Returns the access key that admits only this receiver at a parallel connection's port. It is
/// derived from the first connection.
pub(crate) fn access_key(first: &Connection) -> AccessKey {
    AccessKey::of_connection(&first.path().export_secret(b"wraith/2 parallel connections"))
}

impl std::fmt::Debug for ParallelConnections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParallelConnections").field("most", &self.most()).finish_non_exhaustive()
    }
}
