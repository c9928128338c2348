//! State shared by the application's handles and the I/O thread: an endpoint, its doors, their
//! connections, their streams, and the list of objects that the thread must visit.
//!
//! A request is a field of the shared state, set under its lock; [`IoInbox`] then lists the object.
//! The I/O thread answers by changing the state, and wakes all waiting tasks after the lock is
//! released. Invariant: an object is in the inbox at most once, and its flag is cleared before its
//! state is read, so no request is missed.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use wraith_core::{
    AccessKey, ClockDifference, CloseReason, ConnectionHandle, ConnectionStats, Door, DoorId,
    Exporter, StreamId, Suite,
};
use wraith_crypto::identity::NodeId;

use crate::addr::Addr;
use crate::error::ConnectError;
use crate::lock::{Wakers, lock};
use crate::path::PathLog;
use crate::punch::{PunchCommand, PunchShared};
use crate::queue::{RecvQueue, SendQueue};
use crate::wake::Inbox;

/// An object with work for the I/O thread.
#[derive(Debug)]
pub(crate) enum InboxItem {
    /// A connection's state holds a request, or its last handle was dropped.
    Connection(Arc<ConnectionShared>),
    /// A stream's queue has bytes, room, or an end.
    Stream(Arc<StreamShared>),
    /// A door's state holds a request, or its last handle was dropped.
    Door(Arc<DoorShared>),
    /// The endpoint's state holds a request.
    Endpoint,
}

/// The inbox of an endpoint.
pub(crate) type IoInbox = Inbox<InboxItem>;

/// State shared by all handles of a socket and its I/O thread.
#[derive(Debug)]
pub(crate) struct EndpointShared {
    pub(crate) state: Mutex<EndpointState>,
    pub(crate) inbox: Arc<IoInbox>,
    queued: AtomicBool,
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
        Arc::new(Self { state: Mutex::default(), inbox, queued: AtomicBool::new(false) })
    }

    /// Adds the endpoint to the inbox.
    pub(crate) fn notify_io(&self) {
        self.inbox.push(&self.queued, || InboxItem::Endpoint);
    }

    /// I/O thread: clears the mark before it reads the state; later changes mark it again.
    pub(crate) fn clear_notification(&self) {
        self.queued.store(false, Ordering::Release);
    }
}

/// State shared by the handles of a door and the I/O thread.
#[derive(Debug)]
pub(crate) struct DoorShared {
    pub(crate) id: DoorId,
    pub(crate) state: Mutex<DoorState>,
    pub(crate) endpoint: Arc<EndpointShared>,
    queued: AtomicBool,
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
        Arc::new(Self { id, state, endpoint, queued: AtomicBool::new(false) })
    }

    /// Adds the door to the inbox. Returns false if the I/O thread has ended.
    pub(crate) fn notify_io(self: &Arc<Self>) -> bool {
        self.endpoint.inbox.push(&self.queued, || InboxItem::Door(Arc::clone(self)))
    }

    /// I/O thread: clears the mark before it reads the state; later changes mark it again.
    pub(crate) fn clear_notification(&self) {
        self.queued.store(false, Ordering::Release);
    }

    /// I/O thread: changes the state, then wakes all waiting tasks.
    pub(crate) fn update<R>(&self, change: impl FnOnce(&mut DoorState) -> R) -> R {
        let mut state = lock(&self.state);
        let result = change(&mut state);
        let wakers = state.wakers.take();
        drop(state);
        wakers.wake();
        result
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
    queued: AtomicBool,
    pub(crate) inbox: Arc<IoInbox>,
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
    pub(crate) accepted: VecDeque<Arc<StreamShared>>,
    /// Streams opened for [`Connection::open_stream`](crate::Connection::open_stream) and not taken
    /// yet.
    pub(crate) opened: VecDeque<Arc<StreamShared>>,
    /// Number of waiting [`Connection::open_stream`](crate::Connection::open_stream) calls.
    pub(crate) open_requests: usize,
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
    pub(crate) wakers: Wakers,
}

impl ConnectionShared {
    pub(crate) fn new(door: DoorId, phase: Phase, peer: NodeId, inbox: Arc<IoInbox>) -> Arc<Self> {
        let state = ConnectionState {
            phase,
            peer,
            remote: None,
            observed: None,
            stats: ConnectionStats::default(),
            datagram_max: 0,
            accepted: VecDeque::new(),
            opened: VecDeque::new(),
            open_requests: 0,
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
            wakers: Wakers::default(),
        };
        Arc::new(Self { door, state: Mutex::new(state), queued: AtomicBool::new(false), inbox })
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

    /// I/O thread: clears the mark before it reads the state; later changes mark it again.
    pub(crate) fn clear_notification(&self) {
        self.queued.store(false, Ordering::Release);
    }

    /// I/O thread: changes the state, then wakes all waiting tasks.
    pub(crate) fn update<R>(&self, change: impl FnOnce(&mut ConnectionState) -> R) -> R {
        let mut state = lock(&self.state);
        let result = change(&mut state);
        let wakers = state.wakers.take();
        drop(state);
        wakers.wake();
        result
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

    /// I/O thread: returns the number of streams to open now.
    pub(crate) fn streams_to_open(&self) -> usize {
        self.open_requests.saturating_sub(self.opened.len())
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
        state.accepted.clear();
        drop(state);
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
    queued: AtomicBool,
    inbox: Arc<IoInbox>,
}

impl StreamShared {
    pub(crate) fn new(
        id: StreamId,
        connection: ConnectionHandle,
        inbox: Arc<IoInbox>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id,
            connection,
            send: Mutex::default(),
            recv: Mutex::default(),
            queued: AtomicBool::new(false),
            inbox,
        })
    }

    /// Adds this stream to the inbox.
    pub(crate) fn notify_io(self: &Arc<Self>) {
        self.inbox.push(&self.queued, || InboxItem::Stream(Arc::clone(self)));
    }

    /// I/O thread: clears the mark before it reads the queues; later changes mark it again.
    pub(crate) fn clear_notification(&self) {
        self.queued.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_that_outlives_the_io_thread_keeps_neither_itself_nor_the_inbox() {
        let inbox = Arc::new(IoInbox::new().unwrap());
        let reason = Phase::Closed(CloseReason::Local);
        let connection =
            ConnectionShared::new(DoorId::FIRST, reason, NodeId([1; 32]), Arc::clone(&inbox));
        connection.notify_io();
        drop(inbox.close());
        connection.clear_notification();
        // As a late close, or a request for statistics.
        connection.notify_io();
        drop(connection);
        assert_eq!(Arc::strong_count(&inbox), 1);
    }
}
