//! The sender's side of parallel connections: announces the ports, accepts the connections, and
//! runs a worker on each.

use std::thread::Scope;

use wraith_transport::Endpoint;

use super::offered::Offered;
use super::peer::Peer;
use super::worker;
use crate::error::TransferError;
use crate::limits::PARALLEL_TIMEOUT;
use crate::lock::lock;
use crate::message::{Message, ParallelPorts};
use crate::parallel::access_key;
use crate::stream_kind::StreamKind;

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
    peer.rate.apply_to(&connection);
    // Before the wait for a stream, which the receiver may never permit: the end of the transfer
    // closes the connection.
    if !session.add_connection(endpoint, connection.clone()) {
        return Ok(());
    }
    let stream = session.open_stream(&connection, StreamKind::Data)?;
    worker::help_with_large_file(peer, offered, stream)
}
