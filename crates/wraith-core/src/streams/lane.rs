//! A queue of streams waiting to put one kind of frame into a packet, taken in turn.
//!
//! Invariant: a stream is in the queue exactly when its ticket says so, and has a ticket exactly when it has
//! something to send. So an empty lane means there is nothing to do. Joining, and leaving from the front, are O(1);
//! leaving from elsewhere scans, which happens only when something rare (a reset, a late acknowledgement) takes the
//! work away.

use std::collections::VecDeque;

use super::StreamId;

/// Streams waiting in turn.
#[derive(Debug, Default)]
pub(super) struct Lane {
    queue: VecDeque<StreamId>,
}

/// Whether a stream waits in a lane.
#[derive(Debug, Default)]
pub(super) struct Ticket {
    waiting: bool,
}

impl Ticket {
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting
    }
}

impl Lane {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whose turn it is.
    pub(super) fn front(&self) -> Option<StreamId> {
        self.queue.front().copied()
    }

    /// Stream `id`, if it is still the front, had its turn.
    pub(super) fn pass(&mut self, id: StreamId) {
        if self.queue.len() > 1 && self.front() == Some(id) {
            self.queue.rotate_left(1);
        }
    }

    /// Makes stream `id`, which owns `ticket`, wait or not.
    #[inline]
    pub(super) fn set(&mut self, id: StreamId, ticket: &mut Ticket, waiting: bool) {
        if waiting == ticket.waiting {
            return;
        }
        ticket.waiting = waiting;
        if waiting {
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
        let mut lane = Lane::default();
        let mut tickets: Vec<Ticket> = (0..4).map(|_| Ticket::default()).collect();
        for (i, ticket) in tickets.iter_mut().enumerate() {
            lane.set(StreamId(i as u64), ticket, true);
            lane.set(StreamId(i as u64), ticket, true);
        }
        lane.pass(StreamId(0));
        lane.pass(StreamId(0));
        assert_eq!(lane.front(), Some(StreamId(1)));
        lane.set(StreamId(2), &mut tickets[2], false);
        lane.set(StreamId(1), &mut tickets[1], false);
        assert_eq!(lane.queue, [StreamId(3), StreamId(0)]);
    }
}
