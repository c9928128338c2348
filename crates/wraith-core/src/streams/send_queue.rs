//! A round-robin queue of streams with one kind of frame to send.
//!
//! Invariant: a stream is in the queue exactly when its [`Queued`] flag is set, which is exactly
//! when it has something to send. An empty queue therefore means that nothing is pending. Entering,
//! and leaving from the front, are O(1). Leaving from any other position scans the queue. Only rare
//! events cause such a scan, for instance a reset or a late acknowledgement.

use std::collections::VecDeque;

use super::StreamId;

/// Streams with something to send, in the order of service.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    queue: VecDeque<StreamId>,
}

/// Membership flag of a stream in one queue. The stream holds one per queue.
#[derive(Debug, Default)]
pub(super) struct Queued {
    queued: bool,
}

impl Queued {
    pub(super) fn is_queued(&self) -> bool {
        self.queued
    }
}

impl SendQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the number of streams.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the stream to serve next.
    pub(super) fn front(&self) -> Option<StreamId> {
        self.queue.front().copied()
    }

    /// Moves stream `id`, which was just served, from the front to the back, if it is still queued.
    pub(super) fn rotate(&mut self, id: StreamId) {
        if self.queue.len() > 1 && self.front() == Some(id) {
            self.queue.rotate_left(1);
        }
    }

    /// Enqueues or removes stream `id` with its membership flag `flag`.
    #[inline]
    pub(super) fn set(&mut self, id: StreamId, flag: &mut Queued, queued: bool) {
        if queued == flag.queued {
            return;
        }
        flag.queued = queued;
        if queued {
            self.queue.push_back(id);
        } else if self.front() == Some(id) {
            self.queue.pop_front();
        } else {
            self.queue.retain(|&other| other != id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_take_turns_and_leave_from_anywhere() {
        let mut queue = SendQueue::default();
        let mut flags: Vec<Queued> = (0..4).map(|_| Queued::default()).collect();
        for (i, flag) in flags.iter_mut().enumerate() {
            queue.set(StreamId(i as u64), flag, true);
            queue.set(StreamId(i as u64), flag, true);
        }
        queue.rotate(StreamId(0));
        queue.rotate(StreamId(0));
        assert_eq!(queue.front(), Some(StreamId(1)));
        queue.set(StreamId(2), &mut flags[2], false);
        queue.set(StreamId(1), &mut flags[1], false);
        assert_eq!(queue.queue, [StreamId(3), StreamId(0)]);
    }
}
