//! A connection as the application holds it.
//!
//! [`Connection`] handles and their streams share one [`Guard`]; when the last of them is gone, the I/O thread
//! delivers what was finished and closes. Requests are fields of [`ConnectionState`]; the I/O thread answers by
//! changing it and waking everyone who waits.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use wraith_core::{CloseReason, ConnectionHandle, ConnectionStats};
use wraith_crypto::identity::NodeId;

use crate::error::{ConnectError, DatagramError};
use crate::inbox::{IoInbox, Ready};
use crate::lock::{Wakers, lock};
use crate::stream::{RecvStream, SendStream, StreamShared, handles};

/// Unreliable datagrams that wait in one direction: 16 ms of a fast link; more would only be late.
const DATAGRAMS_MAX: usize = 256;

/// Where a connection stands.
#[derive(Debug)]
pub(crate) enum Phase {
    /// The I/O thread has not seen it yet; these are the addresses to try.
    New(Vec<SocketAddr>),
    /// Addresses are being tried.
    Racing,
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

/// The part under the lock.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    pub(crate) phase: Phase,
    pub(crate) peer: NodeId,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) stats: ConnectionStats,
    /// Streams the peer opened, not accepted yet; the core bounds them by `streams_max`.
    pub(crate) accepted: VecDeque<Arc<StreamShared>>,
    /// Streams opened for [`Connection::open_stream`], not taken yet.
    pub(crate) opened: VecDeque<Arc<StreamShared>>,
    /// Callers of [`Connection::open_stream`] that wait.
    pub(crate) opens_wanted: usize,
    /// Datagrams received, not read yet.
    pub(crate) datagrams_in: VecDeque<Bytes>,
    /// Datagrams to send.
    pub(crate) datagrams_out: VecDeque<Bytes>,
    /// Send no faster than this from now on.
    pub(crate) rate_limit: Option<u64>,
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
            stats: ConnectionStats::default(),
            accepted: VecDeque::new(),
            opened: VecDeque::new(),
            opens_wanted: 0,
            datagrams_in: VecDeque::new(),
            datagrams_out: VecDeque::new(),
            rate_limit: None,
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
    fn ended(&self) -> Option<CloseReason> {
        match &self.phase {
            Phase::Closed(reason) => Some(reason.clone()),
            Phase::Failed(_) => Some(CloseReason::Local),
            Phase::New(_) | Phase::Racing | Phase::Open(_) => None,
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

/// An authenticated, encrypted connection. Clones are handles of the same connection.
///
/// When the last handle of it and of its streams is dropped, streams that were finished are still delivered, then it
/// closes with code 0. [`close`](Self::close) does not wait.
#[derive(Clone)]
pub struct Connection {
    guard: Arc<Guard>,
}

impl Connection {
    pub(crate) fn new(shared: Arc<ConnectionShared>) -> Self {
        Self { guard: Arc::new(Guard(shared)) }
    }

    fn shared(&self) -> &Arc<ConnectionShared> {
        &self.guard.0
    }

    /// Waits for the outcome of the address race.
    pub(crate) async fn connected(self) -> Result<Self, ConnectError> {
        poll_fn(|cx| {
            let mut state = lock(&self.shared().state);
            match &mut state.phase {
                Phase::New(_) | Phase::Racing => {
                    state.wakers.register(cx);
                    Poll::Pending
                }
                Phase::Open(_) => Poll::Ready(Ok(())),
                Phase::Failed(error) => {
                    Poll::Ready(Err(error.take().unwrap_or(ConnectError::EndpointClosed)))
                }
                Phase::Closed(reason) => Poll::Ready(Err(reason.clone().into())),
            }
        })
        .await?;
        Ok(self)
    }

    /// Opens a stream; waits while the peer allows no more. The peer sees it with its first bytes.
    pub async fn open_stream(&self) -> Result<(SendStream, RecvStream), CloseReason> {
        let mut request = OpenRequest { shared: self.shared(), counted: false };
        let stream = poll_fn(|cx| request.poll(cx)).await?;
        Ok(handles(stream, &self.guard))
    }

    /// Ready with the next stream the peer opened.
    pub fn poll_accept_stream(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), CloseReason>> {
        let mut state = lock(&self.shared().state);
        if let Some(stream) = state.accepted.pop_front() {
            drop(state);
            return Poll::Ready(Ok(handles(stream, &self.guard)));
        }
        if let Some(reason) = state.ended() {
            return Poll::Ready(Err(reason));
        }
        state.wakers.register(cx);
        Poll::Pending
    }

    /// Waits for the next stream the peer opens.
    pub async fn accept_stream(&self) -> Result<(SendStream, RecvStream), CloseReason> {
        poll_fn(|cx| self.poll_accept_stream(cx)).await
    }

    /// Queues an unreliable datagram. It is dropped in silence if it is larger than the path carries.
    pub fn send_datagram(&self, datagram: Bytes) -> Result<(), DatagramError> {
        let mut state = lock(&self.shared().state);
        if let Some(reason) = state.ended() {
            return Err(reason.into());
        }
        if state.datagrams_out.len() >= DATAGRAMS_MAX {
            return Err(DatagramError::Full);
        }
        state.datagrams_out.push_back(datagram);
        drop(state);
        self.shared().mark();
        Ok(())
    }

    /// Waits for the next unreliable datagram. If nobody reads them, the oldest are dropped.
    pub async fn read_datagram(&self) -> Result<Bytes, CloseReason> {
        poll_fn(|cx| {
            let mut state = lock(&self.shared().state);
            if let Some(datagram) = state.datagrams_in.pop_front() {
                return Poll::Ready(Ok(datagram));
            }
            if let Some(reason) = state.ended() {
                return Poll::Ready(Err(reason));
            }
            state.wakers.register(cx);
            Poll::Pending
        })
        .await
    }

    /// The authenticated peer.
    pub fn peer(&self) -> NodeId {
        lock(&self.shared().state).peer
    }

    /// Where the peer is now. An IPv4 peer has an IPv4 address, also on a dual-stack socket.
    pub fn remote(&self) -> SocketAddr {
        let remote = lock(&self.shared().state).remote;
        remote.expect("a connection is handed out after it was made, and that sets the address")
    }

    /// Counters and estimates. They are a snapshot: at most 10 ms old while streams make progress, else as of the last
    /// call (which has them refreshed for the next one); final once closed.
    pub fn stats(&self) -> ConnectionStats {
        let stats = lock(&self.shared().state).stats;
        self.shared().mark();
        stats
    }

    /// Sends no faster than so many bytes a second from now on, packets and all; `u64::MAX`: as fast as the path allows.
    pub fn set_rate_limit(&self, bytes_per_second: u64) {
        lock(&self.shared().state).rate_limit = Some(bytes_per_second);
        self.shared().mark();
    }

    /// Closes now: unsent and unread bytes are dropped. To be sure that a stream arrived, wait for
    /// [`acked`](SendStream::acked) first. Codes from 0x100 are the application's; the reason is cut at 512 bytes.
    pub fn close(&self, code: u64, reason: &str) {
        let mut state = lock(&self.shared().state);
        if state.close.is_none() {
            state.close = Some((code, reason.to_owned()));
            drop(state);
            self.shared().mark();
        }
    }

    /// Waits until the connection ended, and says why.
    pub async fn closed(&self) -> CloseReason {
        poll_fn(|cx| {
            let mut state = lock(&self.shared().state);
            match state.ended() {
                Some(reason) => Poll::Ready(reason),
                None => {
                    state.wakers.register(cx);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Why the connection ended, if it did.
    pub fn close_reason(&self) -> Option<CloseReason> {
        lock(&self.shared().state).ended()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("peer", &self.peer()).finish_non_exhaustive()
    }
}

/// A wish for one stream. Streams are not tied to wishes: whoever polls first takes one. The I/O thread opens streams
/// while fewer are `opened` than wishes are open, so a stream that lost its wish serves the next one.
struct OpenRequest<'a> {
    shared: &'a Arc<ConnectionShared>,
    /// Counted in `opens_wanted`.
    counted: bool,
}

impl OpenRequest<'_> {
    fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<Arc<StreamShared>, CloseReason>> {
        let mut state = lock(&self.shared.state);
        if let Some(reason) = state.ended() {
            return Poll::Ready(Err(reason));
        }
        let before = state.unmet_opens();
        let stream = state.opened.pop_front();
        if stream.is_some() == self.counted {
            // A newcomer that must wait joins the count; one of the count that is served leaves it.
            self.counted = !self.counted;
            state.opens_wanted =
                if self.counted { state.opens_wanted + 1 } else { state.opens_wanted - 1 };
        }
        let tell_io = state.unmet_opens() > before;
        let result = match stream {
            Some(stream) => Poll::Ready(Ok(stream)),
            None => {
                state.wakers.register(cx);
                Poll::Pending
            }
        };
        drop(state);
        if tell_io {
            self.shared.mark();
        }
        result
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        if self.counted {
            lock(&self.shared.state).opens_wanted -= 1;
        }
    }
}
