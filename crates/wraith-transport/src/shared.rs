//! What the handles of an application and the I/O thread share: an endpoint, its connections, their streams, and the list
//! that says which of them the thread must look at.
//!
//! A request is a field of the shared state, set under its lock; [`IoInbox`] then names the object. The I/O thread answers
//! by changing the state, and wakes everyone who waits for a change after the lock is gone. Invariant: an object stands in
//! the inbox at most once, and its flag is cleared before its state is read, so no request is missed.

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use wraith_core::{
    CloseReason, ConnectionHandle, ConnectionStats, DoorKey, Exporter, StreamId, Suite,
};
use wraith_crypto::identity::NodeId;

use crate::addr::Addr;
use crate::error::ConnectError;
use crate::lock::{Wakers, lock};
use crate::path::PathLog;
use crate::punch::{PunchShared, Request};
use crate::queue::{RecvQueue, SendQueue};
use crate::wake::Inbox;

/// An object with work for the I/O thread.
#[derive(Debug)]
pub(crate) enum Ready {
    /// A connection's state holds a request, or its last handle is gone.
    Connection(Arc<ConnectionShared>),
    /// A stream's queue has bytes, room, or an end.
    Stream(Arc<StreamShared>),
    /// The endpoint closes or was released.
    Endpoint,
}

/// The inbox of an endpoint.
pub(crate) type IoInbox = Inbox<Ready>;

/// What the handles of an endpoint and its I/O thread share.
#[derive(Debug)]
pub(crate) struct EndpointShared {
    pub(crate) state: Mutex<EndpointState>,
    pub(crate) inbox: Arc<IoInbox>,
    queued: AtomicBool,
}

/// The part of an endpoint under the lock.
#[derive(Debug, Default)]
pub(crate) struct EndpointState {
    /// Incoming connections nobody took yet.
    pub(crate) accepted: VecDeque<Arc<ConnectionShared>>,
    /// A wish of [`Endpoint::admit_only`](crate::Endpoint::admit_only) that the I/O thread has not seen yet.
    pub(crate) admitted: Option<Option<HashSet<NodeId>>>,
    /// A wish of [`Endpoint::set_doors`](crate::Endpoint::set_doors), likewise.
    pub(crate) doors: Option<Vec<DoorKey>>,
    /// Paths to find that the I/O thread has not seen yet.
    pub(crate) requests: Vec<(Request, Arc<PunchShared>)>,
    /// [`Endpoint::close`](crate::Endpoint::close) was called.
    pub(crate) closing: bool,
    /// The last endpoint handle is gone.
    pub(crate) released: bool,
    /// The I/O thread ended.
    pub(crate) stopped: bool,
    pub(crate) wakers: Wakers,
}

impl EndpointShared {
    pub(crate) fn new(inbox: Arc<IoInbox>) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), inbox, queued: AtomicBool::new(false) })
    }

    /// Has the I/O thread look at the endpoint.
    pub(crate) fn mark(&self) {
        self.inbox.push(&self.queued, || Ready::Endpoint);
    }

    /// I/O thread: looks at the state now; later changes mark it again.
    pub(crate) fn unmark(&self) {
        self.queued.store(false, Ordering::Release);
    }

    /// I/O thread: changes the state, then wakes everyone who waits for a change.
    pub(crate) fn update<R>(&self, change: impl FnOnce(&mut EndpointState) -> R) -> R {
        let mut state = lock(&self.state);
        let result = change(&mut state);
        let wakers = state.wakers.take();
        drop(state);
        wakers.wake();
        result
    }
}

/// Unreliable datagrams that wait in one direction: 16 ms of a fast link; more would only be late.
pub(crate) const DATAGRAMS_MAX: usize = 256;

/// Where a connection stands.
#[derive(Debug)]
pub(crate) enum Phase {
    /// The I/O thread has not seen it yet; these are the addresses to try, and the door.
    New(Vec<Addr>, DoorKey),
    /// Addresses are being tried.
    Connecting,
    /// Streams can be used.
    Open(ConnectionHandle),
    /// It could not be made; the reason until somebody took it.
    Failed(Option<ConnectError>),
    /// It ended.
    Closed(CloseReason),
}

/// What the handles of a connection and the I/O thread share.
#[derive(Debug)]
pub(crate) struct ConnectionShared {
    pub(crate) state: Mutex<ConnectionState>,
    /// Stands in the inbox.
    queued: AtomicBool,
    pub(crate) inbox: Arc<IoInbox>,
}

/// The part of a connection under the lock.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    pub(crate) phase: Phase,
    pub(crate) peer: NodeId,
    pub(crate) remote: Option<Addr>,
    /// Where the peer sees us, once it has said so.
    pub(crate) observed: Option<SocketAddr>,
    pub(crate) stats: ConnectionStats,
    /// Largest datagram the path and the peer take now.
    pub(crate) datagram_max: usize,
    /// Streams the peer opened, not accepted yet; the core bounds them by `streams_max`.
    pub(crate) accepted: VecDeque<Arc<StreamShared>>,
    /// Streams opened for [`Connection::open_stream`](crate::Connection::open_stream), not taken yet.
    pub(crate) opened: VecDeque<Arc<StreamShared>>,
    /// Callers of [`Connection::open_stream`](crate::Connection::open_stream) that wait.
    pub(crate) opens_wanted: usize,
    /// Datagrams received, not read yet.
    pub(crate) datagrams_in: VecDeque<Bytes>,
    /// Datagrams to send.
    pub(crate) datagrams_out: VecDeque<Bytes>,
    /// Move there.
    pub(crate) move_to: Option<Addr>,
    /// Tell the peer these.
    pub(crate) candidates: Option<Vec<SocketAddr>>,
    /// What the peer told.
    pub(crate) peer_candidates: Vec<SocketAddr>,
    /// What happened to the path.
    pub(crate) path_log: PathLog,
    /// What secrets shared with the peer are made from, once it is connected.
    pub(crate) exporter: Option<Exporter>,
    /// What packets are sealed with, likewise.
    pub(crate) suite: Option<Suite>,
    /// Send no faster than this from now on.
    pub(crate) rate_limit: Option<u64>,
    /// The path is known to be dead.
    pub(crate) path_given_up: bool,
    /// Close now, with this code and reason.
    pub(crate) close: Option<(u64, String)>,
    /// No handle is left.
    pub(crate) abandoned: bool,
    pub(crate) wakers: Wakers,
}

impl ConnectionShared {
    pub(crate) fn new(phase: Phase, peer: NodeId, inbox: Arc<IoInbox>) -> Arc<Self> {
        let state = ConnectionState {
            phase,
            peer,
            remote: None,
            observed: None,
            stats: ConnectionStats::default(),
            datagram_max: 0,
            accepted: VecDeque::new(),
            opened: VecDeque::new(),
            opens_wanted: 0,
            datagrams_in: VecDeque::new(),
            datagrams_out: VecDeque::new(),
            move_to: None,
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
        Arc::new(Self { state: Mutex::new(state), queued: AtomicBool::new(false), inbox })
    }

    /// Has the I/O thread look at this connection.
    pub(crate) fn mark(self: &Arc<Self>) {
        self.inbox.push(&self.queued, || Ready::Connection(Arc::clone(self)));
    }

    /// Counters as of now, and newer ones for who asks next.
    pub(crate) fn stats(self: &Arc<Self>) -> ConnectionStats {
        let stats = lock(&self.state).stats;
        self.mark();
        stats
    }

    /// I/O thread: looks at the state now; later changes mark it again.
    pub(crate) fn unmark(&self) {
        self.queued.store(false, Ordering::Release);
    }

    /// I/O thread: changes the state, then wakes everyone who waits for a change.
    pub(crate) fn update<R>(&self, change: impl FnOnce(&mut ConnectionState) -> R) -> R {
        let mut state = lock(&self.state);
        let result = change(&mut state);
        let wakers = state.wakers.take();
        drop(state);
        wakers.wake();
        result
    }

    /// True once it ended or could not be made.
    pub(crate) fn is_over(&self) -> bool {
        matches!(lock(&self.state).phase, Phase::Closed(_) | Phase::Failed(_))
    }
}

impl ConnectionState {
    /// I/O thread: queues a received datagram; the oldest gives way.
    pub(crate) fn push_datagram(&mut self, datagram: Bytes) {
        if self.datagrams_in.len() == DATAGRAMS_MAX {
            self.datagrams_in.pop_front();
        }
        self.datagrams_in.push_back(datagram);
    }

    /// I/O thread: streams to open now.
    pub(crate) fn unmet_opens(&self) -> usize {
        self.opens_wanted.saturating_sub(self.opened.len())
    }

    /// Why nothing more happens here, if so.
    pub(crate) fn ended(&self) -> Option<CloseReason> {
        match &self.phase {
            Phase::Closed(reason) => Some(reason.clone()),
            Phase::Failed(_) => Some(CloseReason::Local),
            Phase::New(..) | Phase::Connecting | Phase::Open(_) => None,
        }
    }
}

/// What every handle of a connection and its streams holds; the drop of the last one abandons the connection.
#[derive(Debug)]
pub(crate) struct Guard(pub(crate) Arc<ConnectionShared>);

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.abandoned = true;
        // Streams nobody took go with the connection; their memory need not wait for it.
        state.accepted.clear();
        drop(state);
        self.0.mark();
    }
}

/// What the handles of a stream and the I/O thread share.
#[derive(Debug)]
pub(crate) struct StreamShared {
    pub(crate) id: StreamId,
    pub(crate) connection: ConnectionHandle,
    pub(crate) send: Mutex<SendQueue>,
    pub(crate) recv: Mutex<RecvQueue>,
    /// Stands in the inbox.
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

    /// Has the I/O thread look at this stream.
    pub(crate) fn mark(self: &Arc<Self>) {
        self.inbox.push(&self.queued, || Ready::Stream(Arc::clone(self)));
    }

    /// I/O thread: looks at the queues now; later changes mark it again.
    pub(crate) fn unmark(&self) {
        self.queued.store(false, Ordering::Release);
    }
}
