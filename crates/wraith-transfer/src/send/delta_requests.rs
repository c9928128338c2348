//! Passes the receiver's requests about delta files from the control stream to the worker that
//! handles the file. A worker with a delta file waits here for the receiver; no worker waits for
//! the receiver anywhere else.
//!
//! Invariant: at most [`DELTA_REQUESTS_WAITING_MAX`] messages of a file are waiting. Beyond that
//! the control stream is not read.

use std::collections::{HashMap, VecDeque};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::limits::DELTA_REQUESTS_WAITING_MAX;
use crate::lock::lock;
use crate::message::{Lack, Refine};

/// A message about one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DeltaRequest {
    Refine(Refine),
    Lack(Lack),
}

impl DeltaRequest {
    fn entry(&self) -> u64 {
        match self {
            Self::Refine(refine) => refine.entry,
            Self::Lack(lack) => lack.entry,
        }
    }
}

/// Waiting messages, by file.
#[derive(Debug, Default)]
pub(crate) struct DeltaRequests {
    state: Mutex<RequestState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct RequestState {
    waiting: HashMap<u64, VecDeque<DeltaRequest>>,
    stopped: bool,
}

impl DeltaRequests {
    /// Accepts messages about this file from now on.
    pub(crate) fn open(&self, entry: u32) {
        lock(&self.state).waiting.insert(entry.into(), VecDeque::new());
    }

    /// Drops the waiting messages of a finished file.
    pub(crate) fn close(&self, entry: u32) {
        lock(&self.state).waiting.remove(&entry.into());
        self.changed.notify_all();
    }

    /// Delivers a message to its worker. A message about a file without a worker is dropped: the
    /// worker may have given up and reported that to the receiver.
    pub(crate) fn deliver(&self, ask: DeltaRequest) {
        let entry = ask.entry();
        let mut state = lock(&self.state);
        while !state.stopped
            && state
                .waiting
                .get(&entry)
                .is_some_and(|waiting| waiting.len() >= DELTA_REQUESTS_WAITING_MAX)
        {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(waiting) = state.waiting.get_mut(&entry) {
            waiting.push_back(ask);
            drop(state);
            self.changed.notify_all();
        }
    }

    /// Returns the next message about this file. `None` once stopped.
    pub(crate) fn next(&self, entry: u32) -> Option<DeltaRequest> {
        let mut state = lock(&self.state);
        loop {
            if state.stopped {
                return None;
            }
            let ask = state.waiting.get_mut(&entry.into())?.pop_front();
            if ask.is_some() {
                drop(state);
                self.changed.notify_all();
                return ask;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Stops, and wakes all waiting threads.
    pub(crate) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lack(entry: u64, upto: u64) -> DeltaRequest {
        DeltaRequest::Lack(Lack { entry, upto, spans: Vec::new() })
    }

    #[test]
    fn messages_reach_only_the_worker_of_their_file() {
        let asks = DeltaRequests::default();
        asks.open(7);
        asks.deliver(lack(8, 1));
        asks.deliver(lack(7, 2));
        asks.deliver(lack(7, 3));
        assert_eq!(asks.next(7), Some(lack(7, 2)));
        assert_eq!(asks.next(7), Some(lack(7, 3)));
        asks.close(7);
        asks.deliver(lack(7, 4));
        assert_eq!(asks.next(7), None);
    }

    #[test]
    fn a_receiver_that_asks_faster_than_it_is_answered_has_to_wait() {
        let asks = DeltaRequests::default();
        asks.open(7);
        let all = DELTA_REQUESTS_WAITING_MAX as u64 * 3;
        std::thread::scope(|scope| {
            scope.spawn(|| (0..all).for_each(|n| asks.deliver(lack(7, n))));
            for n in 0..all {
                assert_eq!(asks.next(7), Some(lack(7, n)));
                assert!(lock(&asks.state).waiting[&7].len() <= DELTA_REQUESTS_WAITING_MAX);
            }
        });
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| asks.next(7));
            asks.stop();
            assert_eq!(waiting.join().unwrap(), None);
        });
    }
}
