//! The queue of a transfer, from the engine threads to the callback thread.
//!
//! Invariant: adding an item never blocks. If the callback thread is too slow, the oldest of
//! [`QUEUED_MAX`] events is dropped and counted. A newer progress replaces an older one. Until the
//! queue is closed, the question about an offer and the last event are never dropped.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::event::{Event, OfferShown};
use crate::border::Answer;

/// Maximum number of queued events.
const QUEUED_MAX: usize = 1024;

/// The next action of the callback thread.
pub enum CallbackAction {
    Event(Event),
    Question(OfferShown, oneshot::Sender<Answer>),
    /// No further action follows.
    End,
}

#[derive(Default)]
pub struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    events: VecDeque<Event>,
    question: Option<(OfferShown, oneshot::Sender<Answer>)>,
    /// The latest progress only.
    progress: Option<Event>,
    lagged: u64,
    last: Option<Event>,
    is_over: bool,
}

impl Queue {
    pub fn push(&self, event: Event) {
        let mut state = self.lock();
        if state.is_over || state.last.is_some() {
            return;
        }
        if event.is_last() {
            state.last = Some(event);
        } else {
            if state.events.len() >= QUEUED_MAX {
                state.events.pop_front();
                state.lagged += 1;
            }
            state.events.push_back(event);
        }
        self.changed.notify_one();
    }

    /// Sets the latest progress; replaces an earlier one that was not taken yet.
    pub fn set_progress(&self, event: Event) {
        self.lock().progress = Some(event);
        self.changed.notify_one();
    }

    /// Queues a question. The returned receiver yields the answer; it fails if the queue closes
    /// before one.
    pub fn push_question(&self, offer: OfferShown) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.lock();
        if !state.is_over {
            state.question = Some((offer, sender));
        }
        self.changed.notify_one();
        receiver
    }

    /// Closes the queue; no further item is taken from it.
    pub fn close(&self) {
        *self.lock() = QueueState { is_over: true, ..QueueState::default() };
        self.changed.notify_one();
    }

    /// Waits for the next item.
    pub fn next(&self) -> CallbackAction {
        let mut state = self.lock();
        loop {
            if state.is_over {
                return CallbackAction::End;
            }
            let lagged = std::mem::take(&mut state.lagged);
            if lagged > 0 {
                return CallbackAction::Event(Event::lagged(lagged));
            }
            if let Some(event) = state.events.pop_front() {
                return CallbackAction::Event(event);
            }
            if let Some((offer, answer)) = state.question.take() {
                return CallbackAction::Question(offer, answer);
            }
            if let Some(event) = state.progress.take() {
                return CallbackAction::Event(event);
            }
            if let Some(event) = state.last.take() {
                state.is_over = true;
                return CallbackAction::Event(event);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::wraith_event_kind_t::{self, *};
    use super::*;
    use tokio::sync::oneshot::error::TryRecvError;

    fn kind(item: CallbackAction) -> Option<wraith_event_kind_t> {
        match item {
            CallbackAction::Event(event) => Some(event.kind),
            CallbackAction::Question(..) | CallbackAction::End => None,
        }
    }

    #[test]
    fn a_slow_reader_loses_the_oldest_events_gets_their_count_and_the_last_event() {
        let queue = Queue::default();
        for files in 0..QUEUED_MAX as u64 + 3 {
            queue.push(Event::progress(files, 0));
        }
        queue.push(Event::done());
        queue.push(Event::progress(0, 0));
        assert_eq!(kind(queue.next()), Some(WRAITH_EVENT_LAGGED));
        for _ in 0..QUEUED_MAX {
            assert_eq!(kind(queue.next()), Some(WRAITH_EVENT_PROGRESS));
        }
        assert_eq!(kind(queue.next()), Some(WRAITH_EVENT_DONE));
        assert!(matches!(queue.next(), CallbackAction::End));
    }

    #[test]
    fn a_newer_progress_replaces_an_older_one() {
        let queue = Queue::default();
        queue.set_progress(Event::progress(1, 1));
        queue.set_progress(Event::progress(2, 2));
        queue.push(Event::done());
        assert_eq!(kind(queue.next()), Some(WRAITH_EVENT_PROGRESS));
        assert_eq!(kind(queue.next()), Some(WRAITH_EVENT_DONE));
    }

    #[test]
    fn a_question_to_a_closed_queue_fails_at_once() {
        let (open, closed) = (Queue::default(), Queue::default());
        let mut waiting = open.push_question(offer());
        assert!(waiting.try_recv().is_err_and(|error| error == TryRecvError::Empty));
        open.close();
        assert!(waiting.try_recv().is_err_and(|error| error == TryRecvError::Closed));
        closed.close();
        assert!(
            closed
                .push_question(offer())
                .try_recv()
                .is_err_and(|error| error == TryRecvError::Closed)
        );
    }

    fn offer() -> OfferShown {
        let event = wraith::OfferMessage::default();
        OfferShown { sender: [0; 32], info: (&event).into() }
    }
}
