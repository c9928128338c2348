//! Sockets of a rendezvous server: a task per connection, with a bounded buffer per direction. One
//! [`Mailboxes`] makes all decisions.
//!
//! Invariant: memory is bounded by [`MAX_CONNECTIONS`] × ([`MAX_UNREAD`] + [`MAX_UNSENT`] and a
//! task) and the state of [`Mailboxes`]. A client that does not read loses its connection.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::pending;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::sync::Notify;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::debug;
use wraith_discovery::rendezvous::{
    ClientFrame, InvalidFrameLength, MAX_FRAME_LEN, ServerFrame, split,
};

use super::mailboxes::{Action, Id, Mailboxes};
use crate::lock::lock;

/// Most concurrent connections; further ones are closed at once. A creator needs one while it
/// waits.
const MAX_CONNECTIONS: usize = 4096;
/// File descriptors needed besides connections.
const OTHER_FILES: usize = 24;
/// Most bytes kept of an incomplete frame, and bytes read at once.
const MAX_UNREAD: usize = 2 + MAX_FRAME_LEN;
/// Most bytes queued for a client: several times the normal need.
const MAX_UNSENT: usize = 8 * 1024;
/// Interval of the time-limit checks while any client is connected.
const TICK: Duration = Duration::from_millis(500);
/// Pause after the system ran out of file descriptors.
const PAUSE_WITHOUT_FILES: Duration = Duration::from_millis(20);

/// A listening server.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    connections: Arc<Connections>,
}

/// Serves connections accepted by a [`Server`], or by another server on the same port.
#[derive(Debug)]
pub struct Connections {
    shared: Arc<Mutex<Shared>>,
    max_connections: usize,
    next_id: AtomicU64,
    /// Notified of each new connection.
    admitted: Notify,
}

/// State shared by the connections.
struct Shared {
    mailboxes: Mailboxes,
    connections: HashMap<Id, Connection>,
}

/// State of a connection besides its socket, which its task owns.
struct Connection {
    unsent: Vec<u8>,
    /// Whether to close after everything is sent.
    closing: bool,
    /// Notified of each change of this state, and of its removal.
    changed: Arc<Notify>,
}

impl Server {
    /// Listens on `address`. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// The address is not available, or the system has no randomness.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        Ok(Self { listener, connections: Arc::new(Connections::new()?) })
    }

    /// Returns the listening address.
    ///
    /// # Errors
    /// The system reports an error.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until drop, which closes all connections.
    ///
    /// # Errors
    /// None at present: failures affect one connection or are temporary.
    pub async fn run(self) -> io::Result<()> {
        self.run_until(pending()).await
    }

    /// Serves until `shutdown` completes, or until drop.
    ///
    /// # Errors
    /// Same as [`Self::run`].
    pub async fn run_until(self, shutdown: impl Future<Output = ()> + Send) -> io::Result<()> {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut time = std::pin::pin!(self.connections.enforce_time_limits());
        let mut tasks = JoinSet::new();
        loop {
            select! {
                () = &mut shutdown => return Ok(()),
                () = &mut time => {}
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, from)) => {
                        let connections = Arc::clone(&self.connections);
                        tasks.spawn(async move { connections.serve_connection(stream, from).await });
                    }
                    // The client is gone already.
                    Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                    // The system has no free file descriptors, and this takes a while to change.
                    Err(_) => sleep(PAUSE_WITHOUT_FILES).await,
                },
                Some(_) = tasks.join_next() => {}
            }
        }
    }
}

impl Connections {
    /// Creates the state without connections.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn new() -> io::Result<Self> {
        let mut seed = [0; 4];
        getrandom::fill(&mut seed).map_err(io::Error::other)?;
        let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let files = usize::try_from(files).unwrap_or(usize::MAX).saturating_sub(OTHER_FILES);
        let mailboxes = Mailboxes::new(u32::from_be_bytes(seed));
        let shared = Arc::new(Mutex::new(Shared { mailboxes, connections: HashMap::new() }));
        let (max_connections, next_id) = (MAX_CONNECTIONS.min(files), AtomicU64::new(0));
        Ok(Self { shared, max_connections, next_id, admitted: Notify::new() })
    }

    /// Serves one connection until either side ends it.
    pub async fn serve_connection(&self, stream: TcpStream, from: SocketAddr) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        if let Some(changed) = self.admit(&stream, from, id) {
            // Removes the connection's state however the task ends.
            let _guard = ConnectionGuard { shared: &self.shared, id };
            run_connection(Arc::clone(&self.shared), id, stream, changed).await;
        }
    }

    /// Enforces the time limits of all connections, forever.
    pub async fn enforce_time_limits(&self) {
        loop {
            let mut tick = interval(TICK);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            while !self.lock().mailboxes.is_idle() {
                tick.tick().await;
                self.lock().tick(Instant::now());
            }
            self.admitted.notified().await;
        }
    }

    /// Admits a connection. `None` if it must be closed.
    fn admit(&self, stream: &TcpStream, from: SocketAddr, id: Id) -> Option<Arc<Notify>> {
        stream.set_nodelay(true).ok()?;
        let mut shared = self.lock();
        let is_full = shared.connections.len() >= self.max_connections;
        if is_full || !shared.mailboxes.connected(Instant::now(), id, from) {
            debug!(is_full, "a connection is turned away");
            return None;
        }
        let changed = Arc::new(Notify::new());
        let theirs = Arc::clone(&changed);
        let connection = Connection { unsent: Vec::new(), closing: false, changed: theirs };
        shared.connections.insert(id, connection);
        self.admitted.notify_one();
        Some(changed)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }
}

/// Removes a connection's state on drop.
struct ConnectionGuard<'a> {
    shared: &'a Mutex<Shared>,
    id: Id,
}

impl Drop for ConnectionGuard<'_> {
    fn drop(&mut self) {
        lock(self.shared).drop_connection(Instant::now(), self.id);
    }
}

/// Task of one connection, until either side ends it.
async fn run_connection(
    shared: Arc<Mutex<Shared>>,
    id: Id,
    stream: TcpStream,
    changed: Arc<Notify>,
) {
    let mut unread = Vec::new();
    loop {
        let Some((is_owed, closing)) = lock(&shared).flush(id, &stream) else { return };
        let result = select! {
            () = changed.notified() => Ok(()),
            ready = stream.writable(), if is_owed => ready,
            ready = stream.readable(), if !closing => match ready {
                Ok(()) => read(&shared, id, &stream, &mut unread),
                failed => failed,
            },
        };
        if result.is_err() {
            return lock(&shared).drop_connection(Instant::now(), id);
        }
        // Other tasks get their turn, however much one client sends.
        yield_now().await;
    }
}

/// Reads the available bytes, up to a frame's length, and handles all whole frames.
fn read(
    shared: &Mutex<Shared>,
    id: Id,
    stream: &TcpStream,
    unread: &mut Vec<u8>,
) -> io::Result<()> {
    let mut bytes = [0; MAX_UNREAD];
    match stream.try_read(&mut bytes) {
        Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
        Ok(len) => unread.extend_from_slice(&bytes[..len]),
        Err(error) if would_block(&error) => return Ok(()),
        Err(error) => return Err(error),
    }
    let mut shared = lock(shared);
    // A frame may end the connection; the frames after it are then ignored.
    while shared.connections.get(&id).is_some_and(|connection| !connection.closing) {
        let frame = match split(unread) {
            Ok(Some(frame)) => ClientFrame::decode(&frame),
            Ok(None) => break,
            Err(InvalidFrameLength) => None,
        };
        let now = Instant::now();
        let actions = shared.mailboxes.frame(now, id, frame);
        shared.perform(now, actions);
    }
    Ok(())
}

impl Shared {
    fn tick(&mut self, now: Instant) {
        let actions = self.mailboxes.tick(now);
        self.perform(now, actions);
    }

    /// Writes queued bytes. Returns whether more are queued and whether the connection closes
    /// afterwards; `None` if it is gone.
    fn flush(&mut self, id: Id, stream: &TcpStream) -> Option<(bool, bool)> {
        let connection = self.connections.get_mut(&id)?;
        while !connection.unsent.is_empty() {
            match stream.try_write(&connection.unsent) {
                Ok(len @ 1..) => drop(connection.unsent.drain(..len)),
                Err(error) if would_block(&error) => return Some((true, connection.closing)),
                Ok(0) | Err(_) => {
                    self.drop_connection(Instant::now(), id);
                    return None;
                }
            }
        }
        if connection.closing {
            self.drop_connection(Instant::now(), id);
            return None;
        }
        Some((false, false))
    }

    /// Performs actions, including those that follow from dropped connections.
    fn perform(&mut self, now: Instant, actions: Vec<Action>) {
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            let gone = match action {
                Action::Send(id, frame) => self.send(id, &frame),
                Action::Close(id) => self.close(id),
            };
            if let Some(gone) = gone {
                actions.extend(self.remove(now, gone));
            }
        }
    }

    /// Queues a frame. Returns the connection if it must be dropped because the client does not
    /// read.
    fn send(&mut self, id: Id, frame: &ServerFrame) -> Option<Id> {
        let connection = self.connections.get_mut(&id)?;
        let bytes = frame.encode();
        if connection.unsent.len() + bytes.len() > MAX_UNSENT {
            return Some(id);
        }
        connection.unsent.extend_from_slice(&bytes);
        connection.changed.notify_one();
        None
    }

    /// Closes a connection after its queued frames. Returns it if it must be dropped at once.
    fn close(&mut self, id: Id) -> Option<Id> {
        let connection = self.connections.get_mut(&id)?;
        if connection.unsent.is_empty() || connection.closing {
            return Some(id);
        }
        // A connection that does not drain is dropped by the next tick that finds it late.
        connection.closing = true;
        connection.changed.notify_one();
        None
    }

    fn drop_connection(&mut self, now: Instant, id: Id) {
        let actions = self.remove(now, id);
        self.perform(now, actions);
    }

    /// Removes a connection, which ends its task. Returns the resulting actions.
    fn remove(&mut self, now: Instant, id: Id) -> Vec<Action> {
        let Some(connection) = self.connections.remove(&id) else { return Vec::new() };
        connection.changed.notify_one();
        self.mailboxes.disconnected(now, id)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let connections = self.connections.len();
        f.debug_struct("Shared").field("connections", &connections).finish_non_exhaustive()
    }
}

fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
