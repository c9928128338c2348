//! Distributes events to an [`Observer`] and to event streams ([`Events`]).
//!
//! The observer is called at once, for every event, on the thread that reports the event. A stream
//! delivers owned [`Event`]s, and its reader may be slow.
//!
//! Invariant: publishing an event never waits for a reader of a stream. A stream that is not read
//! drops its oldest events and reports their number ([`Event::Lagged`]). Its last item,
//! [`Event::Done`] or [`Event::Failed`], is never dropped and comes exactly once.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use tokio_util::sync::CancellationToken;
use wraith_transfer::TransferError;

use crate::error::Error;
use crate::event::{Event, Observer};
use crate::state::ReceiptWriter;

/// Maximum number of queued events per stream; beyond it, the oldest are dropped.
const QUEUED_MAX: usize = 1024;

/// Publishes events to the observer and to the streams.
#[derive(Default)]
pub(crate) struct EventPublisher {
    observer: OnceLock<Arc<dyn Observer>>,
    streams: Mutex<Streams>,
    /// The final event was published. Later events of threads that are still ending are dropped.
    is_over: AtomicBool,
    /// Cancelled once the observer has panicked in a task beside the transfer.
    observer_panicked: CancellationToken,
}

#[derive(Default)]
struct Streams {
    readers: Vec<Weak<Mutex<Queue>>>,
    /// The queue of the first reader, which gets its handle only after the work has begun. It holds
    /// all events from the beginning. There is none if an observer is set, or once it was full
    /// before a reader came.
    first: Option<Arc<Mutex<Queue>>>,
    last: Option<Event>,
}

impl Streams {
    /// Drops the first queue if it is full: no reader came in time.
    fn forget_unread(&mut self) {
        if self.first.as_ref().is_some_and(|first| lock(first).events.len() >= QUEUED_MAX) {
            self.first = None;
        }
    }
}

impl EventPublisher {
    pub(crate) fn new(observer: Option<Arc<dyn Observer>>) -> Self {
        let publisher = Self::default();
        match observer {
            Some(observer) => publisher.observe(observer),
            None => {
                let first = Arc::default();
                let mut streams = lock(&publisher.streams);
                streams.readers.push(Arc::downgrade(&first));
                streams.first = Some(first);
            }
        }
        publisher
    }

    /// Sets `observer` for all later events, if there is none yet.
    pub(crate) fn observe(&self, observer: Arc<dyn Observer>) {
        // The first observer stays.
        let _ = self.observer.set(observer);
        lock(&self.streams).first = None;
    }

    pub(crate) fn publish(&self, event: Event) {
        self.publish_for(None, event);
    }

    pub(crate) fn publish_for(&self, receiver: Option<u64>, event: Event) {
        if self.is_over.load(Relaxed) {
            return;
        }
        if let Some(observer) = self.observer.get() {
            observer.event(receiver, &event);
        }
        self.push(|| Some(event));
    }

    /// Returns the token that is cancelled once the observer has panicked in a task beside the
    /// transfer.
    pub(crate) fn observer_panicked(&self) -> &CancellationToken {
        &self.observer_panicked
    }

    /// Like [`Self::publish_for`], for a task beside the transfer, which a panic of the observer
    /// would end alone. The panic ends the transfer instead.
    pub(crate) fn publish_beside(&self, receiver: Option<u64>, event: Event) {
        if catch_unwind(AssertUnwindSafe(|| self.publish_for(receiver, event))).is_err() {
            self.observer_panicked.cancel();
        }
    }

    /// Passes a transfer event to the receipt writer and reports the result.
    pub(crate) fn record_receipt(
        &self,
        receipt_writer: &Option<ReceiptWriter>,
        receiver: Option<u64>,
        event: &wraith_transfer::Event<'_>,
    ) {
        match receipt_writer.as_ref().and_then(|receipt_writer| receipt_writer.record_event(event))
        {
            Some(Ok(place)) => self.publish_for(receiver, Event::ReceiptStored(place)),
            Some(Err(why)) => self.publish_for(receiver, Event::ReceiptNotStored(why)),
            None => {}
        }
    }

    pub(crate) fn publish_transfer(
        &self,
        receiver: Option<u64>,
        event: &wraith_transfer::Event<'_>,
    ) {
        if self.is_over.load(Relaxed) {
            return;
        }
        if let Some(observer) = self.observer.get() {
            observer.transfer_event(receiver, event);
        }
        // Builds the owned event only if a stream has a reader.
        self.push(|| Event::of(event));
    }

    fn push(&self, event: impl FnOnce() -> Option<Event>) {
        let mut streams = lock(&self.streams);
        streams.forget_unread();
        streams.readers.retain(|reader| reader.strong_count() > 0);
        if streams.readers.is_empty() {
            return;
        }
        let Some(event) = event() else { return };
        for reader in streams.readers.iter().filter_map(Weak::upgrade) {
            Queue::push(&reader, event.clone());
        }
    }

    /// Publishes the final event, unless there was one already. No event follows it; a stream
    /// opened later gets only this one.
    pub(crate) fn end(&self, result: Result<(), Error>) {
        if let Err(error) = &result
            && let Some(&TransferError::Cancelled { role }) = error.transfer()
        {
            let stopped = Event::Stopped { by: role, seconds_left: None };
            // An observer that panics must not keep the final event from the streams.
            let _ = catch_unwind(AssertUnwindSafe(|| self.publish(stopped)));
        }
        let last = result.map_or_else(Event::Failed, |()| Event::Done);
        if self.is_over.swap(true, Relaxed) {
            return;
        }
        let mut streams = lock(&self.streams);
        if streams.last.is_some() {
            return;
        }
        streams.last = Some(last.clone());
        let readers = std::mem::take(&mut streams.readers);
        drop(streams);
        if let Some(observer) = self.observer.get() {
            // The work may have ended because of an earlier panic of this observer.
            let _ = catch_unwind(AssertUnwindSafe(|| observer.event(None, &last)));
        }
        for reader in readers.iter().filter_map(Weak::upgrade) {
            Queue::push(&reader, last.clone());
        }
    }

    pub(crate) fn subscribe(&self) -> Events {
        let mut streams = lock(&self.streams);
        if let Some(queue) = streams.first.take() {
            return Events { queue };
        }
        let queue = Arc::<Mutex<Queue>>::default();
        match streams.last.clone() {
            Some(last) => Queue::push(&queue, last),
            None => streams.readers.push(Arc::downgrade(&queue)),
        }
        Events { queue }
    }
}

wraith_crypto::redacted_debug!(|it: EventPublisher| observed: it.observer.get().is_some());

#[derive(Debug, Default)]
struct Queue {
    events: VecDeque<Event>,
    lagged: u64,
    is_over: bool,
    waker: Option<Waker>,
}

impl Queue {
    fn push(queue: &Mutex<Self>, event: Event) {
        let mut queue = lock(queue);
        // The final event is not subject to the bound.
        if queue.events.len() >= QUEUED_MAX && !event.is_last() {
            queue.events.pop_front();
            queue.lagged += 1;
        }
        queue.events.push_back(event);
        let waker = queue.waker.take();
        drop(queue);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// A stream of events that ends after [`Event::Done`] or [`Event::Failed`]. The transfer proceeds
/// whether or not the stream is read.
#[derive(Debug)]
pub struct Events {
    queue: Arc<Mutex<Queue>>,
}

impl Events {
    /// Returns the next event, or `None` after the last. Cancel-safe: no event is lost.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let mut queue = lock(&self.queue);
        if queue.lagged > 0 {
            return Poll::Ready(Some(Event::Lagged(std::mem::take(&mut queue.lagged))));
        }
        match queue.events.pop_front() {
            Some(event) => {
                queue.is_over = event.is_last();
                Poll::Ready(Some(event))
            }
            None if queue.is_over => Poll::Ready(None),
            None => {
                queue.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// Ignores poisoning: these are plain queues and lists, and a panic elsewhere leaves none
/// inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[tokio::test]
    async fn a_slow_reader_gets_a_lag_count_and_the_final_event() {
        let publisher = EventPublisher::default();
        let mut events = publisher.subscribe();
        for _ in 0..QUEUED_MAX + 7 {
            publisher.publish(Event::Accepted);
        }
        publisher.end(Ok(()));
        assert!(matches!(events.next().await, Some(Event::Lagged(7))));
        for _ in 0..QUEUED_MAX {
            assert!(matches!(events.next().await, Some(Event::Accepted)));
        }
        assert!(matches!(events.next().await, Some(Event::Done)));
        assert!(events.next().await.is_none());
    }

    #[tokio::test]
    async fn the_first_reader_gets_all_events_and_the_second_only_later_ones() {
        let publisher = EventPublisher::new(None);
        publisher.publish(Event::Resumed);
        let (mut first, mut second) = (publisher.subscribe(), publisher.subscribe());
        publisher.end(Ok(()));
        assert!(matches!(first.next().await, Some(Event::Resumed)));
        assert!(matches!(first.next().await, Some(Event::Done)));
        assert!(first.next().await.is_none());
        assert!(matches!(second.next().await, Some(Event::Done)));
    }

    #[tokio::test]
    async fn unread_first_events_are_dropped() {
        let publisher = EventPublisher::new(None);
        for _ in 0..QUEUED_MAX + 1 {
            publisher.publish(Event::Resumed);
        }
        let mut events = publisher.subscribe();
        publisher.publish(Event::Accepted);
        assert!(matches!(events.next().await, Some(Event::Accepted)));
        let observed = EventPublisher::new(Some(Arc::new(NoopObserver)));
        observed.publish(Event::Resumed);
        let mut events = observed.subscribe();
        observed.publish(Event::Accepted);
        assert!(matches!(events.next().await, Some(Event::Accepted)));
    }

    struct NoopObserver;

    impl Observer for NoopObserver {
        fn event(&self, _: Option<u64>, _: &Event) {}
    }

    #[tokio::test]
    async fn a_reader_after_the_end_gets_the_final_event_once() {
        let publisher = EventPublisher::default();
        publisher.end(Err(Error::new(ErrorKind::Other, "cut")));
        publisher.end(Ok(()));
        let mut events = publisher.subscribe();
        assert!(matches!(events.next().await, Some(Event::Failed(_))));
        assert!(events.next().await.is_none());
    }

    #[tokio::test]
    async fn a_reader_that_waits_is_woken() {
        let publisher = Arc::new(EventPublisher::default());
        let mut events = publisher.subscribe();
        let reading = tokio::spawn(async move { events.next().await });
        tokio::task::yield_now().await;
        publisher.publish(Event::OfferPostponed);
        assert!(matches!(reading.await.unwrap(), Some(Event::OfferPostponed)));
    }
}
