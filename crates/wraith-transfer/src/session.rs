//! State shared by the threads of one transfer: the connection, the first error, and stall
//! detection.
//!
//! Only the first error is reported: it closes the connection with a code and a sentence for the
//! peer. Every other thread's next stream operation then fails, and those later errors are ignored.
//! A cancellation is such an error from outside, possible at any stage and without polling.

use std::future::poll_fn;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use smallvec::SmallVec;
use tracing::{Span, debug, info};
use wraith_core::CloseReason;
use wraith_transport::{
    Connection, ConnectionStats, Endpoint, ReadError, ReadExactError, SendStream, WriteError,
    block_on, block_on_timeout,
};

use crate::cancel::{Cancel, CancelSubscription};
use crate::error::{TransferError, close, shown};
use crate::limits::{PARALLEL_MAX, STALL_BYTES, STALL_TIMEOUT};
use crate::local_folders::LocalFolders;
use crate::lock::lock;
use crate::lost_reason::LostReason;
use crate::message::Offer;
use crate::role::Role;
use crate::stream_kind::StreamKind;

/// Interval of the stall check: the maximum delay in detecting a stall.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum bytes of a parallel connection that carried data. Less is only a handshake and probes of
/// the path's MTU.
const CONNECTION_USED_BYTES: u64 = 256 * 1024;

/// Maximum wait for the CLOSE that explains a broken stream or parallel connection.
const EXPLANATION_TIMEOUT: Duration = Duration::from_secs(2);

/// One running transfer. Subscribed to cancellation until it is dropped.
pub(crate) struct Session {
    state: Arc<SessionState>,
    _cancellation: CancelSubscription,
}

impl Session {
    /// Creates a session. Only this side's user may see the names of `folders`.
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

/// State shared by the threads of a transfer and its cancellation callback.
pub(crate) struct SessionState {
    pub(crate) connection: Connection,
    /// Parent span of the transfer's log events. Threads do not enter it: most work is not logged.
    pub(crate) span: Span,
    parallel: Mutex<Vec<ParallelConnection>>,
    role: Role,
    folders: LocalFolders,
    first_error: Mutex<Option<TransferError>>,
    over: AtomicBool,
    /// Bytes (or their equivalent) transferred in both directions.
    moved: AtomicU64,
    /// Number of threads that wait for the peer.
    awaiting: AtomicUsize,
    /// Number of threads that are busy with other work before they read on.
    not_reading: AtomicUsize,
    /// True while a user is being asked. During that time no pause is a stall.
    stall_suspended: AtomicBool,
    /// Signalled when the transfer is over.
    ended: (Mutex<()>, Condvar),
}

/// An additional connection of the transfer.
struct ParallelConnection {
    connection: Connection,
    /// Kept alive as long as the connection is used.
    _endpoint: Endpoint,
}

/// Runs `future` until `end` is ready. Returns `None` if `end` comes first.
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

    /// Runs `body`. An error or a panic ends the transfer, and [`Self::watch`] wakes the threads
    /// that wait for each other.
    pub(crate) fn run_or_fail(&self, body: impl FnOnce() -> Result<(), TransferError>) {
        if let Err(error) = self.catch_panic(body) {
            self.fail(error);
        }
    }

    /// Runs `body` and returns a panic in it as an error. `body` calls readers, writers and
    /// callbacks of the application, whose panic must not leave the peer waiting.
    pub(crate) fn catch_panic<T>(
        &self,
        body: impl FnOnce() -> Result<T, TransferError>,
    ) -> Result<T, TransferError> {
        // After a panic the state of the transfer is used only to end it.
        catch_unwind(AssertUnwindSafe(body))
            .unwrap_or_else(|panic| Err(TransferError::panicked(self.role, &*panic)))
    }

    /// Cancels the transfer at any stage. Nothing is undone: after [`Self::complete`], only the
    /// peer's CLOSE is missed.
    fn cancel(&self) {
        self.fail(TransferError::Cancelled { role: self.role });
        self.close(close::CANCELLED, "");
    }

    /// Records the first error and sends it to the peer. Does nothing once the transfer is over.
    pub(crate) fn fail(&self, error: TransferError) {
        if self.over.swap(true, Relaxed) {
            return;
        }
        let (code, reason) = error.to_close(&self.folders);
        *lock(&self.first_error) = Some(error);
        self.close(code, &reason);
        self.signal_end();
    }

    /// Marks the transfer as successful: later errors are ignored.
    pub(crate) fn complete(&self) {
        self.over.store(true, Relaxed);
        self.signal_end();
    }

    /// Returns the first error, if there was one.
    pub(crate) fn outcome(&self) -> Result<(), TransferError> {
        lock(&self.first_error).clone().map_or(Ok(()), Err)
    }

    /// Ends the transfer with `result`, or with the earlier error that caused its failure.
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
        // The first connection is closed before the parallel ones, because the peer reads the
        // reason from it.
        self.connection.close(code, reason);
        self.close_parallel();
    }

    /// Closes the parallel connections; nothing more is expected on them.
    pub(crate) fn close_parallel(&self) {
        for further in &*lock(&self.parallel) {
            further.connection.close(close::DONE, "");
        }
    }

    /// Adds a parallel connection. If the transfer is over, closes it and returns false.
    pub(crate) fn add_connection(&self, endpoint: Endpoint, connection: Connection) -> bool {
        let mut parallel = lock(&self.parallel);
        // Checked under the lock: the thread that ends the transfer closes the connections listed
        // after that.
        if self.is_over() {
            connection.close(close::DONE, "");
            return false;
        }
        debug!(parent: &self.span, remote = %connection.remote(), "parallel connection");
        parallel.push(ParallelConnection { connection, _endpoint: endpoint });
        true
    }

    /// Returns the statistics of every connection.
    pub(crate) fn paths(&self) -> impl Iterator<Item = ConnectionStats> {
        let parallel: SmallVec<[_; PARALLEL_MAX]> =
            lock(&self.parallel).iter().map(|further| further.connection.stats()).collect();
        std::iter::once(self.connection.stats()).chain(parallel)
    }

    /// Returns the number of connections that carried data.
    pub(crate) fn used_connections(&self) -> u64 {
        let carried = |stats: &ConnectionStats| stats.bytes_sent + stats.bytes_received;
        let parallel = self.paths().skip(1).filter(|stats| carried(stats) >= CONNECTION_USED_BYTES);
        1 + parallel.count() as u64
    }

    /// Logs the offer. Names appear only at debug level.
    pub(crate) fn log_offer(&self, offer: &Offer) {
        let Offer { files, dirs, links, bytes, .. } = *offer;
        let (name, stream) = (shown(&offer.name), offer.stream == Some(true));
        debug!(parent: &self.span, name, files, dirs, links, bytes, stream, "offer");
    }

    /// Logs that the offer was accepted, and whether earlier data is resumed.
    pub(crate) fn log_accept(&self, resumes: bool) {
        debug!(parent: &self.span, resumes, "accepted");
    }

    /// Returns the bytes counted by [`Self::moved`].
    pub(crate) fn bytes_moved(&self) -> u64 {
        self.moved.load(Relaxed)
    }

    /// Returns true once the transfer failed or completed.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    fn signal_end(&self) {
        drop(lock(&self.ended.0));
        self.ended.1.notify_all();
    }

    /// Counts `n` transferred bytes.
    pub(crate) fn moved(&self, n: u64) {
        self.moved.fetch_add(n, Relaxed);
    }

    /// Opens a stream of this kind on one of the connections.
    pub(crate) fn open_stream(
        &self,
        connection: &Connection,
        kind: StreamKind,
    ) -> Result<SendStream, TransferError> {
        let opened = self.wait(connection.open_stream());
        let (mut stream, _unused) = opened.map_err(|reason| self.lost(&reason))?;
        let written = block_on(stream.write_all(&[kind.byte()]));
        written.map_err(|error| self.write_failed(error))?;
        Ok(stream)
    }

    /// Suspends or resumes stall detection, for example while a user is being asked.
    pub(crate) fn suspend_stall_check(&self, stall_suspended: bool) {
        self.stall_suspended.store(stall_suspended, Relaxed);
    }

    /// Runs a future that waits for the peer; stall detection covers it.
    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.wait_in(|| block_on(future))
    }

    /// Like [`Self::wait`], for a call that blocks until the peer has acted.
    pub(crate) fn wait_in<T>(&self, call: impl FnOnce() -> T) -> T {
        self.awaiting.fetch_add(1, Relaxed);
        let output = call();
        self.awaiting.fetch_sub(1, Relaxed);
        output
    }

    /// Waits for the peer for at most `limit`, without stall detection. Returns `None` after that
    /// time. A cancellation closes the connection, which ends the wait.
    pub(crate) fn wait_within<F: Future>(&self, limit: Duration, future: F) -> Option<F::Output> {
        block_on_timeout(future, limit)
    }

    /// Like [`Self::wait_within`], for an optional step on another connection. Also returns `None`
    /// when the transfer's first connection is closed.
    pub(crate) fn wait_meanwhile<F: Future>(
        &self,
        limit: Duration,
        future: F,
    ) -> Option<F::Output> {
        block_on_timeout(until(future, self.connection.closed()), limit).flatten()
    }

    /// Runs a call that keeps a thread from reading, such as a write to the disk.
    pub(crate) fn while_not_reading<T>(&self, call: impl FnOnce() -> T) -> T {
        self.not_reading.fetch_add(1, Relaxed);
        let output = call();
        self.not_reading.fetch_sub(1, Relaxed);
        output
    }

    /// Returns true while some thread is in [`Self::while_not_reading`].
    pub(crate) fn is_not_reading(&self) -> bool {
        self.not_reading.load(Relaxed) > 0
    }

    /// Monitors the transfer until it is over, then calls `stop` to wake the threads that wait for
    /// each other. Ends the transfer if `look` returns an error. Also ends it if a peer moves less
    /// than [`STALL_BYTES`] in [`STALL_TIMEOUT`] while a thread is in [`Self::wait`] or `due`
    /// returns true.
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
                let why = LostReason::Stalled { seconds, detected_by: self.role };
                self.fail(TransferError::NetworkLost { why });
            }
        }
        stop();
    }

    /// Returns true if the peer owes data and this side is reading.
    fn is_awaited(&self, due: impl Fn() -> bool) -> bool {
        let due = due();
        !self.is_not_reading() && (due || self.awaiting.load(Relaxed) > 0)
    }

    /// Waits until the transfer is over or `limit` has passed. Returns true if it is over.
    fn wait_for_end(&self, limit: Duration) -> bool {
        let guard = lock(&self.ended.0);
        let waited = self.ended.1.wait_timeout_while(guard, limit, |()| !self.is_over());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
        self.is_over()
    }

    /// Returns the bytes of all datagrams so far, in both directions.
    pub(crate) fn wire_bytes(&self) -> u64 {
        self.paths().map(|stats| stats.bytes_sent + stats.bytes_received).sum()
    }

    /// Returns a placeholder error for a thread that was woken at the end of the transfer. It is
    /// ignored; the reason was recorded before.
    pub(crate) fn stopped(&self) -> TransferError {
        debug_assert!(self.is_over());
        TransferError::stopped()
    }

    /// Returns an error for a violation of SPEC section 10 by the peer.
    pub(crate) fn protocol(&self, what: impl Into<String>) -> TransferError {
        TransferError::Protocol { peer: self.role.peer(), what: what.into() }
    }

    /// Returns the error for a peer that sent no message within `limit`.
    pub(crate) fn no_message(&self, limit: Duration) -> TransferError {
        let (peer, seconds) = (self.role.peer(), limit.as_secs());
        TransferError::NetworkLost { why: LostReason::NoMessage { peer, seconds } }
    }

    /// Returns an error for a failed disk operation on this side.
    pub(crate) fn disk(&self, what: impl std::fmt::Display) -> TransferError {
        TransferError::Disk { role: self.role, what: what.to_string() }
    }

    /// Converts the close reason of a connection to an error. If the peer closes a parallel
    /// connection as done, that carries no reason. The peer closes the first connection before,
    /// with the reason, which may arrive later.
    pub(crate) fn lost(&self, reason: &CloseReason) -> TransferError {
        let first = match reason {
            CloseReason::Peer { code: close::DONE, .. } => self.explanation(),
            _ => None,
        };
        TransferError::from_close(first.as_ref().unwrap_or(reason), self.role)
    }

    /// Returns the close reason of the first connection, if it arrives within a moment.
    fn explanation(&self) -> Option<CloseReason> {
        block_on_timeout(self.connection.closed(), EXPLANATION_TIMEOUT)
    }

    pub(crate) fn read_failed(&self, error: ReadError) -> TransferError {
        match error {
            ReadError::ConnectionLost(reason) => self.lost(&reason),
            ReadError::Reset(_) | ReadError::Stopped => self.explained("it reset a stream"),
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
                self.explained("it stopped reading a stream")
            }
        }
    }

    /// Explains a broken stream. The CLOSE behind it usually carries the reason.
    fn explained(&self, otherwise: &str) -> TransferError {
        match self.explanation() {
            Some(reason) => self.lost(&reason),
            None => self.protocol(otherwise),
        }
    }
}
