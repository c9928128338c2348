//! The sender's side of lanes: says where they may come, waits for them, and lets a worker write to each.

use std::collections::HashSet;
use std::sync::Mutex;
use std::thread::{self, Scope};
use std::time::Duration;

use wraith_transport::Endpoint;

use super::{Sending, open_on, worker};
use crate::control::ControlWriter;
use crate::error::TransferError;
use crate::limits::{LANE_BYTES_MIN, LANE_RATE, LANE_RTT_MAX, LANE_TIMEOUT};
use crate::message::{Lanes, Message};
use crate::session::lock;

/// Between two looks at how fast the transfer is.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// How many lanes both sides want.
pub(super) fn agreed(sending: &Sending<'_>, theirs: Option<u64>) -> usize {
    let theirs = usize::try_from(theirs.unwrap_or(0)).unwrap_or(usize::MAX);
    if sending.options.rate.is_limited() { 0 } else { sending.options.lanes.most().min(theirs) }
}

/// Opens `count` lanes when they are worth it. Ends when they stand or do not come about; the workers go on.
pub(super) fn open<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    sending: &'scope Sending<'_>,
    writer: &'scope Mutex<ControlWriter>,
    count: usize,
    stop: impl Fn() + Copy + Send + 'scope,
) -> Result<(), TransferError> {
    let session = sending.session;
    if !wait_until_worth(sending) {
        return Ok(());
    }
    let endpoints: Vec<Endpoint> =
        (0..count).map_while(|_| sending.options.lanes.bind().ok()).collect();
    if endpoints.is_empty() {
        return Ok(());
    }
    let only = HashSet::from([session.connection.peer()]);
    for endpoint in &endpoints {
        endpoint.admit_only(Some(only.clone()));
    }
    let ports = endpoints.iter().map(|endpoint| endpoint.local_addr().port()).collect();
    lock(writer).send(session, &Message::Lanes(Lanes { ports }))?;
    for endpoint in endpoints {
        scope.spawn(move || session.attend(stop, || serve(sending, endpoint)));
    }
    Ok(())
}

/// False if the transfer ends before.
fn wait_until_worth(sending: &Sending<'_>) -> bool {
    let session = sending.session;
    if sending.options.lanes.is_at_once() {
        return !session.is_over();
    }
    let progress = &sending.options.progress;
    let enough = LANE_RATE * LOOK_INTERVAL.as_millis() as u64 / 1000;
    let mut before = session.bytes_moved();
    while !session.is_over() {
        thread::sleep(LOOK_INTERVAL);
        let now = session.bytes_moved();
        let left = progress.bytes_total().saturating_sub(progress.bytes());
        let near = session.connection.stats().min_rtt <= LANE_RTT_MAX;
        if now - before >= enough && left >= LANE_BYTES_MIN && near {
            return true;
        }
        before = now;
    }
    false
}

/// Waits for the receiver on one lane and works on it.
fn serve(sending: &Sending<'_>, endpoint: Endpoint) -> Result<(), TransferError> {
    let session = sending.session;
    let Some(Some(connection)) = session.wait_meanwhile(LANE_TIMEOUT, endpoint.accept())? else {
        return Ok(());
    };
    // One is enough.
    endpoint.admit_only(Some(HashSet::new()));
    if connection.peer() != session.connection.peer() {
        return Ok(());
    }
    let stream = open_on(session, &connection, 2)?;
    sending.options.rate.apply_to(&connection);
    if !session.add_lane(endpoint, connection) {
        return Ok(());
    }
    worker::help(sending, stream)
}
