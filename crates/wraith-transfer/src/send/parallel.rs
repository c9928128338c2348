//! The sender's side of parallel connections: announces the ports, accepts the connections, and
//! runs a worker on each.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use wraith_transport::Endpoint;

use super::offered::Offered;
use super::peer::Peer;
use super::{open_on, worker};
use crate::error::TransferError;
use crate::limits::{PARALLEL_BYTES_MIN, PARALLEL_RATE, PARALLEL_RTT_MAX, PARALLEL_TIMEOUT};
use crate::lock::lock;
use crate::message::{Message, ParallelPorts};
use crate::parallel::access_key;
use crate::progress::Progress;
use crate::session::Session;
use crate::stream_kind::StreamKind;

/// Minimum interval over which the rate of the first connection is measured.
const RATE_INTERVAL: Duration = Duration::from_millis(100);

/// Decides whether the transfer is worth parallel connections. Workers measure the rate as they
/// write, while a thread waits for the result.
#[derive(Default)]
pub(super) struct Demand {
    is_awaited: AtomicBool,
    state: Mutex<DemandState>,
    changed: Condvar,
}

#[derive(Default)]
struct DemandState {
    /// Start of the current measurement, and the bytes moved by then.
    since: Option<(Instant, u64)>,
    is_worth: bool,
    stopped: bool,
}

impl Demand {
    /// Waits until the connections are worthwhile. Returns false if the transfer ends first.
    fn wait(&self) -> bool {
        let mut state = lock(&self.state);
        self.is_awaited.store(true, Relaxed);
        while !state.is_worth && !state.stopped {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.is_awaited.store(false, Relaxed);
        !state.stopped
    }

    /// Takes a measurement; called by a worker after a write.
    pub(super) fn measure(&self, session: &Session, progress: &Progress) {
        if !self.is_awaited.load(Relaxed) {
            return;
        }
        let (now, moved) = (Instant::now(), session.bytes_moved());
        let mut state = lock(&self.state);
        let Some((since, before)) = state.since else {
            state.since = Some((now, moved));
            return;
        };
        let elapsed = now.saturating_duration_since(since);
        if elapsed < RATE_INTERVAL {
            return;
        }
        state.since = Some((now, moved));
        if is_worth(session, progress, moved.saturating_sub(before), elapsed) {
            state.is_worth = true;
            self.changed.notify_all();
        }
    }

    /// Stops, and wakes all waiting threads.
    pub(super) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }
}

fn is_worth(session: &Session, progress: &Progress, moved: u64, elapsed: Duration) -> bool {
    let enough = u128::from(PARALLEL_RATE) * elapsed.as_micros() / 1_000_000;
    let left = progress.bytes_total().saturating_sub(progress.bytes());
    u128::from(moved) >= enough
        && left >= PARALLEL_BYTES_MIN
        && session.connection.stats().min_rtt <= PARALLEL_RTT_MAX
}

/// Returns the number of parallel connections that both sides want.
pub(super) fn agreed(peer: &Peer<'_>, theirs: Option<u64>) -> usize {
    let theirs = usize::try_from(theirs.unwrap_or(0)).unwrap_or(usize::MAX);
    if peer.rate.is_limited() { 0 } else { peer.parallel.most().min(theirs) }
}

/// Opens `count` parallel connections once they are worthwhile. Returns when they are established
/// or have failed; their workers continue.
pub(super) fn open<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    peer: &'scope Peer<'_>,
    offered: &'scope Offered<'_>,
    count: usize,
) -> Result<(), TransferError> {
    let session = peer.session;
    if !peer.parallel.is_at_once() && !peer.demand.wait() {
        return Ok(());
    }
    let endpoints: Vec<Endpoint> = (0..count).map_while(|_| peer.parallel.bind().ok()).collect();
    if endpoints.is_empty() {
        return Ok(());
    }
    let access_key = access_key(&session.connection);
    for endpoint in &endpoints {
        endpoint.set_access_keys(vec![access_key.clone()]);
    }
    let ports = endpoints.iter().map(|endpoint| endpoint.local_addr().port()).collect();
    lock(&peer.writer).send(session, &Message::ParallelPorts(ParallelPorts { ports }))?;
    for endpoint in endpoints {
        scope.spawn(move || session.run_or_fail(|| serve_parallel(peer, offered, endpoint)));
    }
    Ok(())
}

/// Accepts the receiver on one parallel connection and runs a worker on it.
fn serve_parallel(
    peer: &Peer<'_>,
    offered: &Offered<'_>,
    endpoint: Endpoint,
) -> Result<(), TransferError> {
    let session = peer.session;
    let Some(Some(connection)) = session.wait_meanwhile(PARALLEL_TIMEOUT, endpoint.accept()) else {
        return Ok(());
    };
    // One connection is enough.
    endpoint.set_access_keys(Vec::new());
    if connection.peer() != session.connection.peer() {
        return Ok(());
    }
    let stream = open_on(session, &connection, StreamKind::Data)?;
    peer.rate.apply_to(&connection);
    if !session.add_connection(endpoint, connection) {
        return Ok(());
    }
    worker::help_with_large_file(peer, offered, stream)
}
