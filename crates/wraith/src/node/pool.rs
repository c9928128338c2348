//! Connections that many callers share: one for each peer and service.
//!
//! The first caller dials, and the others wait for its result, be it a connection or an error. A connection without callers is kept
//! for a while, then closed. A connection that was lost is dialled again by the next caller.
//!
//! Invariant: at any time, a service has at most one dialling caller and one open connection here.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::timeout;
use wraith_crypto::{NodeId, kdf};
use wraith_discovery::Capability;
use wraith_transport::Connection;

use crate::error::{Error, ErrorKind};

/// How long a connection without callers is kept by default: the next request of a person or a
/// program often follows within a minute.
pub(crate) const IDLE: Duration = Duration::from_secs(60);

/// A peer, and a hash of the secret of its service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PoolKey(NodeId, [u8; 32]);

impl PoolKey {
    pub fn of(peer: NodeId, secret: &Capability) -> Self {
        Self(peer, kdf::derive("wraith/2 shared connection", secret.as_bytes()))
    }
}

/// The shared connections of a node. Clones are handles of the same pool.
#[derive(Clone, Debug)]
pub(crate) struct Pool(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    idle: Duration,
    entries: Mutex<HashMap<PoolKey, Arc<Entry>>>,
}

#[derive(Debug)]
struct Entry {
    /// Locked while a caller dials.
    slot: AsyncMutex<Slot>,
    /// Number of attempts that failed.
    failed: AtomicU64,
    callers: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Slot {
    connection: Option<Connection>,
    /// The error of the last attempt that failed.
    error: Option<Error>,
}

/// A connection that several callers may share ([`ConnectBuilder::shared`]). It derefs to the
/// [`Connection`].
///
/// The connection stays open while one of its callers has it, and for a while after that.
///
/// [`ConnectBuilder::shared`]: crate::ConnectBuilder::shared
pub struct SharedConnection {
    connection: Connection,
    _caller: Caller,
}

/// A caller, which counts until it is dropped.
struct Caller(Arc<Entry>);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.callers.send_modify(|callers| *callers -= 1);
    }
}

impl Deref for SharedConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl fmt::Debug for SharedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.connection.fmt(f)
    }
}

impl Pool {
    pub fn new(idle: Duration) -> Self {
        Self(Arc::new(Shared { idle, entries: Mutex::default() }))
    }

    /// Returns the open connection to this service, or dials it. A caller that waits for another
    /// one's attempt gets the error if that fails.
    pub async fn get(
        &self,
        runtime: &Handle,
        key: PoolKey,
        limit: Duration,
        dial: impl Future<Output = Result<Connection, Error>>,
    ) -> Result<SharedConnection, Error> {
        let caller = self.join(runtime, key);
        let failed = caller.0.failed.load(Ordering::Acquire);
        let late = || Error::new(ErrorKind::NotFound, "the service did not answer in time");
        let mut slot = timeout(limit, caller.0.slot.lock()).await.map_err(|_| late())?;
        let open = slot.connection.as_ref().filter(|open| open.close_reason().is_none());
        if let Some(connection) = open.cloned() {
            drop(slot);
            return Ok(SharedConnection { connection, _caller: caller });
        }
        if let (true, Some(error)) =
            (caller.0.failed.load(Ordering::Acquire) != failed, &slot.error)
        {
            return Err(error.clone());
        }
        let connection = match dial.await {
            Ok(connection) => slot.connection.insert(connection).clone(),
            Err(error) => {
                slot.error = Some(error.clone());
                caller.0.failed.fetch_add(1, Ordering::Release);
                return Err(error);
            }
        };
        drop(slot);
        Ok(SharedConnection { connection, _caller: caller })
    }

    /// Closes the connections without callers, now.
    pub fn clear(&self) {
        self.entries().clear();
    }

    fn join(&self, runtime: &Handle, key: PoolKey) -> Caller {
        let mut entries = self.entries();
        let entry = entries.entry(key.clone()).or_insert_with(|| {
            let entry = Arc::new(Entry {
                slot: AsyncMutex::default(),
                failed: AtomicU64::new(0),
                callers: watch::Sender::new(0),
            });
            runtime.spawn(close_when_idle(Arc::downgrade(&self.0), key, entry.callers.subscribe()));
            entry
        });
        entry.callers.send_modify(|callers| *callers += 1);
        Caller(Arc::clone(entry))
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<PoolKey, Arc<Entry>>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes an entry once it has had no caller for the pool's idle time. Ends with the entry.
async fn close_when_idle(
    pool: std::sync::Weak<Shared>,
    key: PoolKey,
    mut callers: watch::Receiver<usize>,
) {
    loop {
        if callers.wait_for(|callers| *callers == 0).await.is_err() {
            return;
        }
        let Some(idle) = pool.upgrade().map(|pool| pool.idle) else { return };
        match timeout(idle, callers.wait_for(|callers| *callers > 0)).await {
            Ok(Ok(_)) => continue,
            // The pool was cleared, and the last caller has left.
            Ok(Err(_)) => return,
            Err(_) => {}
        }
        let Some(pool) = pool.upgrade().map(Pool) else { return };
        let mut entries = pool.entries();
        // A caller joins under the same lock.
        if *callers.borrow() == 0 {
            entries.remove(&key);
            return;
        }
    }
}
