//! The log of a connection's path events.
//!
//! The connection keeps a short log under its lock. Each reader has a position of its own, and
//! misses the oldest events if it reads too slowly. Invariant: the log holds at most [`LOG_MAX`]
//! events, regardless of the peer.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::addr::Addr;

/// Maximum number of logged events: more than a second's worth for a connection that migrates all
/// the time.
const LOG_MAX: usize = 32;

/// An event of a connection's path, or an alternative path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// Packets now go to this address: the peer or this side has moved, or the previous path died.
    /// `None` if the mover has evicted the address.
    Changed(Option<Addr>),
    /// A [`PathHandle::migrate_to`](crate::PathHandle::migrate_to) failed.
    MigrationFailed(Option<Addr>),
    /// The peer reported the address at which it sees this side.
    Observed(SocketAddr),
    /// The peer reported further addresses of its own. They may be wrong or false.
    Candidates(Vec<SocketAddr>),
}

/// The event log; each reader keeps its position.
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

    pub(crate) fn end(&self) -> u64 {
        self.first + self.events.len() as u64
    }

    pub(crate) fn next(&self, position: &mut u64) -> Option<PathEvent> {
        let at = (*position).max(self.first);
        let event = self.events.get(usize::try_from(at - self.first).ok()?)?;
        *position = at + 1;
        Some(event.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_readers_miss_the_oldest_events_and_readers_are_independent() {
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
