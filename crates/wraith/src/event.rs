//! What happens while something is sent or received, told twice: to an [`Observer`], at once and without loss, on whatever
//! thread it happens; and as a stream of owned [`Event`]s ([`Events`]), whose reader may be slow.
//!
//! Invariant: telling never waits. A stream that is not read forgets its oldest events and says how many
//! ([`Event::Lagged`]); its last item, [`Event::Done`] or [`Event::Failed`], is never forgotten and comes exactly once.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use wraith_crypto::NodeId;
use wraith_discovery::{Code, Place, PlaceError};
use wraith_files::{Change, Tree};
use wraith_transfer::{FileStatus, SendReport};

use crate::state::Keeper;
use crate::{Addr, Error, Route, Suite};

/// Events that wait for a reader of a stream; of more, the oldest go.
const QUEUED_MAX: usize = 1024;

/// What is offered, as the sender says before anything moves.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferInfo {
    /// The first name, escaped for a terminal; for show only.
    pub name: String,
    /// Regular files.
    pub files: u64,
    /// Folders.
    pub folders: u64,
    /// Symbolic links.
    pub links: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes of the largest file.
    pub largest: u64,
    /// Entries of the tree that cannot be sent and are in none of these counts.
    pub left_out: u64,
    /// It is one stream of bytes, whose size is 0 where it is not known.
    pub is_stream: bool,
}

impl From<&wraith_transfer::Offer> for OfferInfo {
    fn from(offer: &wraith_transfer::Offer) -> Self {
        Self {
            name: offer.name.clone(),
            files: offer.files,
            folders: offer.dirs,
            links: offer.links,
            bytes: offer.bytes,
            largest: offer.largest,
            left_out: offer.left_out.unwrap_or(0),
            is_stream: offer.stream.unwrap_or(false),
        }
    }
}

/// Where two sides found each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundAt {
    /// At an address that was known.
    Address,
    /// At a meeting place.
    Place(Place),
}

/// Something that happened. Variants get added.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub enum Event {
    /// Somebody proved the words of the code; the ticket is theirs, and good for nobody else.
    CodeUsed {
        /// Where.
        place: Place,
        /// Who it says it is; only that identity can fetch.
        peer: NodeId,
    },
    /// Somebody tried the code with wrong words at this place: it is burned.
    CodeBurned(Place),
    /// There is a long code beside the short one, or in its place: it needs no common network and no server.
    LongCode(Code),
    /// The code's time is up, and nobody came.
    CodeExpired,
    /// Nobody can come from this place at present; it is tried again.
    PlaceLost {
        /// The place.
        place: Place,
        /// Why.
        why: PlaceError,
    },
    /// Somebody can come from this place again.
    PlaceBack(Place),
    /// The code was used before, by this side; it goes on with what it brought.
    Resumed,
    /// The other side was found.
    Met(FoundAt),
    /// Both sides have authenticated each other, and the peer may have what is offered.
    Connected {
        /// Who.
        peer: NodeId,
        /// Where.
        remote: Addr,
        /// What packets are sealed with; the keys come from X25519 and ML-KEM-768 together
        /// ([`KEY_AGREEMENT`](crate::KEY_AGREEMENT)).
        suite: Suite,
    },
    /// The session goes another way from now on; or it still goes through a relay, and why.
    Path {
        /// Who.
        peer: NodeId,
        /// Where.
        remote: Addr,
        /// Which way that is.
        route: Route,
        /// Why nothing better than the relay was found, in words; `None` where the path has changed.
        why: Option<String>,
    },
    /// What is offered.
    Offered(OfferInfo),
    /// The receiver accepted.
    Accepted,
    /// A file is settled.
    File {
        /// Its path in the offer, escaped for a terminal.
        path: String,
        /// What became of it.
        status: FileStatus,
        /// Its bytes.
        bytes: u64,
        /// The BLAKE3 of its content, where it is known.
        root: Option<[u8; 32]>,
        /// Of a file of which its sender says that it has 16 GiB of holes or more, in place of `root`: the root of its
        /// position-free tree, which is not its BLAKE3.
        position_free_root: Option<[u8; 32]>,
        /// What had happened to it at the sender, where that is why it did not arrive.
        change: Option<Change>,
    },
    /// Something to know that stops nothing.
    Note {
        /// The path it is about, escaped.
        path: String,
        /// What, in words.
        what: String,
    },
    /// Nothing of this run can be remembered, and why in words: the same another time does not continue it.
    Unremembered(String),
    /// The connection was lost; the other side is looked for again, or waited for.
    Lost {
        /// How, in words.
        why: String,
        /// How long this side goes on trying.
        seconds_left: u64,
    },
    /// Somebody came with a ticket that a code brought to another machine, and got nothing.
    Stranger,
    /// A listener that asks has refused one more offer of a stranger without asking, because there were too many.
    RefusedUnread {
        /// So many since it began.
        total: u64,
    },
    /// The receiver has only looked at the offer, which stays good.
    OnlyLooked,
    /// Nobody new can come with the code, for this reason; who is being served still is.
    NobodyNew(Error),
    /// A receiver has confirmed everything it could be sent.
    Sent {
        /// The transfer's own report.
        report: Arc<SendReport>,
        /// Bytes settled on its last connection.
        bytes: u64,
    },
    /// The receiver's receipt is in this file now ([`crate::OfferBuilder::receipt`]).
    ReceiptKept(PathBuf),
    /// It could not be written, for this reason.
    ReceiptLost(String),
    /// One of several receivers has everything; the next is waited for.
    Served {
        /// Receivers that have everything.
        done: u32,
        /// How many are wanted, if there is an end.
        of: Option<u32>,
    },
    /// A receiver came back on another connection, which is served in place of its earlier one.
    Replaced,
    /// The contacts of a listener have changed; there are so many now.
    ContactsChanged(usize),
    /// One of several receivers did not get everything; the others are served all the same.
    ReceiverFailed(Error),
    /// The reader of this stream was too slow for so many events.
    Lagged(u64),
    /// The end: everything is done and confirmed. Nothing follows.
    Done,
    /// The end: it failed. Nothing follows.
    Failed(Error),
}

impl Event {
    fn is_last(&self) -> bool {
        matches!(self, Self::Done | Self::Failed(_))
    }

    /// The owned form of an event of the transfer; `None` for what only an [`Observer`] is told.
    fn of(event: &wraith_transfer::Event<'_>) -> Option<Self> {
        use wraith_transfer::Event as Transfer;
        Some(match event {
            Transfer::Connected { peer, remote, suite, .. } => {
                Self::Connected { peer: *peer, remote: remote.clone(), suite: *suite }
            }
            Transfer::Offer(offer) => Self::Offered((*offer).into()),
            Transfer::Accepted => Self::Accepted,
            Transfer::File { path, status, bytes, root, change, .. } => {
                let root_of = |tree| root.filter(|(of, _)| *of == tree).map(|(_, root)| root);
                Self::File {
                    path: path.to_string(),
                    status: *status,
                    bytes: *bytes,
                    root: root_of(Tree::Blake3),
                    position_free_root: root_of(Tree::PositionFree),
                    change: *change,
                }
            }
            Transfer::Note { path, what } | Transfer::LeftOut { path, what, .. } => {
                Self::Note { path: path.to_string(), what: what.to_string() }
            }
            _ => return None,
        })
    }
}

/// Told everything as it happens. Called from several threads, often at the same time; it must not block for long.
pub trait Observer: Send + Sync + 'static {
    /// Something happened. `receiver` says to which of several receivers.
    fn event(&self, receiver: Option<u64>, event: &Event);

    /// Something happened within a transfer, with everything that is known of it and nothing copied. Told as an owned
    /// [`Event`] unless this is overridden.
    fn transfer_event(&self, receiver: Option<u64>, event: &wraith_transfer::Event<'_>) {
        if let Some(event) = Event::of(event) {
            self.event(receiver, &event);
        }
    }
}

/// Spreads what happens to the observer and to the streams.
#[derive(Default)]
pub(crate) struct Hub {
    observer: OnceLock<Arc<dyn Observer>>,
    streams: Mutex<Streams>,
    /// The end was told: what a thread that winds up still says is of no interest.
    is_over: AtomicBool,
}

#[derive(Default)]
struct Streams {
    readers: Vec<Weak<Mutex<Queue>>>,
    /// For the first reader, who gets the handle only after the work has begun: everything from the beginning, unless an
    /// observer hears it or nobody came before it was full.
    first: Option<Arc<Mutex<Queue>>>,
    last: Option<Event>,
}

impl Streams {
    /// Nobody has asked for the beginning in time: no more is kept of it.
    fn forget_unread(&mut self) {
        if self.first.as_ref().is_some_and(|first| lock(first).events.len() >= QUEUED_MAX) {
            self.first = None;
        }
    }
}

impl Hub {
    pub(crate) fn new(observer: Option<Arc<dyn Observer>>) -> Self {
        let hub = Self::default();
        match observer {
            Some(observer) => hub.observe(observer),
            None => {
                let first = Arc::default();
                let mut streams = lock(&hub.streams);
                streams.readers.push(Arc::downgrade(&first));
                streams.first = Some(first);
            }
        }
        hub
    }

    /// Tells `observer` from now on, if there is none yet.
    pub(crate) fn observe(&self, observer: Arc<dyn Observer>) {
        // Whoever was first stays.
        let _ = self.observer.set(observer);
        lock(&self.streams).first = None;
    }

    pub(crate) fn tell(&self, event: Event) {
        self.tell_of(None, event);
    }

    pub(crate) fn tell_of(&self, receiver: Option<u64>, event: Event) {
        if self.is_over.load(Relaxed) {
            return;
        }
        if let Some(observer) = self.observer.get() {
            observer.event(receiver, &event);
        }
        self.push(|| Some(event));
    }

    /// Tells what a keeper of receipts has to say of an event of the transfer.
    pub(crate) fn keep(
        &self,
        keeper: &Option<Keeper>,
        receiver: Option<u64>,
        event: &wraith_transfer::Event<'_>,
    ) {
        match keeper.as_ref().and_then(|keeper| keeper.tell(event)) {
            Some(Ok(place)) => self.tell_of(receiver, Event::ReceiptKept(place)),
            Some(Err(why)) => self.tell_of(receiver, Event::ReceiptLost(why)),
            None => {}
        }
    }

    pub(crate) fn tell_transfer(&self, receiver: Option<u64>, event: &wraith_transfer::Event<'_>) {
        if self.is_over.load(Relaxed) {
            return;
        }
        if let Some(observer) = self.observer.get() {
            observer.transfer_event(receiver, event);
        }
        // Owned only if somebody reads it.
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

    /// The last event, if there was none yet: nothing is told after it, and whoever opens a stream later gets it alone.
    pub(crate) fn end(&self, result: Result<(), Error>) {
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
            observer.event(None, &last);
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

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub")
            .field("observed", &self.observer.get().is_some())
            .finish_non_exhaustive()
    }
}

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
        // The last one has a place of its own beside the bound.
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

/// A stream of what happens, which ends after [`Event::Done`] or [`Event::Failed`]. Reading it drives nothing:
/// the transfer goes on whether it is read or not.
#[derive(Debug)]
pub struct Events {
    queue: Arc<Mutex<Queue>>,
}

impl Events {
    /// The next event; `None` after the last. Cancel-safe: an event that was not returned is not lost.
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

/// Plain queues and lists; a panic elsewhere leaves nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[tokio::test]
    async fn a_slow_reader_hears_what_it_missed_and_always_the_end() {
        let hub = Hub::default();
        let mut events = hub.subscribe();
        for _ in 0..QUEUED_MAX + 7 {
            hub.tell(Event::Accepted);
        }
        hub.end(Ok(()));
        assert!(matches!(events.next().await, Some(Event::Lagged(7))));
        for _ in 0..QUEUED_MAX {
            assert!(matches!(events.next().await, Some(Event::Accepted)));
        }
        assert!(matches!(events.next().await, Some(Event::Done)));
        assert!(events.next().await.is_none());
    }

    #[tokio::test]
    async fn the_first_reader_misses_nothing_and_the_second_hears_from_now_on() {
        let hub = Hub::new(None);
        hub.tell(Event::Resumed);
        let (mut first, mut second) = (hub.subscribe(), hub.subscribe());
        hub.end(Ok(()));
        assert!(matches!(first.next().await, Some(Event::Resumed)));
        assert!(matches!(first.next().await, Some(Event::Done)));
        assert!(first.next().await.is_none());
        assert!(matches!(second.next().await, Some(Event::Done)));
    }

    #[tokio::test]
    async fn a_beginning_that_nobody_reads_is_not_kept() {
        let hub = Hub::new(None);
        for _ in 0..QUEUED_MAX + 1 {
            hub.tell(Event::Resumed);
        }
        let mut events = hub.subscribe();
        hub.tell(Event::Accepted);
        assert!(matches!(events.next().await, Some(Event::Accepted)));
        let observed = Hub::new(Some(Arc::new(Deaf)));
        observed.tell(Event::Resumed);
        let mut events = observed.subscribe();
        observed.tell(Event::Accepted);
        assert!(matches!(events.next().await, Some(Event::Accepted)));
    }

    struct Deaf;

    impl Observer for Deaf {
        fn event(&self, _: Option<u64>, _: &Event) {}
    }

    #[tokio::test]
    async fn who_comes_after_the_end_gets_the_end_once() {
        let hub = Hub::default();
        hub.end(Err(Error::new(ErrorKind::Other, "cut")));
        hub.end(Ok(()));
        let mut events = hub.subscribe();
        assert!(matches!(events.next().await, Some(Event::Failed(_))));
        assert!(events.next().await.is_none());
    }

    #[tokio::test]
    async fn a_reader_that_waits_is_woken() {
        let hub = Arc::new(Hub::default());
        let mut events = hub.subscribe();
        let reading = tokio::spawn(async move { events.next().await });
        tokio::task::yield_now().await;
        hub.tell(Event::OnlyLooked);
        assert!(matches!(reading.await.unwrap(), Some(Event::OnlyLooked)));
    }
}
