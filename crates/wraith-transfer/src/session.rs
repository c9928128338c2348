//! What the threads of one transfer share: the connection, the first error, and the watch over a peer that stalls.
//!
//! The first error wins: it closes the connection with a code and a sentence for the peer, which makes every other thread's
//! next call on a stream fail; those later errors are ignored.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use smallvec::SmallVec;
use wraith_core::CloseReason;
use wraith_transport::{
    Connection, ConnectionStats, Endpoint, ReadError, ReadExactError, WriteError, block_on,
    block_on_timeout,
};

use crate::error::{Role, TransferError, close};
use crate::events::Cancel;
use crate::limits::{LANES_MAX, STALL_BYTES, STALL_TIMEOUT};

/// How often the watch looks at the user's wish to stop.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// A lane that moved less only stood: a handshake and probes of the path's MTU.
const LANE_USED_BYTES: u64 = 256 * 1024;

/// How long a broken stream waits for the CLOSE that explains it.
const EXPLANATION_TIMEOUT: Duration = Duration::from_secs(2);

/// One running transfer.
pub(crate) struct Session {
    pub(crate) connection: Connection,
    lanes: Mutex<Vec<Lane>>,
    role: Role,
    cancel: Cancel,
    first_error: Mutex<Option<TransferError>>,
    over: AtomicBool,
    /// Bytes (or what counts as such) that came or went.
    moved: AtomicU64,
    /// Threads that wait for the peer.
    awaiting: AtomicUsize,
    /// A person takes their time: nothing counts as a stall.
    patient: AtomicBool,
    tick: (Mutex<()>, Condvar),
}

/// A further connection of the transfer.
struct Lane {
    connection: Connection,
    /// Lives as long as the connection is used.
    _endpoint: Endpoint,
}

/// Locks; a thread that panicked elsewhere left nothing half-done behind these locks.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Session {
    pub(crate) fn new(connection: Connection, role: Role, cancel: Cancel) -> Self {
        Self {
            connection,
            lanes: Mutex::default(),
            role,
            cancel,
            first_error: Mutex::new(None),
            over: AtomicBool::new(false),
            moved: AtomicU64::new(0),
            awaiting: AtomicUsize::new(0),
            patient: AtomicBool::new(false),
            tick: (Mutex::new(()), Condvar::new()),
        }
    }

    /// Runs `body`; if it fails, that ends the transfer and `stop` frees the threads that wait for each other.
    pub(crate) fn attend(&self, stop: impl Fn(), body: impl FnOnce() -> Result<(), TransferError>) {
        if let Err(error) = body() {
            self.fail(error);
            stop();
        }
    }

    /// Records the first error and tells the peer. Does nothing once the transfer is over.
    pub(crate) fn fail(&self, error: TransferError) {
        if self.over.swap(true, Relaxed) {
            return;
        }
        let (code, reason) = error.to_close();
        *lock(&self.first_error) = Some(error);
        self.close(code, &reason);
        self.notify_watch();
    }

    /// The transfer has succeeded: later errors do not count.
    pub(crate) fn complete(&self) {
        self.over.store(true, Relaxed);
        self.notify_watch();
    }

    /// The first error, if there was one.
    pub(crate) fn outcome(&self) -> Result<(), TransferError> {
        lock(&self.first_error).clone().map_or(Ok(()), Err)
    }

    /// Closes all connections.
    pub(crate) fn close(&self, code: u64, reason: &str) {
        // First the one that the peer takes the reason from.
        self.connection.close(code, reason);
        self.close_lanes();
    }

    /// Nothing is expected on the lanes any more.
    pub(crate) fn close_lanes(&self) {
        for lane in &*lock(&self.lanes) {
            lane.connection.close(close::DONE, "");
        }
    }

    /// One more connection for the data. False if the transfer is over: then it is closed.
    pub(crate) fn add_lane(&self, endpoint: Endpoint, connection: Connection) -> bool {
        let mut lanes = lock(&self.lanes);
        // Under the lock: whoever ends the transfer closes those that are in the list after that.
        if self.is_over() {
            connection.close(close::DONE, "");
            return false;
        }
        lanes.push(Lane { connection, _endpoint: endpoint });
        true
    }

    /// Statistics of every connection.
    pub(crate) fn paths(&self) -> impl Iterator<Item = ConnectionStats> {
        let lanes: SmallVec<[_; LANES_MAX]> =
            lock(&self.lanes).iter().map(|lane| lane.connection.stats()).collect();
        std::iter::once(self.connection.stats()).chain(lanes)
    }

    /// Connections over which data went.
    pub(crate) fn used_lanes(&self) -> u64 {
        let carried = |stats: &ConnectionStats| stats.bytes_sent + stats.bytes_received;
        let lanes = self.paths().skip(1).filter(|stats| carried(stats) >= LANE_USED_BYTES);
        1 + lanes.count() as u64
    }

    /// Bytes that [`Self::moved`] was told of.
    pub(crate) fn bytes_moved(&self) -> u64 {
        self.moved.load(Relaxed)
    }

    /// True once it failed or completed.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    fn notify_watch(&self) {
        drop(lock(&self.tick.0));
        self.tick.1.notify_all();
    }

    /// `n` bytes came or went.
    pub(crate) fn moved(&self, n: u64) {
        self.moved.fetch_add(n, Relaxed);
    }

    /// While set, the peer owes nothing: its user is being asked.
    pub(crate) fn set_patient(&self, patient: bool) {
        self.patient.store(patient, Relaxed);
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

    /// Waits for the peer before [`Self::watch`] does: at most `limit`, and not longer than the user wishes. `None` when
    /// that time has passed.
    pub(crate) fn wait_within<F: Future>(
        &self,
        limit: Duration,
        future: F,
    ) -> Result<Option<F::Output>, TransferError> {
        let deadline = Instant::now() + limit;
        let mut future = std::pin::pin!(future);
        loop {
            if self.cancel.is_cancelled() {
                return Err(TransferError::Cancelled { role: self.role });
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let output = block_on_timeout(future.as_mut(), left.min(WATCH_INTERVAL));
            if output.is_some() || left.is_zero() {
                return Ok(output);
            }
        }
    }

    /// The same for what the transfer can do without: `None` also when the transfer is over.
    pub(crate) fn wait_meanwhile<F: Future>(
        &self,
        limit: Duration,
        future: F,
    ) -> Result<Option<F::Output>, TransferError> {
        let deadline = Instant::now() + limit;
        let mut future = std::pin::pin!(future);
        while !self.is_over() && Instant::now() < deadline {
            let output = self.wait_within(WATCH_INTERVAL, future.as_mut())?;
            if output.is_some() {
                return Ok(output);
            }
        }
        Ok(None)
    }

    /// Watches until the transfer is over: for the user's wish to stop, and for a peer that moves less than
    /// [`STALL_BYTES`] in [`STALL_TIMEOUT`] while a thread is in [`Self::wait`] or `due` says that something is owed.
    pub(crate) fn watch(&self, due: impl Fn() -> bool, stop: impl Fn()) {
        let (mut since, mut moved) = (Instant::now(), self.moved.load(Relaxed));
        let mut guard = lock(&self.tick.0);
        while !self.is_over() {
            let waited = self.tick.1.wait_timeout(guard, WATCH_INTERVAL);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
            if self.cancel.is_cancelled() {
                self.fail(TransferError::Cancelled { role: self.role });
                stop();
            }
            let now = self.moved.load(Relaxed);
            let idle = self.patient.load(Relaxed) || self.awaiting.load(Relaxed) == 0 && !due();
            if idle || now - moved >= STALL_BYTES {
                (since, moved) = (Instant::now(), now);
            } else if since.elapsed() >= STALL_TIMEOUT {
                let seconds = STALL_TIMEOUT.as_secs();
                let why = format!("nothing moved for {seconds} s (seen by the {})", self.role);
                self.fail(TransferError::NetworkLost { why });
                stop();
            }
            guard = lock(&self.tick.0);
        }
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

    /// What the end of the connection means here.
    pub(crate) fn lost(&self, reason: &CloseReason) -> TransferError {
        TransferError::from_close(reason, self.role)
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
        match block_on_timeout(self.connection.closed(), EXPLANATION_TIMEOUT) {
            Some(reason) => self.lost(&reason),
            None => self.protocol(otherwise),
        }
    }
}
