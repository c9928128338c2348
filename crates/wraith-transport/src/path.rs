//! How a connection's path is seen and changed by the application.
//!
//! What happens is kept in a short log under the connection's lock; each [`PathEvents`] reads it at its own pace, and misses the oldest if
//! it is slow. Invariant: of any peer's making, the log holds at most [`LOG_MAX`] events.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

use thiserror::Error;
use wraith_core::{CloseReason, ConnectionStats};
use wraith_crypto::identity::NodeId;

use crate::addr::Addr;
use crate::connection::Connection;
use crate::lock::lock;
use crate::shared::ConnectionShared;

/// Events kept for who reads them later: more than happen in a second of a connection that moves all the time.
const LOG_MAX: usize = 32;

/// What happened to the path of a connection, or could become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// Packets go there from now on: the peer moved, or we did, or the path before died. `None` if the mover of that address has
    /// forgotten it.
    Changed(Option<Addr>),
    /// [`PathHandle::move_to`] came to nothing.
    MoveFailed(Option<Addr>),
    /// The peer sees us there.
    Observed(SocketAddr),
    /// The peer says that it may be reached there too. It may be wrong, or lie.
    Candidates(Vec<SocketAddr>),
}

/// Why a connection did not move.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MoveError {
    /// The peer did not answer there, or another move took the place of this one.
    #[error("the peer does not answer at the other address")]
    NoAnswer,
    /// The connection ended.
    #[error("{0}")]
    ConnectionLost(#[from] CloseReason),
}

/// The log, of which each reader knows its place.
#[derive(Debug, Default)]
pub(crate) struct PathLog {
    first: u64,
    events: VecDeque<PathEvent>,
}

impl PathLog {
    pub(crate) fn push(&mut self, event: PathEvent) {
        if self.events.len() == LOG_MAX {
            self.events.pop_front();
            self.first += 1;
        }
        self.events.push_back(event);
    }

    fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    fn next(&self, place: &mut u64) -> Option<PathEvent> {
        let at = (*place).max(self.first);
        let event = self.events.get(usize::try_from(at - self.first).ok()?)?;
        *place = at + 1;
        Some(event.clone())
    }
}

/// What happens to the path of a connection from the call of [`PathHandle::events`] on. Does not keep the connection open.
#[derive(Debug)]
pub struct PathEvents {
    shared: Arc<ConnectionShared>,
    place: u64,
}

impl PathEvents {
    /// Waits for the next event. Of more than 32 that were not read the oldest are missed. Cancel safe.
    pub async fn next(&mut self) -> Result<PathEvent, CloseReason> {
        poll_fn(|cx| {
            let mut state = lock(&self.shared.state);
            if let Some(event) = state.path_log.next(&mut self.place) {
                return Poll::Ready(Ok(event));
            }
            if let Some(reason) = state.ended() {
                return Poll::Ready(Err(reason));
            }
            state.wakers.register(cx);
            Poll::Pending
        })
        .await
    }
}

/// A connection's path, for who sees to it. Does not keep the connection open.
#[derive(Clone, Debug)]
pub struct PathHandle {
    shared: Arc<ConnectionShared>,
}

impl Connection {
    /// What is seen and done of this connection's path.
    pub fn path(&self) -> PathHandle {
        PathHandle { shared: Arc::clone(self.shared()) }
    }
}

impl PathHandle {
    /// Where the peer is now.
    pub fn remote(&self) -> Addr {
        let remote = lock(&self.shared.state).remote.clone();
        remote.expect("a connection is handed out after it was made, and that sets the address")
    }

    /// The peer, authenticated.
    pub fn peer(&self) -> NodeId {
        lock(&self.shared.state).peer
    }

    /// Counters and estimates of the connection. See [`Connection::stats`].
    pub fn stats(&self) -> ConnectionStats {
        self.shared.stats()
    }

    /// What happens to the path from now on.
    pub fn events(&self) -> PathEvents {
        let place = lock(&self.shared.state).path_log.end();
        PathEvents { shared: Arc::clone(&self.shared), place }
    }

    /// Moves to another address of the peer, if it answers there, and returns once that is so. Streams go on all the while. Until then
    /// `to` gets at most eleven datagrams of 1200 bytes: it is for addresses that are known to be the peer's, by a punch for example.
    ///
    /// # Errors
    /// The peer did not answer within some seconds; everything goes on where it was.
    pub async fn move_to(&self, to: impl Into<Addr>) -> Result<(), MoveError> {
        let to = to.into();
        let mut events = self.events();
        lock(&self.shared.state).move_to = Some(to.clone());
        self.shared.mark();
        loop {
            match events.next().await? {
                PathEvent::Changed(at) if at.as_ref() == Some(&to) => return Ok(()),
                PathEvent::MoveFailed(at) if at.is_none() || at.as_ref() == Some(&to) => {
                    return Err(MoveError::NoAnswer);
                }
                _ => {}
            }
        }
    }

    /// Ends the connection as its idle timeout would, now: for who carries the path and knows that nothing gets through any more.
    pub fn give_up(&self) {
        lock(&self.shared.state).path_given_up = true;
        self.shared.mark();
    }

    /// Tells the peer where else we may be reached, the first 16 of `addresses`; takes the place of what was told before.
    pub fn set_candidates(&self, addresses: impl IntoIterator<Item = SocketAddr>) {
        let addresses = addresses.into_iter().collect();
        lock(&self.shared.state).candidates = Some(addresses);
        self.shared.mark();
    }

    /// Where else the peer says it may be reached, as of now.
    pub fn peer_candidates(&self) -> Vec<SocketAddr> {
        lock(&self.shared.state).peer_candidates.clone()
    }

    /// 32 bytes that both sides of this connection compute from the same `context`, and nobody else can.
    pub fn export_secret(&self, context: &[u8]) -> [u8; 32] {
        let state = lock(&self.shared.state);
        let exporter = state.exporter.as_ref();
        exporter
            .expect("a connection is handed out after it was made, and that sets it")
            .secret(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_reader_misses_the_oldest_and_each_reads_for_itself() {
        let event = |port| PathEvent::Observed(SocketAddr::from(([192, 0, 2, 1], port)));
        let mut log = PathLog::default();
        log.push(event(1));
        let (mut quick, mut slow) = (0, 0);
        assert_eq!(log.next(&mut quick), Some(event(1)));
        assert_eq!(log.next(&mut quick), None);
        (2..=50).for_each(|port| log.push(event(port)));
        assert_eq!((log.next(&mut slow), log.events.len()), (Some(event(19)), LOG_MAX));
        assert_eq!(log.next(&mut slow), Some(event(20)));
        let mut late = log.end();
        assert_eq!(log.next(&mut late), None);
    }
}
