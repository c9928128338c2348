//! The thread that calls the callbacks of one transfer or service.
//!
//! It takes the events from the stream of the transfer, which is bounded and drops the oldest. A
//! blocked callback stops nothing else.
//!
//! Invariant: until the handle is freed, the question about an offer and the last event are never
//! dropped. `release` is the last call of all.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use wraith::{Event as LibraryEvent, Events};

use super::context::{Question, TransferContext};
use super::event::Event;
use crate::border::Callbacks;
use crate::status::wraith_status_t::WRAITH_OTHER;
use crate::status::{Failure, Outcome};
use crate::waiting::wait_until;

/// The sources of a callback thread.
pub(crate) struct CallbackThread {
    pub shared: Arc<TransferContext>,
    /// Formats addresses.
    pub node: wraith::Node,
    pub events: Events,
    pub questions: mpsc::UnboundedReceiver<Question>,
    /// Interval of progress events; 0 for none.
    pub progress_ms: u64,
}

/// The next action of the callback thread.
enum CallbackAction {
    Event(Event),
    Question(Question),
    /// No further action follows.
    End,
}

impl CallbackThread {
    /// Starts the thread, which runs until the last event is delivered or the handle is freed.
    pub fn start(self, callbacks: Callbacks) -> Outcome {
        let thread = thread::Builder::new().name("wraith-events".into());
        let started = thread.spawn(move || {
            let shared = Arc::clone(&self.shared);
            shared.enter_callbacks();
            self.run(&callbacks);
            callbacks.release();
            shared.callbacks_ended.cancel();
        });
        started
            .map(drop)
            .map_err(|error| Failure::new(WRAITH_OTHER, format!("cannot start a thread: {error}")))
    }

    fn run(mut self, callbacks: &Callbacks) {
        let period = Some(self.progress_ms).filter(|ms| *ms > 0).map(Duration::from_millis);
        let next_tick = || Instant::now().checked_add(period?);
        let mut tick = next_tick();
        loop {
            let event = match wait_until(tick, self.next()) {
                Some(CallbackAction::End) => return,
                Some(CallbackAction::Question((offer, answer))) => {
                    // The transfer may have ended meanwhile.
                    let _ = answer.send(callbacks.ask(&offer));
                    continue;
                }
                Some(CallbackAction::Event(event)) => event,
                None => {
                    tick = next_tick();
                    if !self.shared.figures.are_moving() {
                        continue;
                    }
                    let figures = self.shared.figures.read();
                    Event::progress(figures.files, figures.bytes)
                }
            };
            callbacks.report(&event);
            if event.is_last() {
                return;
            }
        }
    }

    /// Waits for the next action: events first, then questions, then the end.
    async fn next(&mut self) -> CallbackAction {
        loop {
            let event = tokio::select! {
                biased;
                () = self.shared.freed.cancelled() => return CallbackAction::End,
                Some(event) = self.events.next() => event,
                Some(question) = self.questions.recv() => return CallbackAction::Question(question),
                result = self.shared.result.get() => match self.event_at_hand() {
                    // It came after the poll above, and before the result.
                    Some(event) => event,
                    None => {
                        let last = match result {
                            Ok(()) => Event::done(),
                            Err(failure) => Event::failed(&failure),
                        };
                        return CallbackAction::Event(last);
                    }
                },
            };
            match event {
                LibraryEvent::Lagged(events) => {
                    return CallbackAction::Event(Event::lagged(events));
                }
                // The final event of the library comes before the result.
                event if event.is_last() => {}
                event => {
                    let event = Event::of(event, |remote| self.node.shown(remote));
                    return CallbackAction::Event(event);
                }
            }
        }
    }

    /// Returns an event that needs no wait.
    fn event_at_hand(&mut self) -> Option<LibraryEvent> {
        wait_until(Some(Instant::now()), self.events.next()).flatten()
    }
}
