//! Errors of this crate's handles.

use std::io;

use thiserror::Error;
use wraith_core::{CloseReason, StreamError};

/// Why a connection could not be established.
#[derive(Debug, Error)]
pub enum ConnectError {
    /// No address was given.
    #[error("no address to connect to")]
    NoAddress,
    /// The NodeId is not a valid key, or the core refused for another reason.
    #[error("cannot connect: {0}")]
    Refused(#[from] wraith_core::ConnectError),
    /// The operating system has no route to any of the addresses.
    #[error("the address cannot be reached: {0}")]
    Unreachable(#[source] io::Error),
    /// Every attempt failed; this is the reason of the last one.
    #[error("{0}")]
    Closed(#[from] CloseReason),
    /// The endpoint was closed.
    #[error("the endpoint is closed")]
    EndpointClosed,
}

/// Why a stream accepts no more bytes.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The peer stopped reading the stream.
    #[error("the peer stopped the stream (code {0})")]
    Stopped(u64),
    /// The stream was finished or reset on this side.
    #[error("the stream is finished")]
    Finished,
    /// The connection ended.
    #[error("{0}")]
    ConnectionLost(#[from] CloseReason),
}

impl From<StreamError> for WriteError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Stopped(code) | StreamError::Reset(code) => Self::Stopped(code),
            StreamError::Closed => Self::Finished,
        }
    }
}

/// Why a stream delivers no more bytes before its end.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The peer reset the stream.
    #[error("the peer reset the stream (code {0})")]
    Reset(u64),
    /// This side stopped the stream.
    #[error("the stream was stopped")]
    Stopped,
    /// The connection ended.
    #[error("{0}")]
    ConnectionLost(#[from] CloseReason),
}

impl From<StreamError> for ReadError {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Reset(code) => Self::Reset(code),
            StreamError::Stopped(_) | StreamError::Closed => Self::Stopped,
        }
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match &error {
            WriteError::Stopped(_) => io::ErrorKind::BrokenPipe,
            WriteError::Finished => io::ErrorKind::NotConnected,
            WriteError::ConnectionLost(_) => io::ErrorKind::ConnectionAborted,
        };
        Self::new(kind, error)
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match &error {
            ReadError::Reset(_) => io::ErrorKind::ConnectionReset,
            ReadError::Stopped => io::ErrorKind::NotConnected,
            ReadError::ConnectionLost(_) => io::ErrorKind::ConnectionAborted,
        };
        Self::new(kind, error)
    }
}

/// Why [`read_exact`](crate::RecvStream::read_exact) did not fill the buffer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadExactError {
    /// The stream ended after `got` bytes.
    #[error("the stream ended after {got} bytes")]
    Ended {
        /// Bytes filled at the front of the buffer.
        got: usize,
    },
    /// The stream failed.
    #[error("{0}")]
    Failed(#[from] ReadError),
}

/// Why a datagram was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DatagramError {
    /// The datagram exceeds the path MTU, or the peer accepts none.
    #[error("the datagram is too large: at most {max} bytes can be sent now")]
    TooLarge {
        /// Largest datagram that can be sent now.
        max: usize,
    },
    /// The queue is full.
    #[error("the datagram queue is full")]
    Full,
    /// The connection ended.
    #[error("{0}")]
    ConnectionLost(#[from] CloseReason),
}
