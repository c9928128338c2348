//! A connection as the application holds it.
//!
//! [`Connection`] handles and their streams share one [`Guard`]; when the last of them is gone, the I/O thread
//! delivers what was finished and closes. Requests are fields of [`ConnectionState`](crate::shared::ConnectionState).

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
use crate::shared::{ConnectionShared, DATAGRAMS_MAX, Guard, Phase, StreamShared};
use crate::stream::{RecvStream, SendStream, handles};

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

    /// Opens a stream; waits while the peer allows no more. The peer sees it with its first bytes.
    ///
    /// Cancel safe: if the future is dropped, no stream is lost; one that was opened for it serves the next call.
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

    /// Waits for the next stream the peer opens. Cancel safe: no stream is lost.
    pub async fn accept_stream(&self) -> Result<(SendStream, RecvStream), CloseReason> {
        poll_fn(|cx| self.poll_accept_stream(cx)).await
    }

    /// Largest datagram that can be sent now, in bytes; 0 if the peer takes none. It grows while the connection learns
    /// what the path carries, and falls when the path changes; at most 10 ms old while streams make progress.
    pub fn max_datagram_len(&self) -> usize {
        lock(&self.shared().state).datagram_max
    }

    /// Queues an unreliable datagram of at most [`max_datagram_len`](Self::max_datagram_len) bytes. It is dropped in
    /// silence if the path carries less by the time it is sent.
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
        self.shared().mark();
        Ok(())
    }

    /// Waits for the next unreliable datagram. If nobody reads them, the oldest are dropped. Cancel safe: no datagram is
    /// lost.
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

    /// What packets are sealed with. The keys come from [`KEY_AGREEMENT`](crate::KEY_AGREEMENT) on every connection.
    pub fn suite(&self) -> Suite {
        let suite = lock(&self.shared().state).suite;
        suite.expect("a connection is handed out after it was made, and that sets it")
    }

    /// Where the peer is now. An IPv4 peer has an IPv4 address, also on a dual-stack socket.
    pub fn remote(&self) -> Addr {
        let remote = lock(&self.shared().state).remote.clone();
        remote.expect("a connection is handed out after it was made, and that sets the address")
    }

    /// Where the peer sees this side, once it has said so: an address of ours on its side of every NAT.
    pub fn observed_address(&self) -> Option<SocketAddr> {
        lock(&self.shared().state).observed
    }

    /// Counters and estimates. They are a snapshot: at most 10 ms old while streams make progress, else as of the last
    /// call (which has them refreshed for the next one); final once closed.
    pub fn stats(&self) -> ConnectionStats {
        self.shared().stats()
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

    /// Waits until the connection ended, and says why. Cancel safe.
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
