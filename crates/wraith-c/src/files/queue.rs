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
pub enum Item {
    Tell(Event),
    Ask(OfferShown, oneshot::Sender<Answer>),
    /// No further action follows.
    Over,
}

#[derive(Default)]
pub struct Queue {
    inside: Mutex<Inside>,
    changed: Condvar,
}

#[derive(Default)]
struct Inside {
    events: VecDeque<Event>,
    question: Option<(OfferShown, oneshot::Sender<Answer>)>,
    /// The latest progress only.
    progress: Option<Event>,
    lagged: u64,
    last: Option<Event>,
    is_over: bool,
}

impl Queue {
    pub fn tell(&self, event: Event) {
        let mut inside = self.lock();
        if inside.is_over || inside.last.is_some() {
            return;
        }
        if event.is_last() {
            inside.last = Some(event);
        } else {
            if inside.events.len() >= QUEUED_MAX {
                inside.events.pop_front();
                inside.lagged += 1;
            }
            inside.events.push_back(event);
        }
        self.changed.notify_one();
    }

    /// Sets the latest progress; replaces an earlier one that was not taken yet.
    pub fn progress(&self, event: Event) {
        self.lock().progress = Some(event);
        self.changed.notify_one();
    }

    /// Queues a question. The returned receiver yields the answer; it fails if the queue closes
    /// before one.
    pub fn ask(&self, offer: OfferShown) -> oneshot::Receiver<Answer> {
        let (sender, receiver) = oneshot::channel();
        let mut inside = self.lock();
        if !inside.is_over {
            inside.question = Some((offer, sender));
        }
        self.changed.notify_one();
        receiver
    }

    /// Closes the queue; no further item is taken from it.
    pub fn close(&self) {
        *self.lock() = Inside { is_over: true, ..Inside::default() };
        self.changed.notify_one();
    }

    /// Waits for the next item.
    pub fn next(&self) -> Item {
        let mut inside = self.lock();
        loop {
            if inside.is_over {
                return Item::Over;
            }
            let lagged = std::mem::take(&mut inside.lagged);
            if lagged > 0 {
                return Item::Tell(Event::lagged(lagged));
            }
            if let Some(event) = inside.events.pop_front() {
                return Item::Tell(event);
            }
            if let Some((offer, answer)) = inside.question.take() {
                return Item::Ask(offer, answer);
            }
            if let Some(event) = inside.progress.take() {
                return Item::Tell(event);
            }
            if let Some(event) = inside.last.take() {
                inside.is_over = true;
                return Item::Tell(event);
            }
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::wraith_event_kind_t::{self, *};
    use super::*;
    use tokio::sync::oneshot::error::TryRecvError;

    fn kind(item: Item) -> Option<wraith_event_kind_t> {
        match item {
            Item::Tell(event) => Some(event.kind),
            Item::Ask(..) | Item::Over => None,
        }
    }

    #[test]
    fn a_slow_reader_misses_the_oldest_hears_of_it_and_gets_the_last() {
        let queue = Queue::default();
        for files in 0..QUEUED_MAX as u64 + 3 {
            queue.tell(Event::progress(files, 0));
        }
        queue.tell(Event::done());
        queue.tell(Event::progress(0, 0));
        assert_eq!(kind(queue.next()), Some(WRAITH_EVENT_LAGGED));
        for _ in 0..QUEUED_MAX {
            assert_eq!(kind(queue.next()), Some(WRAITH_EVENT_PROGRESS));
        }
        assert_eq!(kind(queue.next()), Some(WRAITH_EVENT_DONE));
        assert!(matches!(queue.next(), Item::Over));
    }

    #[test]
    fn of_progress_the_newest_counts() {
        let queue = Queue::default();
        queue.progress(Event::progress(1, 1));
        queue.progress(Event::progress(2, 2));
        queue.tell(Event::done());
        assert_eq!(kind(queue.next()), Some(WRAITH_EVENT_PROGRESS));
        assert_eq!(kind(queue.next()), Some(WRAITH_EVENT_DONE));
    }

    #[test]
    fn a_question_that_nobody_will_hear_fails_at_once() {
        let (open, closed) = (Queue::default(), Queue::default());
        let mut waiting = open.ask(offer());
        assert!(waiting.try_recv().is_err_and(|error| error == TryRecvError::Empty));
        open.close();
        assert!(waiting.try_recv().is_err_and(|error| error == TryRecvError::Closed));
        closed.close();
        assert!(closed.ask(offer()).try_recv().is_err_and(|error| error == TryRecvError::Closed));
    }

    fn offer() -> OfferShown {
        let event = wraith::OfferMessage::default();
        OfferShown { sender: [0; 32], info: (&event).into() }
    }
}
