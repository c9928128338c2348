//! State shared by the application's handles and the I/O thread: an endpoint, its doors, their
//! connections, their streams, and the list of objects that the thread must visit.
//!
//! A request is a field of the shared state, set under its lock; [`IoInbox`] then lists the object.
//! The I/O thread answers by changing the state, and wakes the tasks that wait for that kind of
//! change after the lock is released, once per round. Invariant: an object is in the inbox at most
//! once, and its flag is cleared before its state is read, so no request is missed.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use wraith_core::{
    AccessKey, ClockDifference, CloseReason, ConnectionHandle, ConnectionStats, Door, DoorId,
    Exporter, Role, StreamId, Suite,
};
use wraith_crypto::identity::NodeId;

use crate::addr::Addr;
use crate::error::ConnectError;
use crate::lock::{WakeBatch, Wakers, lock};
use crate::path_log::PathLog;
use crate::punch_request::{PunchCommand, PunchShared};
use crate::queue::{RecvQueue, SendQueue};
use crate::spare::Spare;
use crate::wake::{Inbox, InboxMark};

/// An object with work for the I/O thread.
#[derive(Debug)]
pub(crate) enum InboxItem {
    /// A connection's state holds a request, or its last handle was dropped.
    Connection(Arc<ConnectionShared>),
    /// A stream's queue has bytes, room, or an end.
    Stream(StreamRef),
    /// A door's state holds a request, or its last handle was dropped.
    Door(Arc<DoorShared>),
    /// The endpoint's state holds a request.
    Endpoint,
}

/// The inbox of an endpoint.
pub(crate) type IoInbox = Inbox<InboxItem>;
/// Memory of streams that are over.
pub(crate) type SpareStreams = Spare<Arc<StreamShared>>;

/// State shared by all handles of a socket and its I/O thread.
#[derive(Debug)]
pub(crate) struct EndpointShared {
    pub(crate) state: Mutex<EndpointState>,
    pub(crate) inbox: Arc<IoInbox>,
    pub(crate) spare_streams: Arc<SpareStreams>,
    pub(crate) queued: InboxMark,
}

/// The locked state of an endpoint.
#[derive(Debug, Default)]
pub(crate) struct EndpointState {
    /// Number of the last door.
    pub(crate) last_door: u64,
    /// Punch requests that the I/O thread has not taken yet.
    pub(crate) requests: Vec<(PunchCommand, Arc<PunchShared>)>,
    /// The I/O thread has ended.
    pub(crate) stopped: bool,
}

impl EndpointShared {
    pub(crate) fn new(inbox: Arc<IoInbox>) -> Arc<Self> {
        let spare_streams = Arc::default();
        let queued = InboxMark::default();
        Arc::new(Self { state: Mutex::default(), inbox, spare_streams, queued })
    }

    /// Adds the endpoint to the inbox.
    pub(crate) fn notify_io(&self) {
        self.inbox.push(&self.queued, || InboxItem::Endpoint);
    }
}

/// State shared by the handles of a door and the I/O thread.
#[derive(Debug)]
pub(crate) struct DoorShared {
    pub(crate) id: DoorId,
    pub(crate) state: Mutex<DoorState>,
    pub(crate) endpoint: Arc<EndpointShared>,
    pub(crate) queued: InboxMark,
}

/// The locked state of a door.
#[derive(Debug, Default)]
pub(crate) struct DoorState {
    /// Request: open the door with these rules.
    pub(crate) opening: Option<Door>,
    /// Incoming connections that were not accepted yet.
    pub(crate) accepted: VecDeque<Arc<ConnectionShared>>,
    /// Refused handshakes that the application has not read yet.
    pub(crate) clock_differences: VecDeque<ClockDifference>,
    /// A request of [`Endpoint::admit_only`](crate::Endpoint::admit_only) that the I/O thread has
    /// not taken yet.
    pub(crate) admitted: Option<Option<HashSet<NodeId>>>,
    /// A request of [`Endpoint::set_access_keys`](crate::Endpoint::set_access_keys) that the I/O
    /// thread has not taken yet.
    pub(crate) access_keys: Option<Vec<AccessKey>>,
    /// [`Endpoint::close`](crate::Endpoint::close) was called.
    pub(crate) closing: bool,
    /// [`Endpoint::stop_accepting`](crate::Endpoint::stop_accepting) was called.
    pub(crate) accepts_no_more: bool,
    /// The last handle was dropped.
    pub(crate) released: bool,
    /// All connections of a closing door are over, or the I/O thread has ended.
    pub(crate) stopped: bool,
    pub(crate) wakers: Wakers,
}

impl DoorShared {
    pub(crate) fn new(
        id: DoorId,
        endpoint: Arc<EndpointShared>,
        opening: Option<Door>,
    ) -> Arc<Self> {
        let state = Mutex::new(DoorState { opening, ..DoorState::default() });
        Arc::new(Self { id, state, endpoint, queued: InboxMark::default() })
    }

    /// Adds the door to the inbox. Returns false if the I/O thread has ended.
    pub(crate) fn notify_io(self: &Arc<Self>) -> bool {
        self.endpoint.inbox.push(&self.queued, || InboxItem::Door(Arc::clone(self)))
    }

    /// Changes the state, and adds all waiting tasks to `wakes`.
    pub(crate) fn update(&self, wakes: &mut WakeBatch, change: impl FnOnce(&mut DoorState)) {
        let mut state = lock(&self.state);
        change(&mut state);
        wakes.take_from(&mut state.wakers);
    }
}

/// Maximum number of unread reports about clocks; later ones are dropped.
pub(crate) const CLOCK_DIFFERENCES_MAX: usize = 16;

/// Maximum number of unreliable datagrams queued in one direction: 16 ms of a fast link; more would
/// only be late.
pub(crate) const DATAGRAMS_MAX: usize = 256;

/// Phase of a connection.
#[derive(Debug)]
pub(crate) enum Phase {
    /// The I/O thread has not taken it yet. Holds the addresses to try, and the access key.
    New(Vec<Addr>, AccessKey),
    /// Addresses are being tried.
    Connecting,
    /// Streams can be used.
    Open(ConnectionHandle),
    /// It could not be established. Holds the error until it is taken.
    Failed(Option<ConnectError>),
    /// It has ended.
    Closed(CloseReason),
}

/// State shared by the handles of a connection and the I/O thread.
#[derive(Debug)]
pub(crate) struct ConnectionShared {
    /// The door by which the peer came, or whose handle dialled.
    pub(crate) door: DoorId,
    pub(crate) state: Mutex<ConnectionState>,
    /// Whether it is in the inbox.
    pub(crate) queued: InboxMark,
    pub(crate) inbox: Arc<IoInbox>,
    spare_streams: Arc<SpareStreams>,
}

/// The locked state of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    pub(crate) phase: Phase,
    pub(crate) peer: NodeId,
    pub(crate) remote: Option<Addr>,
    /// Address at which the peer sees this side, once it has reported it.
    pub(crate) observed: Option<SocketAddr>,
    pub(crate) stats: ConnectionStats,
    /// Largest datagram that the path and the peer accept now.
    pub(crate) datagram_max: usize,
    /// Streams opened by the peer and not accepted yet; the core bounds them by `streams_max`.
    pub(crate) accepted: VecDeque<StreamRef>,
    /// Credit for streams of this side.
    pub(crate) credit: StreamCredit,
    /// Streams of this side, in order, that the core has not opened yet.
    pub(crate) new_streams: Vec<StreamRef>,
    /// Request: a task waits for a higher stream limit.
    pub(crate) stream_wanted: bool,
    /// Received datagrams that were not read yet.
    pub(crate) datagrams_in: VecDeque<Bytes>,
    /// Datagrams to send.
    pub(crate) datagrams_out: VecDeque<Bytes>,
    /// Request: migrate to this address.
    pub(crate) migrate_to: Option<Addr>,
    /// Request: send these addresses to the peer.
    pub(crate) candidates: Option<Vec<SocketAddr>>,
    /// Further addresses reported by the peer.
    pub(crate) peer_candidates: Vec<SocketAddr>,
    /// Log of path events.
    pub(crate) path_log: PathLog,
    /// Source of secrets shared with the peer, once connected.
    pub(crate) exporter: Option<Exporter>,
    /// AEAD suite of the packets, once connected.
    pub(crate) suite: Option<Suite>,
    /// Request: limit the send rate.
    pub(crate) rate_limit: Option<u64>,
    /// Request: end the connection because its path is dead.
    pub(crate) path_given_up: bool,
    /// Request: close now, with this code and reason.
    pub(crate) close: Option<(u64, String)>,
    /// The last handle was dropped.
    pub(crate) abandoned: bool,
    /// Tasks that wait for a stream of the peer.
    pub(crate) accept_wakers: Wakers,
    /// Tasks that wait for a higher stream limit.
    pub(crate) open_wakers: Wakers,
    /// Tasks that wait for a datagram.
    pub(crate) datagram_wakers: Wakers,
    /// Tasks that wait for another phase, or for a path event.
    pub(crate) wakers: Wakers,
}

/// Credit for the streams that this side may open. A caller takes a stream by counting it; the core
/// opens the same streams in the same order, as soon as the I/O thread finds them in
/// [`ConnectionState::new_streams`]. Invariant: `opened <= limit`, so that the core can always
/// open them.
#[derive(Debug)]
pub(crate) struct StreamCredit {
    pub(crate) role: Role,
    /// Number of streams that callers have taken.
    pub(crate) opened: u64,
    /// The peer's limit of that number.
    pub(crate) limit: u64,
}

impl ConnectionShared {
    pub(crate) fn new(
        door: DoorId,
        phase: Phase,
        peer: NodeId,
        endpoint: &EndpointShared,
    ) -> Arc<Self> {
        let state = ConnectionState {
            phase,
            peer,
            remote: None,
            observed: None,
            stats: ConnectionStats::default(),
            datagram_max: 0,
            accepted: VecDeque::new(),
            credit: StreamCredit { role: Role::Initiator, opened: 0, limit: 0 },
            new_streams: Vec::new(),
            stream_wanted: false,
            datagrams_in: VecDeque::new(),
            datagrams_out: VecDeque::new(),
            migrate_to: None,
            candidates: None,
            peer_candidates: Vec::new(),
            path_log: PathLog::default(),
            exporter: None,
            suite: None,
            rate_limit: None,
            path_given_up: false,
            close: None,
            abandoned: false,
            accept_wakers: Wakers::default(),
            open_wakers: Wakers::default(),
            datagram_wakers: Wakers::default(),
            wakers: Wakers::default(),
        };
        let (inbox, queued) = (Arc::clone(&endpoint.inbox), InboxMark::default());
        let spare_streams = Arc::clone(&endpoint.spare_streams);
        Arc::new(Self { door, state: Mutex::new(state), queued, inbox, spare_streams })
    }

    /// Takes the next stream of this side. Pending while the peer's limit is reached.
    pub(crate) fn poll_open(
        self: &Arc<Self>,
        cx: &Context<'_>,
    ) -> Poll<Result<StreamRef, CloseReason>> {
        self.inbox.relay.pass_on();
        let mut state = lock(&self.state);
        if let Some(reason) = state.ended() {
            return Poll::Ready(Err(reason));
        }
        let Phase::Open(handle) = state.phase else {
            unreachable!("a connection is handed out after it was made")
        };
        let StreamCredit { role, opened, limit } = &mut state.credit;
        if opened < limit {
            let stream = self.new_stream(StreamId::new(*role, *opened), handle);
            *opened += 1;
            state.new_streams.push(stream.clone());
            return Poll::Ready(Ok(stream));
        }
        state.open_wakers.register(cx);
        let notify_io = !std::mem::replace(&mut state.stream_wanted, true);
        drop(state);
        if notify_io {
            self.notify_io();
        }
        Poll::Pending
    }

    /// Ready with what `next` takes from the state, or with the reason of the end. Until then, the
    /// task is one of `wakers`.
    pub(crate) fn poll_next<T>(
        &self,
        cx: &Context<'_>,
        next: impl FnOnce(&mut ConnectionState) -> Option<T>,
        wakers: impl FnOnce(&mut ConnectionState) -> &mut Wakers,
    ) -> Poll<Result<T, CloseReason>> {
        self.inbox.relay.pass_on();
        let mut state = lock(&self.state);
        if let Some(next) = next(&mut state) {
            return Poll::Ready(Ok(next));
        }
        if let Some(reason) = state.ended() {
            return Poll::Ready(Err(reason));
        }
        wakers(&mut state).register(cx);
        Poll::Pending
    }

    /// Returns a stream, in the memory of an earlier one if there is any.
    pub(crate) fn new_stream(&self, id: StreamId, handle: ConnectionHandle) -> StreamRef {
        if let Some(mut spare) = self.spare_streams.pop()
            && let Some(stream) = Arc::get_mut(&mut spare)
        {
            (stream.id, stream.connection) = (id, handle);
            return StreamRef(Some(spare));
        }
        StreamRef(Some(Arc::new(StreamShared {
            id,
            connection: handle,
            send: Mutex::default(),
            recv: Mutex::default(),
            queued: InboxMark::default(),
            inbox: Arc::clone(&self.inbox),
            spare_streams: Arc::clone(&self.spare_streams),
        })))
    }

    /// Adds this connection to the inbox. Returns false if the I/O thread has ended.
    pub(crate) fn notify_io(self: &Arc<Self>) -> bool {
        self.inbox.push(&self.queued, || InboxItem::Connection(Arc::clone(self)))
    }

    /// Returns the latest counters, and requests newer ones for the next call.
    pub(crate) fn stats(self: &Arc<Self>) -> ConnectionStats {
        let stats = lock(&self.state).stats;
        self.notify_io();
        stats
    }

    /// I/O thread: changes the state, and adds to `wakes` the tasks that wait for another phase or
    /// for a path event; if the connection has ended, all waiting tasks.
    pub(crate) fn update(&self, wakes: &mut WakeBatch, change: impl FnOnce(&mut ConnectionState)) {
        let state = &mut *lock(&self.state);
        change(state);
        wakes.take_from(&mut state.wakers);
        if state.ended().is_some() {
            wakes.take_from(&mut state.accept_wakers);
            wakes.take_from(&mut state.open_wakers);
            wakes.take_from(&mut state.datagram_wakers);
        }
    }

    /// Returns whether it has ended or could not be established.
    pub(crate) fn is_over(&self) -> bool {
        matches!(lock(&self.state).phase, Phase::Closed(_) | Phase::Failed(_))
    }
}

impl ConnectionState {
    /// I/O thread: queues a received datagram; drops the oldest if the queue is full.
    pub(crate) fn push_datagram(&mut self, datagram: Bytes) {
        if self.datagrams_in.len() == DATAGRAMS_MAX {
            self.datagrams_in.pop_front();
        }
        self.datagrams_in.push_back(datagram);
    }

    /// Returns the reason of the end, if the connection has ended.
    pub(crate) fn ended(&self) -> Option<CloseReason> {
        match &self.phase {
            Phase::Closed(reason) => Some(reason.clone()),
            Phase::Failed(_) => Some(CloseReason::Local),
            Phase::New(..) | Phase::Connecting | Phase::Open(_) => None,
        }
    }
}

/// Held by every handle of a connection and its streams; the drop of the last one abandons the
/// connection.
#[derive(Debug)]
pub(crate) struct ConnectionGuard(pub(crate) Arc<ConnectionShared>);

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.abandoned = true;
        // Unaccepted streams end with the connection; free their memory now.
        let unaccepted = std::mem::take(&mut state.accepted);
        drop(state);
        drop(unaccepted);
        self.0.notify_io();
    }
}

/// State shared by the handles of a stream and the I/O thread.
#[derive(Debug)]
pub(crate) struct StreamShared {
    pub(crate) id: StreamId,
    pub(crate) connection: ConnectionHandle,
    pub(crate) send: Mutex<SendQueue>,
    pub(crate) recv: Mutex<RecvQueue>,
    /// Whether it is in the inbox.
    pub(crate) queued: InboxMark,
    inbox: Arc<IoInbox>,
    spare_streams: Arc<SpareStreams>,
}

impl StreamShared {
    /// Wakes the tasks that the I/O thread has left to this one. The caller holds no lock.
    #[inline]
    pub(crate) fn pass_on_wakes(&self) {
        self.inbox.relay.pass_on();
    }
}

/// A reference to the shared state of a stream. The drop of the last one keeps the memory for
/// another stream of the endpoint.
#[derive(Clone, Debug)]
pub(crate) struct StreamRef(Option<Arc<StreamShared>>);

impl StreamRef {
    /// Adds this stream to the inbox.
    pub(crate) fn notify_io(&self) {
        self.inbox.push(&self.queued, || InboxItem::Stream(self.clone()));
    }

    /// Adds this stream, whose message is complete, to the inbox, or sends the message on this
    /// thread. The caller holds no lock.
    pub(crate) fn notify_io_of_message(&self) {
        self.inbox.push_and_run(&self.queued, || InboxItem::Stream(self.clone()));
    }
}

impl Deref for StreamRef {
    type Target = StreamShared;

    fn deref(&self) -> &StreamShared {
        self.0.as_ref().expect("only a drop takes it")
    }
}

impl Drop for StreamRef {
    fn drop(&mut self) {
        let Some(mut stream) = self.0.take() else { return };
        if Arc::strong_count(&stream) > 1 {
            return;
        }
        // If two owners drop it at the same time, neither is the last, and the memory is freed.
        let Some(last) = Arc::get_mut(&mut stream) else { return };
        last.send.get_mut().unwrap_or_else(PoisonError::into_inner).renew();
        last.recv.get_mut().unwrap_or_else(PoisonError::into_inner).renew();
        last.queued.clear();
        let spare_streams = Arc::clone(&last.spare_streams);
        spare_streams.push(stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wraith_core::Time;
    use wraith_crypto::SecretIdentity;

    #[test]
    fn a_connection_that_outlives_the_io_thread_keeps_neither_itself_nor_the_inbox() {
        let inbox = Arc::new(IoInbox::new().unwrap());
        let reason = Phase::Closed(CloseReason::Local);
        let endpoint = EndpointShared::new(Arc::clone(&inbox));
        let connection = ConnectionShared::new(DoorId::FIRST, reason, NodeId([1; 32]), &endpoint);
        drop(endpoint);
        connection.notify_io();
        drop(inbox.close());
        connection.queued.clear();
        // As a late close, or a request for statistics.
        connection.notify_io();
        drop(connection);
        assert_eq!(Arc::strong_count(&inbox), 1);
    }

    #[test]
    fn the_memory_of_a_stream_serves_the_next_one_until_the_io_thread_ends() {
        let inbox = Arc::new(IoInbox::new().unwrap());
        let endpoint = EndpointShared::new(Arc::clone(&inbox));
        let spare = Arc::clone(&endpoint.spare_streams);
        let reason = Phase::Closed(CloseReason::Local);
        let connection = ConnectionShared::new(DoorId::FIRST, reason, NodeId([1; 32]), &endpoint);
        drop(endpoint);
        let config = wraith_core::EndpointConfig::new(SecretIdentity::from_seed([1; 32]));
        let peer = config.identity.node_id();
        let handle = wraith_core::Endpoint::new(config, [1; 32])
            .connect(
                Time::ZERO,
                SocketAddr::from(([127, 0, 0, 1], 9)),
                peer,
                &AccessKey::public(peer),
            )
            .unwrap();
        let stream =
            |sequence| connection.new_stream(StreamId::new(Role::Initiator, sequence), handle);
        let first = stream(0);
        let (address, second) = (std::ptr::from_ref::<StreamShared>(&first), first.clone());
        drop(first);
        assert_ne!(std::ptr::from_ref::<StreamShared>(&stream(1)), address);
        drop(second);
        assert_eq!(std::ptr::from_ref::<StreamShared>(&stream(2)), address);
        let last = stream(3);
        spare.close();
        drop(last);
        drop(connection);
        assert_eq!((Arc::strong_count(&inbox), Arc::strong_count(&spare)), (1, 1));
    }
}
