//! What the threads of one transfer share: the connection, the first error, and the watch over a peer that stalls.
//!
//! The first error wins: it closes the connection with a code and a sentence for the peer, which makes every other thread's
//! next call on a stream fail; those later errors are ignored. A cancellation is such an error: it comes from outside, at any
//! stage, and needs no thread that looks for it.

use std::future::poll_fn;
use std::ops::Deref;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use smallvec::SmallVec;
use tracing::{Span, debug, info};
use wraith_core::CloseReason;
use wraith_transport::{
    Connection, ConnectionStats, Endpoint, ReadError, ReadExactError, WriteError, block_on,
    block_on_timeout,
};

use crate::cancel::{Cancel, CancelSubscription};
use crate::error::{Role, TransferError, close, shown};
use crate::limits::{PARALLEL_MAX, STALL_BYTES, STALL_TIMEOUT};
use crate::local_folders::LocalFolders;
use crate::lock::lock;
use crate::message::Offer;

/// How often the watch measures what moved: a stall is noticed so much later than it is one, at most.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// A parallel connection that moved less only stood: a handshake and probes of the path's MTU.
const CONNECTION_USED_BYTES: u64 = 256 * 1024;

/// How long a broken stream or parallel connection waits for the CLOSE that explains it.
const EXPLANATION_TIMEOUT: Duration = Duration::from_secs(2);

/// One running transfer. Cancelled until it is dropped.
pub(crate) struct Session {
    state: Arc<SessionState>,
    _cancellation: CancelSubscription,
}

impl Session {
    /// `folders` are named to the user of this side alone.
    pub(crate) fn new(
        connection: Connection,
        role: Role,
        cancel: &Cancel,
        folders: LocalFolders,
    ) -> Self {
        let state = Arc::new(SessionState::new(connection, role, folders));
        let cancelled = Arc::downgrade(&state);
        let cancellation = cancel.on_cancel(move || {
            if let Some(state) = cancelled.upgrade() {
                state.cancel();
            }
        });
        Self { state, _cancellation: cancellation }
    }
}

impl Deref for Session {
    type Target = SessionState;
    fn deref(&self) -> &SessionState {
        &self.state
    }
}

/// What the threads of a transfer, and whoever cancels it, share.
pub(crate) struct SessionState {
    pub(crate) connection: Connection,
    /// Parent of everything that is logged about it. Threads do not enter it: most work is not logged.
    pub(crate) span: Span,
    parallel: Mutex<Vec<ParallelConnection>>,
    role: Role,
    folders: LocalFolders,
    first_error: Mutex<Option<TransferError>>,
    over: AtomicBool,
    /// Bytes (or what counts as such) that came or went.
    moved: AtomicU64,
    /// Threads that wait for the peer.
    awaiting: AtomicUsize,
    /// Threads that do something else before they read on.
    not_reading: AtomicUsize,
    /// A person takes their time: nothing counts as a stall.
    stall_suspended: AtomicBool,
    /// Signalled when the transfer is over.
    ended: (Mutex<()>, Condvar),
}

/// A further connection of the transfer.
struct ParallelConnection {
    connection: Connection,
    /// Lives as long as the connection is used.
    _endpoint: Endpoint,
}

/// Runs `future` until `end` is ready. `None` if that comes first.
async fn until<F: Future>(future: F, end: impl Future) -> Option<F::Output> {
    let (mut future, mut end) = (pin!(future), pin!(end));
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Some(output));
        }
        end.as_mut().poll(cx).map(|_| None)
    })
    .await
}

impl SessionState {
    fn new(connection: Connection, role: Role, folders: LocalFolders) -> Self {
        let (peer, remote) = (connection.peer(), connection.remote());
        let span = tracing::info_span!("transfer", %role, %peer, %remote);
        info!(parent: &span, "begins");
        Self {
            connection,
            span,
            parallel: Mutex::default(),
            role,
            folders,
            first_error: Mutex::new(None),
            over: AtomicBool::new(false),
            moved: AtomicU64::new(0),
            awaiting: AtomicUsize::new(0),
            not_reading: AtomicUsize::new(0),
            stall_suspended: AtomicBool::new(false),
            ended: (Mutex::new(()), Condvar::new()),
        }
    }

    /// Runs `body`; if it fails, that ends the transfer, and [`Self::watch`] frees the threads that wait for each other.
    pub(crate) fn run_or_fail(&self, body: impl FnOnce() -> Result<(), TransferError>) {
        if let Err(error) = body() {
            self.fail(error);
        }
    }

    /// The user stops it, at any stage. Nothing is undone: after [`Self::complete`] only the peer's goodbye is missed.
    fn cancel(&self) {
        self.fail(TransferError::Cancelled { role: self.role });
        self.close(close::CANCELLED, "");
    }

    /// Records the first error and tells the peer. Does nothing once the transfer is over.
    pub(crate) fn fail(&self, error: TransferError) {
        if self.over.swap(true, Relaxed) {
            return;
        }
        let (code, reason) = error.to_close(&self.folders);
        *lock(&self.first_error) = Some(error);
        self.close(code, &reason);
        self.signal_end();
    }

    /// The transfer has succeeded: later errors do not count.
    pub(crate) fn complete(&self) {
        self.over.store(true, Relaxed);
        self.signal_end();
    }

    /// The first error, if there was one.
    pub(crate) fn outcome(&self) -> Result<(), TransferError> {
        lock(&self.first_error).clone().map_or(Ok(()), Err)
    }

    /// Ends the transfer with `result`, or with the error that came before and made it fail.
    pub(crate) fn conclude<T>(&self, result: Result<T, TransferError>) -> Result<T, TransferError> {
        match result {
            Ok(report) => {
                self.connection.close(close::DONE, "");
                info!(parent: &self.span, wire_bytes = self.wire_bytes(), "complete");
                Ok(report)
            }
            Err(error) => {
                self.fail(error.clone());
                let error = self.outcome().err().unwrap_or(error);
                info!(parent: &self.span, error = error.kind(), "ended early");
                debug!(parent: &self.span, %error, "ended early");
                Err(error)
            }
        }
    }

    /// Closes all connections.
    pub(crate) fn close(&self, code: u64, reason: &str) {
        // First the one that the peer takes the reason from.
        self.connection.close(code, reason);
        self.close_parallel();
    }

    /// Nothing is expected on the parallel connections any more.
    pub(crate) fn close_parallel(&self) {
        for further in &*lock(&self.parallel) {
            further.connection.close(close::DONE, "");
        }
    }

    /// One more connection for the data. False if the transfer is over: then it is closed.
    pub(crate) fn add_connection(&self, endpoint: Endpoint, connection: Connection) -> bool {
        let mut parallel = lock(&self.parallel);
        // Under the lock: whoever ends the transfer closes those that are in the list after that.
        if self.is_over() {
            connection.close(close::DONE, "");
            return false;
        }
        debug!(parent: &self.span, remote = %connection.remote(), "parallel connection");
        parallel.push(ParallelConnection { connection, _endpoint: endpoint });
        true
    }

    /// Statistics of every connection.
    pub(crate) fn paths(&self) -> impl Iterator<Item = ConnectionStats> {
        let parallel: SmallVec<[_; PARALLEL_MAX]> =
            lock(&self.parallel).iter().map(|further| further.connection.stats()).collect();
        std::iter::once(self.connection.stats()).chain(parallel)
    }

    /// Connections over which data went.
    pub(crate) fn used_connections(&self) -> u64 {
        let carried = |stats: &ConnectionStats| stats.bytes_sent + stats.bytes_received;
        let parallel = self.paths().skip(1).filter(|stats| carried(stats) >= CONNECTION_USED_BYTES);
        1 + parallel.count() as u64
    }

    /// Logs what is offered. Names are for debugging only.
    pub(crate) fn log_offer(&self, offer: &Offer) {
        let Offer { files, dirs, links, bytes, .. } = *offer;
        let (name, stream) = (shown(&offer.name), offer.stream == Some(true));
        debug!(parent: &self.span, name, files, dirs, links, bytes, stream, "offer");
    }

    /// Logs that the offer was accepted, and whether an earlier connection brought some of it.
    pub(crate) fn log_accept(&self, resumes: bool) {
        debug!(parent: &self.span, resumes, "accepted");
    }

    /// Bytes that [`Self::moved`] was told of.
    pub(crate) fn bytes_moved(&self) -> u64 {
        self.moved.load(Relaxed)
    }

    /// True once it failed or completed.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    fn signal_end(&self) {
        drop(lock(&self.ended.0));
        self.ended.1.notify_all();
    }

    /// `n` bytes came or went.
    pub(crate) fn moved(&self, n: u64) {
        self.moved.fetch_add(n, Relaxed);
    }

    /// While set, the peer owes nothing: its user is being asked.
    pub(crate) fn suspend_stall_check(&self, stall_suspended: bool) {
        self.stall_suspended.store(stall_suspended, Relaxed);
    }

    /// Runs a future that waits for the peer, so that the watch may call it a stall.
    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.wait_in(|| block_on(future))
    }

    /// The same for a call that blocks until the peer has done something.
    pub(crate) fn wait_in<T>(&self, call: impl FnOnce() -> T) -> T {
        self.awaiting.fetch_add(1, Relaxed);
        let output = call();
        self.awaiting.fetch_sub(1, Relaxed);
        output
    }

    /// Waits for the peer while nothing watches for a stall, at most `limit`. `None` when that time has passed. A cancellation
    /// closes the connection, which ends whatever waits for it.
    pub(crate) fn wait_within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        block_on_timeout(future, limit)
    }

    /// The same for what the transfer can do without, on another connection: `None` also when the transfer's first connection is
    /// closed.
    pub(crate) fn wait_meanwhile<F: Future>(
        &self,
        limit: Duration,
        future: F,
    ) -> Option<F::Output> {
        block_on_timeout(until(future, self.connection.closed()), limit).flatten()
    }

    /// Runs what keeps a thread from reading on, such as a write to the disk.
    pub(crate) fn while_not_reading<T>(&self, call: impl FnOnce() -> T) -> T {
        self.not_reading.fetch_add(1, Relaxed);
        let output = call();
        self.not_reading.fetch_sub(1, Relaxed);
        output
    }

    /// True while some thread is in [`Self::while_not_reading`].
    pub(crate) fn is_not_reading(&self) -> bool {
        self.not_reading.load(Relaxed) > 0
    }

    /// Watches until the transfer is over, then frees with `stop` the threads that wait for each other. It ends a transfer in
    /// which a peer moves less than [`STALL_BYTES`] in [`STALL_TIMEOUT`] while a thread is in [`Self::wait`] or `due` says that
    /// something is owed, and one with which `look` finds a fault.
    pub(crate) fn watch(
        &self,
        due: impl Fn() -> bool,
        look: impl Fn() -> Result<(), TransferError>,
        stop: impl Fn(),
    ) {
        let (mut since, mut moved) = (Instant::now(), self.bytes_moved());
        while !self.wait_for_end(WATCH_INTERVAL) {
            if let Err(error) = look() {
                self.fail(error);
                break;
            }
            let now = self.bytes_moved();
            let has_moved = now - moved >= STALL_BYTES;
            if has_moved || self.stall_suspended.load(Relaxed) || !self.is_awaited(&due) {
                (since, moved) = (Instant::now(), now);
            } else if since.elapsed() >= STALL_TIMEOUT {
                let seconds = STALL_TIMEOUT.as_secs();
                debug!(parent: &self.span, seconds, "stalled");
                let why = format!("nothing moved for {seconds} s (seen by the {})", self.role);
                self.fail(TransferError::NetworkLost { why });
            }
        }
        stop();
    }

    /// True if the peer owes something, and this side reads.
    fn is_awaited(&self, due: impl Fn() -> bool) -> bool {
        let due = due();
        !self.is_not_reading() && (due || self.awaiting.load(Relaxed) > 0)
    }

    /// True as soon as the transfer is over, false after `limit`.
    fn wait_for_end(&self, limit: Duration) -> bool {
        let guard = lock(&self.ended.0);
        let waited = self.ended.1.wait_timeout_while(guard, limit, |()| !self.is_over());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.is_over()
    }

    /// Bytes of the datagrams so far, both ways.
    pub(crate) fn wire_bytes(&self) -> u64 {
        self.paths().map(|stats| stats.bytes_sent + stats.bytes_received).sum()
    }

    /// For a thread that was freed because the transfer is over: why it is over was recorded before, this is ignored.
    pub(crate) fn stopped(&self) -> TransferError {
        debug_assert!(self.is_over());
        TransferError::Other { what: "stopped".into() }
    }

    /// The peer broke section 10.
    pub(crate) fn protocol(&self, what: impl Into<String>) -> TransferError {
        TransferError::Protocol { peer: self.role.peer(), what: what.into() }
    }

    /// A disk operation failed here.
    pub(crate) fn disk(&self, what: impl std::fmt::Display) -> TransferError {
        TransferError::Disk { role: self.role, what: what.to_string() }
    }

    /// What the end of a connection means here. A parallel one that the peer closes as done says nothing: it closes the first
    /// before, with the reason, which may come later.
    pub(crate) fn lost(&self, reason: &CloseReason) -> TransferError {
        let first = match reason {
            CloseReason::Peer { code: close::DONE, .. } => self.explanation(),
            _ => None,
        };
        TransferError::from_close(first.as_ref().unwrap_or(reason), self.role)
    }

    /// Why the first connection ended, if it does in a moment.
    fn explanation(&self) -> Option<CloseReason> {
        block_on_timeout(self.connection.closed(), EXPLANATION_TIMEOUT)
    }

    pub(crate) fn read_failed(&self, error: ReadError) -> TransferError {
        match error {
            ReadError::ConnectionLost(reason) => self.lost(&reason),
            ReadError::Reset(_) | ReadError::Stopped => self.explained("it broke off a stream"),
        }
    }

    pub(crate) fn read_exact_failed(&self, error: ReadExactError) -> TransferError {
        match error {
            ReadExactError::Ended { .. } => self.explained("it ended a stream too early"),
            ReadExactError::Failed(error) => self.read_failed(error),
        }
    }

    pub(crate) fn write_failed(&self, error: WriteError) -> TransferError {
        match error {
            WriteError::ConnectionLost(reason) => self.lost(&reason),
            WriteError::Stopped(_) | WriteError::Finished => {
                self.explained("it does not read a stream")
            }
        }
    }

    /// A stream broke. Usually the CLOSE behind it says why.
    fn explained(&self, otherwise: &str) -> TransferError {
        match self.explanation() {
            Some(reason) => self.lost(&reason),
            None => self.protocol(otherwise),
        }
    }
}
