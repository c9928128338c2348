//! The application's handle of an endpoint: a bound socket, its I/O thread, and its connections.
//!
//! Several parts of a program can share one socket. Each has a door of its own
//! ([`Endpoint::open_door`]): access keys, a queue of incoming connections, and an end. The I/O
//! thread gives each incoming connection to the door whose access key the peer has.

use std::collections::HashSet;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tracing::debug;
use wraith_core::{AccessKey, ClockDifference, Door, DoorId, EndpointConfig, Entropy, WallClock};
use wraith_crypto::identity::NodeId;

use crate::addr::Addr;
use crate::block_on::block_on_timeout;
use crate::clock::unix_seconds;
use crate::connection::Connection;
use crate::error::ConnectError;
use crate::io::{CLOSE_WAIT_MAX, IoThread, Movers};
use crate::lock::{WakeBatch, lock};
use crate::mover::MoverFactory;
use crate::shared::{ConnectionShared, DoorShared, DoorState, EndpointShared, IoInbox, Phase};

/// Maximum number of addresses tried for one connection; a ticket holds at most as many (SPEC §2).
const ADDRESSES_MAX: usize = 40;
/// Configuration of an endpoint.
#[derive(Debug)]
pub struct Config {
    /// Identity and protocol limits. [`Endpoint::bind`] sets the wall clock and the seed.
    pub core: EndpointConfig,
    /// Local address. An IPv6 wildcard is dual-stack, and falls back to IPv4 on a machine without
    /// IPv6.
    pub bind: SocketAddr,
    /// Movers beside UDP, at most 7. Each serves the [`Addr::Custom`] addresses of its kind.
    pub movers: Vec<Arc<dyn MoverFactory>>,
    /// CPU to which the I/O thread is pinned.
    pub io_cpu: Option<usize>,
}

impl Config {
    /// Returns a configuration for a free port on all addresses of this machine.
    pub fn new(core: EndpointConfig) -> Self {
        Self { core, bind: (Ipv6Addr::UNSPECIFIED, 0).into(), movers: Vec::new(), io_cpu: None }
    }

    /// Sets the local address.
    #[must_use]
    pub fn bind(self, address: impl Into<SocketAddr>) -> Self {
        Self { bind: address.into(), ..self }
    }
}

/// Shared by all handles of a door; the drop of the last one releases the door.
#[derive(Debug)]
struct DoorGuard(Arc<DoorShared>);

impl Drop for DoorGuard {
    fn drop(&mut self) {
        lock(&self.0.state).released = true;
        self.0.notify_io();
    }
}

/// A UDP socket that runs the protocol, seen through one of its doors. Clones are handles of the
/// same door.
///
/// After the last handle of a door is dropped, the door accepts no connection any more. After the
/// last handle of all doors is dropped, the I/O thread ends with its last connection.
#[derive(Clone)]
pub struct Endpoint {
    guard: Arc<DoorGuard>,
    local: SocketAddr,
}

/// Returns 32 random bytes of the operating system. If the system fails, returns zeros: secrets
/// then depend on random bytes that it returned earlier.
fn fresh() -> [u8; 32] {
    let mut bytes = [0; 32];
    if let Err(error) = getrandom::fill(&mut bytes) {
        debug!(%error, "the operating system provides no randomness; using the earlier seed");
    }
    bytes
}

impl Endpoint {
    /// Binds a socket and starts its I/O thread.
    pub fn bind(mut config: Config) -> io::Result<Self> {
        let movers = Movers::bind(config.bind, &config.movers)?;
        let local = movers.local_addr();
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let shared = EndpointShared::new(Arc::new(IoInbox::new()?));
        let first = DoorShared::new(DoorId::FIRST, Arc::clone(&shared), None);
        config.core.wall_clock = WallClock::new(|_| unix_seconds());
        config.core.entropy = Entropy::new(fresh);
        let core = wraith_core::Endpoint::new(config.core, seed);
        let thread = IoThread::new(movers, core, shared, Arc::clone(&first)).share();
        let io_cpu = config.io_cpu;
        debug!(%local, movers = config.movers.len() + 1, "endpoint bound");
        std::thread::Builder::new()
            .name("wraith-io".into())
            .spawn(move || IoThread::run(&thread, io_cpu))?;
        Ok(Self { guard: Arc::new(DoorGuard(first)), local })
    }

    /// Opens another door of the same socket. The returned handle accepts and closes the
    /// connections of that door only. Dialled connections belong to the door of the handle that
    /// dialled.
    ///
    /// If the endpoint is already closed, so is the new door.
    pub fn open_door(&self, door: Door) -> Self {
        let endpoint = &self.shared().endpoint;
        let id = {
            let mut state = lock(&endpoint.state);
            state.last_door += 1;
            DoorId(state.last_door)
        };
        let shared = DoorShared::new(id, Arc::clone(endpoint), Some(door));
        if !shared.notify_io() {
            lock(&shared.state).stopped = true;
        }
        Self { guard: Arc::new(DoorGuard(shared)), local: self.local }
    }

    pub(crate) fn shared(&self) -> &Arc<DoorShared> {
        &self.guard.0
    }

    /// Connects to `peer` with one of its access keys. Tries the first 40 of `addresses` in order,
    /// staggered and in parallel, and keeps the first that answers. Dropping the future ends all
    /// attempts at once.
    pub async fn connect(
        &self,
        addresses: impl IntoIterator<Item: Into<Addr>>,
        peer: NodeId,
        access_key: &AccessKey,
    ) -> Result<Connection, ConnectError> {
        let addresses = addresses.into_iter().take(ADDRESSES_MAX).map(Into::into).collect();
        self.start_connect(addresses, peer, access_key)?.connected().await
    }

    fn start_connect(
        &self,
        addresses: Vec<Addr>,
        peer: NodeId,
        access_key: &AccessKey,
    ) -> Result<Connection, ConnectError> {
        if addresses.is_empty() {
            return Err(ConnectError::NoAddress);
        }
        let state = lock(&self.shared().state);
        if state.closing || state.stopped {
            return Err(ConnectError::EndpointClosed);
        }
        drop(state);
        let phase = Phase::New(addresses, access_key.clone());
        let door = self.shared();
        let shared = ConnectionShared::new(door.id, phase, peer, &door.endpoint);
        match shared.notify_io() {
            true => Ok(Connection::new(shared)),
            false => Err(ConnectError::EndpointClosed),
        }
    }

    /// Polls for the next incoming connection. Returns `None` once the endpoint is closed.
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<Option<Connection>> {
        let mut state = lock(&self.shared().state);
        while let Some(shared) = state.accepted.pop_front() {
            // A connection that ended in the queue without data to read has lost a race of
            // addresses.
            if !shared.is_over() || !lock(&shared.state).accepted.is_empty() {
                return Poll::Ready(Some(Connection::new(shared)));
            }
        }
        if state.closing || state.stopped || state.accepts_no_more {
            return Poll::Ready(None);
        }
        state.wakers.register(cx);
        Poll::Pending
    }

    /// Waits for the next incoming connection. Returns `None` once the endpoint is closed. Cancel
    /// safe: no connection is lost.
    pub async fn accept(&self) -> Option<Connection> {
        poll_fn(|cx| self.poll_accept(cx)).await
    }

    /// Waits for the next refusal of a handshake because of its time: the client has an access key,
    /// and its clock differs from that of this machine. Keep at most one waiting call. Cancel safe.
    pub async fn clock_difference(&self) -> ClockDifference {
        poll_fn(|cx| {
            let mut state = lock(&self.shared().state);
            match state.clock_differences.pop_front() {
                Some(difference) => Poll::Ready(difference),
                None => {
                    state.wakers.register(cx);
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Sets the accept filter for new connections: a client needs one of these access keys. The
    /// endpoint does not answer other clients. Existing connections stay.
    pub fn set_access_keys(&self, access_keys: Vec<AccessKey>) {
        lock(&self.shared().state).access_keys = Some(access_keys);
        self.shared().notify_io();
    }

    /// Sets an allowlist for new connections, in addition to the access keys; `None` removes it.
    /// The endpoint does not answer other clients. Existing connections stay.
    pub fn admit_only(&self, admitted: Option<HashSet<NodeId>>) {
        lock(&self.shared().state).admitted = Some(admitted);
        self.shared().notify_io();
    }

    /// Returns the bound address. A dual-stack wildcard is `[::]`.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Closes every connection of this door and waits for the end, at most 3 s. Finished streams are
    /// delivered first, and peers are notified. The handle that [`bind`](Self::bind) returned closes
    /// all doors, and the socket. Blocks this thread. In a task use
    /// [`start_close`](Self::start_close) and [`closed`](Self::closed) instead.
    pub fn close(&self) {
        self.start_close();
        // The I/O thread itself keeps the limit; the extra second covers a thread that cannot run.
        let _ = block_on_timeout(self.closed(), CLOSE_WAIT_MAX + Duration::from_secs(1));
    }

    /// Accepts no more peers through this door, and closes the connections that were not accepted
    /// yet. The others stay open.
    pub fn stop_accepting(&self) {
        self.request_end(|state| state.accepts_no_more = true);
    }

    /// Starts closing as [`close`](Self::close) does, without waiting.
    pub fn start_close(&self) {
        self.request_end(|state| state.closing = true);
    }

    /// Wakes the tasks that wait for connections, and the I/O thread.
    fn request_end(&self, change: impl FnOnce(&mut DoorState)) {
        let mut wakes = WakeBatch::default();
        self.shared().update(&mut wakes, change);
        wakes.wake();
        self.shared().notify_io();
    }

    /// Waits for the end of a closing door; for the first door, until the socket is closed. Cancel
    /// safe.
    pub async fn closed(&self) {
        poll_fn(|cx| {
            let mut state = lock(&self.shared().state);
            if state.stopped {
                return Poll::Ready(());
            }
            state.wakers.register(cx);
            Poll::Pending
        })
        .await;
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("local", &self.local).finish_non_exhaustive()
    }
}
