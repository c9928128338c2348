//! Raw connections: streams and datagrams with an authenticated peer.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use wraith::{Bytes, DatagramError, ReadError, ReadToEndError, SharedStream, WriteError};

use crate::runtime::in_runtime;

/// Maximum number of bytes of one [`ConnectionStream::write`].
const WRITE_MAX: usize = 16 << 20;
/// Longest time limit; a longer one becomes this. It is over a hundred years.
const TIMEOUT_MAX: Duration = Duration::from_secs(u32::MAX as u64);

/// Limits a duration of the caller, so that no sum with it overflows.
pub(crate) fn bounded(limit: Duration) -> Duration {
    limit.min(TIMEOUT_MAX)
}

/// How a service is found.
#[derive(Clone, Debug, uniffi::Enum)]
pub enum ServiceAddress {
    /// By its code or ticket. A code can be tried once.
    Source {
        /// The code or ticket.
        source: String,
    },
    /// A service for contacts.
    Contact {
        /// Local name of the contact that runs the service. The contact must have this node among
        /// its contacts.
        contact: String,
        /// Name of the service.
        service: String,
    },
}

/// Options of a connection to a service.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct ConnectOptions {
    /// Time limit for finding the service. Default: 10 s, or 30 s with the DHT.
    #[uniffi(default = None)]
    pub timeout: Option<Duration>,
    /// Shares the connection with other callers of this node that want the same service. The last
    /// of them that frees it closes it, about a minute later.
    #[uniffi(default = false)]
    pub shared: bool,
}

/// The cause of a connection's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, uniffi::Enum)]
pub enum CloseCause {
    /// This side closed or freed it.
    Here,
    /// The peer closed it, with a code and a text.
    ByPeer,
    /// No packet arrived from the peer for some seconds.
    IdleTimeout,
    /// The path carries only packets that are too small.
    PathMtu,
    /// The peer violated the protocol.
    Protocol,
    /// Any other cause.
    Other,
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, uniffi::Record)]
pub struct CloseReason {
    /// The cause.
    pub cause: CloseCause,
    /// Code of the peer, for [`CloseCause::ByPeer`].
    pub code: Option<u64>,
    /// Text of the peer, which may contain anything; for other causes, a text of this library.
    pub text: String,
}

impl From<wraith::CloseReason> for CloseReason {
    fn from(reason: wraith::CloseReason) -> Self {
        use wraith::CloseReason as LibraryReason;
        let cause = match &reason {
            LibraryReason::Peer { .. } => CloseCause::ByPeer,
            LibraryReason::Local => CloseCause::Here,
            LibraryReason::IdleTimeout => CloseCause::IdleTimeout,
            LibraryReason::PathMtu => CloseCause::PathMtu,
            LibraryReason::Violation(_) => CloseCause::Protocol,
            _ => CloseCause::Other,
        };
        match reason {
            LibraryReason::Peer { code, reason } => Self { cause, code: Some(code), text: reason },
            reason => Self { cause, code: None, text: reason.to_string() },
        }
    }
}

/// Why a call of a [`Connection`] or a [`ConnectionStream`] failed.
#[derive(Clone, Debug, PartialEq, Eq, Error, uniffi::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The connection has ended.
    #[error("the connection has ended: {}", reason.text)]
    Closed {
        /// Why it ended.
        reason: CloseReason,
    },
    /// The peer has reset the stream.
    #[error("the peer reset the stream (code {code})")]
    Reset {
        /// Code of the peer.
        code: u64,
    },
    /// The peer has stopped reading the stream.
    #[error("the peer stopped the stream (code {code})")]
    Stopped {
        /// Code of the peer.
        code: u64,
    },
    /// This side has finished, reset or stopped this direction of the stream.
    #[error("this side has ended the stream")]
    Ended,
    /// There are more bytes than the limit.
    #[error("there are more than {max} bytes")]
    TooLong {
        /// The limit.
        max: u64,
    },
    /// Too many datagrams wait to be sent.
    #[error("the queue of datagrams is full")]
    QueueFull,
}

impl From<wraith::CloseReason> for TransportError {
    fn from(reason: wraith::CloseReason) -> Self {
        Self::Closed { reason: reason.into() }
    }
}

impl From<WriteError> for TransportError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(code) => Self::Stopped { code },
            WriteError::Finished => Self::Ended,
            WriteError::ConnectionLost(reason) => reason.into(),
        }
    }
}

impl From<ReadError> for TransportError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Reset(code) => Self::Reset { code },
            ReadError::Stopped => Self::Ended,
            ReadError::ConnectionLost(reason) => reason.into(),
        }
    }
}

impl From<ReadToEndError> for TransportError {
    fn from(error: ReadToEndError) -> Self {
        match error {
            ReadToEndError::TooLong { max } => too_long(max),
            ReadToEndError::Failed(error) => error.into(),
        }
    }
}

impl From<DatagramError> for TransportError {
    fn from(error: DatagramError) -> Self {
        match error {
            DatagramError::TooLarge { max } => too_long(max),
            DatagramError::Full => Self::QueueFull,
            DatagramError::ConnectionLost(reason) => reason.into(),
        }
    }
}

fn too_long(max: usize) -> TransportError {
    TransportError::TooLong { max: max as u64 }
}

/// An authenticated, encrypted connection to a peer. Once it and all its streams are freed,
/// finished streams are still delivered, and then it closes with code 0.
#[derive(Debug, uniffi::Object)]
pub struct Connection {
    connection: wraith::Connection,
    /// Counts as a caller of a shared connection.
    _caller: Option<wraith::SharedConnection>,
    node: wraith::Node,
}

impl Connection {
    pub(crate) fn new(connection: wraith::Connection, node: wraith::Node) -> Arc<Self> {
        Arc::new(Self { connection, _caller: None, node })
    }

    pub(crate) fn shared(caller: wraith::SharedConnection, node: wraith::Node) -> Arc<Self> {
        Arc::new(Self { connection: caller.clone(), _caller: Some(caller), node })
    }
}

#[uniffi::export]
impl Connection {
    /// Returns the NodeId of the peer, authenticated by the handshake.
    pub fn peer(&self) -> String {
        self.connection.peer().to_string()
    }

    /// Returns the current address of the peer, or of the relay in between.
    pub fn remote(&self) -> String {
        self.node.shown(&self.connection.remote())
    }

    /// Returns the kind of the current path: loopback, lan, direct, relay or custom.
    pub fn route(&self) -> String {
        self.node.route(&self.connection.remote()).kind.name().to_owned()
    }

    /// Opens a stream; waits while the peer's limit of streams is reached. The peer sees the stream
    /// with its first bytes.
    ///
    /// # Errors
    /// [`TransportError::Closed`].
    pub async fn open_stream(&self) -> Result<Arc<ConnectionStream>, TransportError> {
        let stream = in_runtime(self.connection.open_stream()).await?;
        Ok(ConnectionStream::new(SharedStream::new(stream)))
    }

    /// Waits for the next stream that the peer opens.
    ///
    /// # Errors
    /// [`TransportError::Closed`].
    pub async fn accept_stream(&self) -> Result<Arc<ConnectionStream>, TransportError> {
        let stream = in_runtime(self.connection.accept_stream()).await?;
        Ok(ConnectionStream::new(SharedStream::new(stream)))
    }

    /// Returns the size of the largest datagram that can be sent now; 0 if the peer accepts none.
    /// It is 627 bytes or more unless the peer accepts less, and changes with the path.
    pub fn max_datagram_len(&self) -> u64 {
        self.connection.max_datagram_len() as u64
    }

    /// Queues an unreliable datagram.
    ///
    /// # Errors
    /// [`TransportError::TooLong`] beyond [`Connection::max_datagram_len`],
    /// [`TransportError::QueueFull`] if 256 of them wait already, [`TransportError::Closed`].
    pub fn send_datagram(&self, datagram: Vec<u8>) -> Result<(), TransportError> {
        Ok(self.connection.send_datagram(Bytes::from(datagram))?)
    }

    /// Waits for the next datagram of the peer. At most 256 are queued; beyond that, the oldest are
    /// dropped.
    ///
    /// # Errors
    /// [`TransportError::Closed`].
    pub async fn read_datagram(&self) -> Result<Vec<u8>, TransportError> {
        let datagram = in_runtime(self.connection.read_datagram()).await?;
        Ok(datagram.to_vec())
    }

    /// Closes the connection now: unsent and unread bytes are dropped. To be sure that a stream
    /// arrived, wait for [`ConnectionStream::acked`] first. The peer gets `code`, which starts at
    /// 0x100, and at most 512 bytes of `reason`.
    pub fn close_with(&self, code: u64, reason: String) {
        self.connection.close(code, &reason);
    }

    /// Waits for the end of the connection and returns its reason.
    pub async fn closed(&self) -> CloseReason {
        in_runtime(self.connection.closed()).await.into()
    }
}

/// A stream of a [`Connection`], in both directions. If it is freed, a sending direction that was
/// not finished is reset, and a receiving one whose end was not read is stopped, each with code 0.
///
/// Calls that wait for one direction run one after another. A cancelled call has sent nothing, and
/// loses no received byte.
#[derive(Debug, uniffi::Object)]
pub struct ConnectionStream {
    stream: SharedStream,
}

impl ConnectionStream {
    fn new(stream: SharedStream) -> Arc<Self> {
        Arc::new(Self { stream })
    }
}

#[uniffi::export]
impl ConnectionStream {
    /// Queues all of `bytes`, at most 16 MiB, for sending. Waits while 1 MiB is queued already.
    ///
    /// # Errors
    /// [`TransportError::Stopped`] if the peer reads no more, [`TransportError::Ended`] after
    /// [`ConnectionStream::finish`] or [`ConnectionStream::reset`], [`TransportError::Closed`],
    /// [`TransportError::TooLong`].
    pub async fn write(&self, bytes: Vec<u8>) -> Result<(), TransportError> {
        if bytes.len() > WRITE_MAX {
            return Err(too_long(WRITE_MAX));
        }
        let written = self.stream.write(Bytes::from(bytes));
        Ok(in_runtime(written).await?)
    }

    /// Ends the sending direction after the written bytes. The peer can still send.
    ///
    /// # Errors
    /// As [`ConnectionStream::write`].
    pub fn finish(&self) -> Result<(), TransportError> {
        Ok(self.stream.finish()?)
    }

    /// Waits until the peer has acknowledged all bytes and the end of the finished stream.
    ///
    /// # Errors
    /// As [`ConnectionStream::write`].
    pub async fn acked(&self) -> Result<(), TransportError> {
        Ok(in_runtime(self.stream.acked()).await?)
    }

    /// Resets the sending direction: drops its queued bytes and sends `code` to the peer (at most
    /// 2^62 - 1; a larger one becomes that). Also ends a write that waits.
    pub fn reset(&self, code: u64) {
        self.stream.reset(code);
    }

    /// Returns the next bytes of the peer, at least one and at most `max`, which is not 0. No bytes
    /// are the end of the stream.
    ///
    /// # Errors
    /// [`TransportError::Reset`] if the peer has reset the stream, [`TransportError::Ended`] after
    /// [`ConnectionStream::stop`], [`TransportError::Closed`].
    pub async fn read(&self, max: u64) -> Result<Vec<u8>, TransportError> {
        // A read of no bytes would look like the end.
        let max = usize::try_from(max.max(1)).unwrap_or(usize::MAX);
        Ok(in_runtime(self.stream.read(max)).await?)
    }

    /// Returns all bytes of the peer up to the end of the stream, at most `max`. Bytes that a failed
    /// call has received stay available to later calls.
    ///
    /// # Errors
    /// [`TransportError::TooLong`] if there are more than `max` bytes; otherwise as
    /// [`ConnectionStream::read`].
    pub async fn read_to_end(&self, max: u64) -> Result<Vec<u8>, TransportError> {
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        Ok(in_runtime(self.stream.read_to_end(max)).await?)
    }

    /// Stops reading: drops received bytes and sends `code` to the peer (at most 2^62 - 1; a larger
    /// one becomes that), whose writes then fail. Also ends a read that waits.
    pub fn stop(&self, code: u64) {
        self.stream.stop(code);
    }
}
