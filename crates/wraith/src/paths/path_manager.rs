//! Path management of one connection, from its first path to the best one.
//!
//! While the path leads through a relay, both sides exchange their addresses inside the connection
//! and start hole punching. When a direct path is found, the dialling side moves the connection to
//! it, and the peer follows. (With many ports, the side that probes the ports moves the
//! connection.) Lost packets are retransmitted, so streams notice nothing. If the direct path dies,
//! the connection returns to the relay automatically.
//!
//! Invariant: punching is bounded: [`ATTEMPTS_MAX`] attempts per connection, each bounded by the
//! endpoint.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tracing::debug;
use wraith_relay::RelayClient;
use wraith_transport::{Addr, PathEvent, PathEvents, PathHandle, Role};

use super::SocketPaths;
use super::addresses::in_turn;
use super::symmetric_nat::ProbeBudget;
use crate::event::Event;
use crate::event_publisher::EventPublisher;
use crate::route::PathKind;

/// Start times of the first attempts to replace a relayed path by a direct one, and the interval of
/// later attempts, in seconds. Later attempts are needed because the network may have changed, or
/// because a direct path died. Both sides follow this schedule, and the number of an attempt is
/// part of its secret.
const FIRST_ATTEMPTS: [u64; 4] = [0, 10, 30, 60];
const LATER_ATTEMPTS: u64 = 60;
/// Maximum number of attempts per connection.
const ATTEMPTS_MAX: u64 = 64;
/// How long to wait for the addresses of a peer that has not sent them yet.
const CANDIDATES_WAIT: Duration = Duration::from_secs(4);

const NOT_THROUGH: &str = "the NATs or firewalls between the two let nothing through directly";
const NOT_TOLD: &str = "the other side sent no address of its own";
const NOT_WANTED: &str = "only relays may be used";

/// Manages the path of a connection until the connection ends, without keeping it open. `events`
/// are all events of the path.
pub(super) async fn manage_path(
    paths: SocketPaths,
    path: PathHandle,
    mut events: PathEvents,
    role: Role,
    publisher: Arc<EventPublisher>,
    receiver: Option<u64>,
) {
    let peer = path.peer();
    let report = |remote: Addr, why: Option<&str>| {
        let route = paths.inner.core.routes.route(&remote);
        let why = why.map(str::to_owned);
        publisher.publish_beside(receiver, Event::Path { peer, remote, route, why });
    };
    let improving = improve(&paths, &path, role, &report);
    tokio::pin!(improving);
    let mut is_improving = true;
    let mut relay = paths.inner.relays.owner_of(&path.remote());
    loop {
        tokio::select! {
            event = events.next() => match event {
                Ok(PathEvent::Changed(Some(remote))) => {
                    relay = paths.inner.relays.owner_of(&remote);
                    report(remote, None);
                }
                Ok(_) => {}
                Err(_) => return,
            },
            // Returns both sides to the relay at once, without waiting for an idle timeout.
            () = wait_for_session_loss(&relay) => {
                path.declare_dead();
                relay = None;
            }
            () = &mut improving, if is_improving => is_improving = false,
        }
    }
}

/// Waits until the relay of a path has dropped its session.
async fn wait_for_session_loss(relay: &Option<(RelayClient, u64)>) {
    match relay {
        Some((relay, lost)) => relay.wait_for_session_loss(*lost).await,
        None => std::future::pending().await,
    }
}

/// Finds a direct path for a relayed connection.
async fn improve(
    paths: &SocketPaths,
    path: &PathHandle,
    role: Role,
    report: &impl Fn(Addr, Option<&str>),
) {
    if !paths.allows_direct() {
        if is_relayed(paths, path) {
            report(path.remote(), Some(NOT_WANTED));
        }
        return;
    }
    let (start, mut budget) = (Instant::now(), ProbeBudget::default());
    for attempt in 0..ATTEMPTS_MAX {
        sleep_until(start + due(attempt)).await;
        if !is_relayed(paths, path) {
            continue;
        }
        paths.observe().await;
        let sent = in_turn(paths.addresses(), attempt);
        path.set_candidates(sent.iter().copied());
        let candidates = candidates(path).await;
        let why = if candidates.is_empty() {
            NOT_TOLD
        } else {
            let secret = path.export_secret(format!("punch {attempt}").as_bytes());
            if let Some(best) = paths.punch(secret, role, candidates, None).await {
                // The dialling side moves the connection for both.
                if role == Role::Responder || path.migrate_to(best).await.is_ok() {
                    continue;
                }
                debug!("a punched path carries no full packets");
            }
            NOT_THROUGH
        };
        if !is_relayed(paths, path) {
            continue;
        }
        if attempt == 0 {
            report(path.remote(), Some(why));
        }
        let secret = path.export_secret(format!("punch many {attempt}").as_bytes());
        paths.punch_symmetric(path, &sent, &mut budget, secret, role).await;
    }
}

/// Returns when an attempt begins.
fn due(attempt: u64) -> Duration {
    let first = FIRST_ATTEMPTS.len() as u64;
    let last = FIRST_ATTEMPTS[FIRST_ATTEMPTS.len() - 1];
    Duration::from_secs(match FIRST_ATTEMPTS.get(attempt as usize) {
        Some(at) => *at,
        None => last + (attempt + 1 - first) * LATER_ATTEMPTS,
    })
}

/// Returns the addresses of the peer; waits briefly for them.
async fn candidates(path: &PathHandle) -> Vec<std::net::SocketAddr> {
    let deadline = Instant::now() + CANDIDATES_WAIT;
    let mut events = path.events();
    loop {
        let known = path.peer_candidates();
        if !known.is_empty() {
            return known;
        }
        tokio::select! {
            event = events.next() => if event.is_err() { return Vec::new() },
            () = sleep_until(deadline) => return Vec::new(),
        }
    }
}

fn is_relayed(paths: &SocketPaths, path: &PathHandle) -> bool {
    paths.inner.core.routes.route(&path.remote()).kind == PathKind::Relay
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_start_close_together_and_slow_to_one_a_minute() {
        let all: Vec<_> = (0..7).map(|attempt| due(attempt).as_secs()).collect();
        assert_eq!(all, [0, 10, 30, 60, 120, 180, 240]);
    }
}
