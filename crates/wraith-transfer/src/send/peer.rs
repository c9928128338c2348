//! The receiver as the sender sees it: its connection, the data that may be on the way to it, and
//! its requests.

use std::sync::Mutex;

use super::delta_requests::DeltaRequests;
use super::demand::Demand;
use crate::buffer_pool::BufferPool;
use crate::control::ControlWriter;
use crate::parallel::ParallelConnections;
use crate::rate::Rate;
use crate::session::Session;

/// One receiver; see the module documentation.
pub(crate) struct Peer<'a> {
    pub(super) session: &'a Session,
    pub(super) writer: Mutex<ControlWriter>,
    /// True if it accepts files with a position-free tree.
    pub(super) position_free: bool,
    pub(super) rate: &'a Rate,
    pub(super) parallel: &'a ParallelConnections,
    pub(super) demand: Demand,
    /// The data that it has not acknowledged.
    pub(super) pool: BufferPool,
    /// Its requests for files of which it has old copies.
    pub(super) requests: DeltaRequests,
}

impl Peer<'_> {
    /// Wakes the threads that wait for it.
    pub(super) fn stop(&self) {
        self.requests.stop();
        self.pool.stop();
        self.demand.stop();
    }
}
