//! A queue of streams that have one kind of frame to send, served round robin.
//!
//! Invariant: a stream is in the queue exactly when its [`Queued`] flag says so, and the flag is set exactly when the
//! stream has something to send. So an empty queue means that there is nothing to do. Entering, and leaving from the
//! front, are O(1). Leaving from elsewhere scans the queue; it happens only when something rare (a reset, a late
//! acknowledgement) takes the work away.

use std::collections::VecDeque;

use super::StreamId;

/// Streams with something to send, in the order in which they are served.
#[derive(Debug, Default)]
pub(super) struct SendQueue {
    queue: VecDeque<StreamId>,
}

/// Whether a stream is in a queue; kept by the stream, one for each queue.
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

    /// Streams in it.
    pub(super) fn len(&self) -> usize {
        self.queue.len()
    }

    /// The stream to serve next.
    pub(super) fn front(&self) -> Option<StreamId> {
        self.queue.front().copied()
    }

    /// Moves stream `id`, which was served, from the front to the back, if it is still there.
    pub(super) fn rotate(&mut self, id: StreamId) {
        if self.queue.len() > 1 && self.front() == Some(id) {
            self.queue.rotate_left(1);
        }
    }

    /// Puts stream `id`, whose flag is `flag`, into the queue or takes it out.
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
