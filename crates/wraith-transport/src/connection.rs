//! The application's handle of a connection.
//!
//! [`Connection`] handles and their streams share one [`ConnectionGuard`]. After the last handle is
//! dropped, the I/O thread delivers the finished streams and closes the connection. A request to
//! the I/O thread is a field of [`ConnectionState`](crate::shared::ConnectionState).

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use wraith_core::{CloseReason, ConnectionStats, Suite};
use wraith_crypto::identity::NodeId;

use crate::addr::Addr;
use crate::error::{ConnectError, DatagramError};
use crate::lock::lock;
use crate::shared::{ConnectionGuard, ConnectionShared, ConnectionState, DATAGRAMS_MAX, Phase};
use crate::stream::{RecvStream, SendStream, handles};

/// An authenticated, encrypted connection. Clones are handles of the same connection.
///
/// After the last handle of the connection and of its streams is dropped, finished streams are
/// still delivered. After that, the connection closes with code 0. [`close`](Self::close) does not
/// wait.
#[derive(Clone)]
pub struct Connection {
    guard: Arc<ConnectionGuard>,
}

impl Connection {
    pub(crate) fn new(shared: Arc<ConnectionShared>) -> Self {
        Self { guard: Arc::new(ConnectionGuard(shared)) }
    }

    pub(crate) fn shared(&self) -> &Arc<ConnectionShared> {
        &self.guard.0
    }

    /// Waits for the outcome of the connection race.
    pub(crate) async fn connected(self) -> Result<Self, ConnectError> {
        poll_fn(|cx| {
            let mut state = lock(&self.shared().state);
            match &mut state.phase {
                Phase::New(..) | Phase::Connecting => {
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

    /// Opens a stream; waits while the peer's stream limit is reached. The peer sees the stream
    /// with its first bytes.
    ///
    /// Cancel safe: a future that is dropped has taken no stream.
    pub async fn open_stream(&self) -> Result<(SendStream, RecvStream), CloseReason> {
        let stream = poll_fn(|cx| self.shared().poll_open(cx)).await?;
        Ok(handles(stream, &self.guard))
    }

    /// Polls for the next stream that the peer opened.
    pub fn poll_accept_stream(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), CloseReason>> {
        self.shared()
            .poll_next(cx, |state| state.accepted.pop_front(), |state| &mut state.accept_wakers)
            .map_ok(|stream| handles(stream, &self.guard))
    }

    /// Waits for the next stream that the peer opens. Cancel safe: no stream is lost.
    pub async fn accept_stream(&self) -> Result<(SendStream, RecvStream), CloseReason> {
        poll_fn(|cx| self.poll_accept_stream(cx)).await
    }

    /// Returns the largest datagram that can be sent now, in bytes; 0 if the peer accepts no
    /// datagrams. The value grows with path MTU discovery and falls when the path changes, but not
    /// below 627 bytes unless the peer accepts less. It is at most 10 ms old while streams make
    /// progress.
    pub fn max_datagram_len(&self) -> usize {
        lock(&self.shared().state).datagram_max
    }

    /// Queues an unreliable datagram of at most [`max_datagram_len`](Self::max_datagram_len) bytes.
    /// If the path MTU has fallen by the time it is sent, the datagram is dropped without an error.
    pub fn send_datagram(&self, datagram: Bytes) -> Result<(), DatagramError> {
        let mut state = lock(&self.shared().state);
        if let Some(reason) = state.ended() {
            return Err(reason.into());
        }
        if datagram.len() > state.datagram_max {
            return Err(DatagramError::TooLarge { max: state.datagram_max });
        }
        if state.datagrams_out.len() >= DATAGRAMS_MAX {
            return Err(DatagramError::Full);
        }
        state.datagrams_out.push_back(datagram);
        drop(state);
        self.shared().notify_io();
        Ok(())
    }

    /// Waits for the next unreliable datagram. If the application does not read them, the oldest
    /// are dropped. Cancel safe: no datagram is lost.
    pub async fn read_datagram(&self) -> Result<Bytes, CloseReason> {
        poll_fn(|cx| {
            let next = |state: &mut ConnectionState| state.datagrams_in.pop_front();
            self.shared().poll_next(cx, next, |state| &mut state.datagram_wakers)
        })
        .await
    }

    /// Returns the authenticated peer.
    pub fn peer(&self) -> NodeId {
        lock(&self.shared().state).peer
    }

    /// Returns the AEAD suite of the packets. The keys come from
    /// [`KEY_AGREEMENT`](crate::KEY_AGREEMENT) on every connection.
    pub fn suite(&self) -> Suite {
        let suite = lock(&self.shared().state).suite;
        suite.expect("a connection is handed out after it was made, and that sets it")
    }

    /// Returns the current address of the peer. An IPv4 peer has an IPv4 address, even on a
    /// dual-stack socket.
    pub fn remote(&self) -> Addr {
        let remote = lock(&self.shared().state).remote.clone();
        remote.expect("a connection is handed out after it was made, and that sets the address")
    }

    /// Returns the address at which the peer sees this side, once it has reported it: this side's
    /// address outside of all NATs.
    pub fn observed_address(&self) -> Option<SocketAddr> {
        lock(&self.shared().state).observed
    }

    /// Returns a snapshot of counters and estimates. It is at most 10 ms old while streams make
    /// progress. Otherwise it dates from the last call, and this call requests a refresh for the
    /// next one. It is final once the connection is closed.
    pub fn stats(&self) -> ConnectionStats {
        self.shared().stats()
    }

    /// Limits the send rate in bytes per second, packet overhead included; `u64::MAX` removes the
    /// limit.
    pub fn set_rate_limit(&self, bytes_per_second: u64) {
        lock(&self.shared().state).rate_limit = Some(bytes_per_second);
        self.shared().notify_io();
    }

    /// Closes the connection now: unsent and unread bytes are dropped. To be sure that a stream
    /// arrived, wait for [`acked`](SendStream::acked) first. Application codes start at 0x100; the
    /// reason is truncated to 512 bytes.
    pub fn close(&self, code: u64, reason: &str) {
        let mut state = lock(&self.shared().state);
        if state.close.is_none() {
            state.close = Some((code, reason.to_owned()));
            drop(state);
            self.shared().notify_io();
        }
    }

    /// Waits for the end of the connection and returns its reason. Cancel safe.
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

    /// Returns the reason of the connection's end, if it has ended.
    pub fn close_reason(&self) -> Option<CloseReason> {
        lock(&self.shared().state).ended()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("peer", &self.peer()).finish_non_exhaustive()
    }
}
