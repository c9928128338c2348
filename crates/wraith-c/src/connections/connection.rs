//! A raw connection to a peer: streams, datagrams, and its end.

use std::sync::Arc;

use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;
use wraith::{
    Bytes, CloseReason, ConnectBuilder, Connection, DatagramError, RecvStream, SendStream,
    ServiceAddress, SharedStream,
};

use super::ended;
use super::stream::{StreamEntry, wraith_stream_t};
use crate::border::{c_enum, export, write_wanted};
use crate::files::node::{NodeRuntime, wraith_node_t};
use crate::options::{millis, set};
use crate::status::wraith_status_t::{WRAITH_CANCELLED, WRAITH_EXHAUSTED, WRAITH_INVALID_STATE};
use crate::status::{Failure, Outcome};
use crate::table::{Kind, Table};
use crate::waiting::{TaskResult, wait};

/// A raw connection.
pub type wraith_connection_t = u64;

c_enum! {
    /// Why a connection ended. Later versions add numbers; treat unknown ones as
    /// `WRAITH_CLOSED_OTHER`.
    pub enum wraith_close_cause_t of CloseReason, else WRAITH_CLOSED_OTHER {
        /// Any other cause.
        WRAITH_CLOSED_OTHER = 0,
        /// This side closed or freed it.
        WRAITH_CLOSED_HERE = 1: CloseReason::Local,
        /// The peer closed it, with a code and a text.
        WRAITH_CLOSED_BY_PEER = 2: CloseReason::Peer { .. },
        /// No packet arrived from the peer for some seconds.
        WRAITH_CLOSED_IDLE_TIMEOUT = 3: CloseReason::IdleTimeout,
        /// The path carries only packets that are too small.
        WRAITH_CLOSED_PATH_MTU = 4: CloseReason::PathMtu,
        /// The peer violated the protocol.
        WRAITH_CLOSED_PROTOCOL = 5: CloseReason::Violation(_),
    }
}

static wraith_connection_t: Table<ConnectionEntry> = Table::new(Kind::Connection);

/// A connection, or the search for its service.
pub(super) struct ConnectionEntry {
    opened: TaskResult<Connection>,
    /// Ends the search.
    stop: CancellationToken,
    /// A datagram that did not fit into the buffer of a call. Locked while a call waits for one.
    datagram: Mutex<Option<Bytes>>,
    /// Cancelled when the handle is freed.
    freed: CancellationToken,
    node: Arc<NodeRuntime>,
}

impl ConnectionEntry {
    pub fn accepted(connection: Connection, node: &Arc<NodeRuntime>) -> Self {
        let (_, opened) = watch::channel(Some(Ok(connection)));
        Self::new(TaskResult(opened), CancellationToken::new(), node)
    }

    fn new(
        opened: TaskResult<Connection>,
        stop: CancellationToken,
        node: &Arc<NodeRuntime>,
    ) -> Self {
        let freed = CancellationToken::new();
        Self { opened, stop, datagram: Mutex::new(None), freed, node: Arc::clone(node) }
    }

    pub fn insert(self) -> Outcome<wraith_connection_t> {
        wraith_connection_t.insert(self)
    }

    /// Returns the connection if it is open.
    fn opened_now(&self) -> Outcome<Connection> {
        let words = "the connection is not open yet";
        self.opened.now().unwrap_or_else(|| Err(Failure::new(WRAITH_INVALID_STATE, words)))
    }

    /// Waits for a new stream, and returns its handle.
    fn stream(
        &self,
        timeout_ms: u64,
        open: impl AsyncFnOnce(Connection) -> Result<(SendStream, RecvStream), CloseReason>,
    ) -> Outcome<wraith_stream_t> {
        let stream = wait(timeout_ms, &self.freed, async {
            open(self.opened.get().await?).await.map_err(|reason| ended(&reason))
        })?;
        StreamEntry::new(SharedStream::new(stream), &self.node).insert()
    }
}

impl Drop for ConnectionEntry {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Starts to search for a service and returns the handle of the connection to it.
fn connect(
    node: &Arc<NodeRuntime>,
    to: ServiceAddress,
    timeout_ms: u64,
) -> Outcome<wraith_connection_t> {
    let builder = set(node.node.connect(to), millis(timeout_ms), ConnectBuilder::timeout);
    let stop = node.stop.child_token();
    let stopped = stop.clone();
    let opened = node.run(async move {
        tokio::select! {
            biased;
            () = stopped.cancelled() => {
                Err(Failure::new(WRAITH_CANCELLED, "the search was cancelled"))
            }
            found = builder.open() => Ok(found?),
        }
    });
    ConnectionEntry::new(opened, stop, node).insert()
}

export!(
    /// Starts to search for the service behind `source`, a code or ticket of a service, and returns
    /// at once: `wraith_connection_wait` waits until the connection is open. The search takes at
    /// most `timeout_ms` milliseconds; 0 for the default, which is 10 s, or 30 s with the DHT.
    pub fn wraith_connect(
        node: Object<wraith_node_t>,
        source: Text,
        timeout_ms: u64,
    ) -> Outcome<wraith_connection_t> {
        connect(&node, source.trim().parse()?, timeout_ms)
    }

    /// Like `wraith_connect`, for the service `service` of a contact of this name. The contact must
    /// have this node among its contacts.
    pub fn wraith_connect_to_contact(
        node: Object<wraith_node_t>,
        name: Text,
        service: Text,
        timeout_ms: u64,
    ) -> Outcome<wraith_connection_t> {
        let to = ServiceAddress::of_contact(node.node.contact(name)?, service);
        connect(&node, to, timeout_ms)
    }

    /// Waits until the connection is open, for at most `timeout_ms` milliseconds (or
    /// `WRAITH_FOREVER`).
    ///
    /// Returns `WRAITH_OK`, the status of its failure, or `WRAITH_TIMED_OUT` if the search still
    /// runs. An accepted connection is open from the beginning. Other calls that wait do the same
    /// first; those that do not wait return `WRAITH_INVALID_STATE` before it is open.
    pub fn wraith_connection_wait(
        connection: Object<wraith_connection_t>,
        timeout_ms: u64,
    ) -> Outcome {
        wait(timeout_ms, &connection.freed, connection.opened.get()).map(drop)
    }

    /// Returns the authenticated NodeId of the peer: 32 bytes.
    pub fn wraith_connection_peer(connection: Object<wraith_connection_t>, out: Buffer) -> Outcome {
        out.write(connection.opened_now()?.peer().as_bytes())
    }

    /// Returns the current address of the peer, or of the relay in between, as text.
    pub fn wraith_connection_remote(
        connection: Object<wraith_connection_t>,
        out: Buffer,
    ) -> Outcome {
        out.write(connection.node.node.shown(&connection.opened_now()?.remote()).as_bytes())
    }

    /// Returns the kind of the current path: `loopback`, `lan`, `direct`, `relay` or `custom`.
    pub fn wraith_connection_route(
        connection: Object<wraith_connection_t>,
        out: Buffer,
    ) -> Outcome {
        let route = connection.node.node.route(&connection.opened_now()?.remote());
        out.write(route.kind.name().as_bytes())
    }

    /// Opens a stream. Waits while the peer's limit of streams is reached, for at most `timeout_ms`
    /// milliseconds (or `WRAITH_FOREVER`). The peer sees the stream with its first bytes.
    pub fn wraith_connection_open_stream(
        connection: Object<wraith_connection_t>,
        timeout_ms: u64,
    ) -> Outcome<wraith_stream_t> {
        connection.stream(timeout_ms, async |connection| connection.open_stream().await)
    }

    /// Waits for the next stream that the peer opens, for at most `timeout_ms` milliseconds (or
    /// `WRAITH_FOREVER`).
    pub fn wraith_connection_accept_stream(
        connection: Object<wraith_connection_t>,
        timeout_ms: u64,
    ) -> Outcome<wraith_stream_t> {
        connection.stream(timeout_ms, async |connection| connection.accept_stream().await)
    }

    /// Returns the size of the largest datagram that can be sent now; 0 if the peer accepts none.
    /// It is 627 bytes or more unless the peer accepts less, and changes with the path.
    pub fn wraith_connection_max_datagram(
        connection: Object<wraith_connection_t>,
    ) -> Outcome<usize> {
        Ok(connection.opened_now()?.max_datagram_len())
    }

    /// Queues an unreliable datagram. `WRAITH_INVALID_INPUT` if it is too large now, and
    /// `WRAITH_EXHAUSTED` if 256 of them wait already.
    pub fn wraith_connection_send_datagram(
        connection: Object<wraith_connection_t>,
        datagram: Bytes,
    ) -> Outcome {
        let connection = connection.opened_now()?;
        // Before a copy of any length is made.
        let max = connection.max_datagram_len();
        if datagram.len() > max {
            return Err(DatagramError::TooLarge { max }.into());
        }
        Ok(connection.send_datagram(Bytes::copy_from_slice(datagram))?)
    }

    /// Waits for the next datagram of the peer, for at most `timeout_ms` milliseconds (or
    /// `WRAITH_FOREVER`). At most 256 are queued; beyond that, the oldest are dropped.
    pub fn wraith_connection_read_datagram(
        connection: Object<wraith_connection_t>,
        timeout_ms: u64,
        out: Buffer,
    ) -> Outcome {
        let mut held = wait(timeout_ms, &connection.freed, async {
            let opened = connection.opened.get().await?;
            let mut held = connection.datagram.lock().await;
            if held.is_none() {
                let read = opened.read_datagram().await;
                *held = Some(read.map_err(|reason| ended(&reason))?);
            }
            Ok(held)
        })?;
        out.room(held.as_ref().map_or(0, Bytes::len))?;
        out.write(&held.take().unwrap_or_default())
    }

    /// Closes the connection now: unsent and unread bytes are dropped. To be sure that a stream
    /// arrived, wait with `wraith_stream_acked` first. The peer gets `code`, which starts at 0x100,
    /// and at most 512 bytes of `reason`. A connection that is not open yet is not searched for any
    /// more.
    pub fn wraith_connection_close(
        connection: Object<wraith_connection_t>,
        code: u64,
        reason: Text,
    ) -> Outcome {
        connection.stop.cancel();
        if let Some(Ok(opened)) = connection.opened.now() {
            opened.close(code, reason);
        }
        Ok(())
    }

    /// Waits for the end of the connection, for at most `timeout_ms` milliseconds (or
    /// `WRAITH_FOREVER`).
    ///
    /// `*cause` becomes a `wraith_close_cause_t`. If the peer has closed the connection, `*code` is
    /// its code, and the bytes are its text, which may contain anything; otherwise `*code` is 0,
    /// and there are no bytes. `cause` and `code` may be NULL. If the connection was never open,
    /// the call returns the status of that failure.
    pub fn wraith_connection_closed(
        connection: Object<wraith_connection_t>,
        timeout_ms: u64,
        cause: OutOrNull<u32>,
        code: OutOrNull<u64>,
        out: Buffer,
    ) -> Outcome {
        let reason = wait(timeout_ms, &connection.freed, async {
            Ok(connection.opened.get().await?.closed().await)
        })?;
        let (peers_code, text) = match &reason {
            CloseReason::Peer { code, reason } => (*code, reason.as_bytes()),
            _ => (0, &b""[..]),
        };
        out.room(text.len())?;
        write_wanted(cause.as_ref(), wraith_close_cause_t::of(&reason) as u32);
        write_wanted(code.as_ref(), peers_code);
        out.write(text)
    }

    /// Frees the handle, and ends the search for the service. Once the handles of the connection
    /// and of all its streams are freed, finished streams are still delivered, and then the
    /// connection closes with code 0.
    pub fn wraith_connection_free(connection: wraith_connection_t) -> Outcome {
        wraith_connection_t.remove(connection).map(|entry| {
            entry.stop.cancel();
            entry.freed.cancel();
        })
    }
);

impl From<DatagramError> for Failure {
    fn from(error: DatagramError) -> Self {
        match error {
            DatagramError::TooLarge { .. } => Self::input(error.to_string()),
            DatagramError::Full => Self::new(WRAITH_EXHAUSTED, error.to_string()),
            DatagramError::ConnectionLost(reason) => ended(&reason),
        }
    }
}
