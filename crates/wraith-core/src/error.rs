//! The errors of this crate, in three kinds that are never mixed:
//!
//! - [`Violation`]: the peer broke the protocol.
//! - [`StreamError`]: the caller misused a stream.
//! - [`CloseReason`]: the reason a connection ended.
//!
//! Unauthenticated bytes cause none of these errors. Such bytes are dropped silently and counted.

use thiserror::Error;

/// An authenticated peer broke the protocol; the connection closes with the matching code (SPEC
/// §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct Violation {
    /// Close code sent to the peer.
    pub code: u64,
    /// Description of the violation, sent as the reason of the CLOSE frame.
    pub what: &'static str,
}

impl Violation {
    /// A frame that is malformed or not allowed (code 1).
    pub const fn protocol(what: &'static str) -> Self {
        Self { code: code::PROTOCOL_VIOLATION, what }
    }
    /// More bytes than flow control allowed (code 2).
    pub const fn flow_control(what: &'static str) -> Self {
        Self { code: code::FLOW_CONTROL, what }
    }
    /// More streams than the limit allowed (code 3).
    pub const fn stream_limit(what: &'static str) -> Self {
        Self { code: code::STREAM_LIMIT, what }
    }
    /// Bytes beyond the final size of a stream, or a changed final size (code 4).
    pub const fn final_size(what: &'static str) -> Self {
        Self { code: code::FINAL_SIZE, what }
    }
}

/// Close codes of SPEC §5. Codes from 0x100 up belong to the application.
pub mod code {
    /// No error.
    pub const NO_ERROR: u64 = 0;
    /// A malformed or forbidden frame.
    pub const PROTOCOL_VIOLATION: u64 = 1;
    /// Flow control exceeded.
    pub const FLOW_CONTROL: u64 = 2;
    /// Too many streams.
    pub const STREAM_LIMIT: u64 = 3;
    /// A stream's final size changed or was exceeded.
    pub const FINAL_SIZE: u64 = 4;
    /// A key reached its limit and could not be replaced.
    pub const KEY_LIMIT: u64 = 6;
    /// The path drops packets of the smallest size.
    pub const PATH_MTU: u64 = 7;
}

/// Misuse of a stream, or its terminal state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StreamError {
    /// The stream does not exist, or is closed in this direction.
    #[error("the stream is closed")]
    Closed,
    /// The peer reset its sending side.
    #[error("the peer reset the stream (code {0})")]
    Reset(u64),
    /// The peer asked this side to stop sending.
    #[error("the peer stopped the stream (code {0})")]
    Stopped(u64),
}

/// The reason a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CloseReason {
    /// This side closed the connection.
    #[error("closed by this side")]
    Local,
    /// The peer closed the connection.
    #[error("closed by the peer (code {code}): {reason}")]
    Peer {
        /// Close code.
        code: u64,
        /// Text from the peer; untrusted.
        reason: String,
    },
    /// No packet arrived from the peer within the idle timeout.
    #[error("no packet from the peer within the idle timeout")]
    IdleTimeout,
    /// The path carries small packets and drops those of 660 bytes ([`MTU_MIN`](crate::mtud::MTU_MIN)).
    #[error(
        "the path to the peer drops packets of 660 bytes and more, so it carries no transfer; use another network or a relay"
    )]
    PathMtu,
    /// The handshake did not complete in time.
    #[error("the peer did not answer")]
    HandshakeTimeout,
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Violation(Violation),
    /// A key reached its limit before the peer allowed a key update.
    #[error("a packet key reached its usage limit")]
    KeyLimit,
}
