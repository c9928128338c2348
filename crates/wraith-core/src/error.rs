//! What can go wrong, in three kinds that are never mixed: a peer that broke the protocol ([`Violation`]), a caller
//! that misused a stream ([`StreamError`]), and why a connection ended ([`CloseReason`]).
//!
//! Bytes from strangers cause none of these: they are dropped in silence and counted.

use thiserror::Error;

/// An authenticated peer broke the protocol; the connection closes with the matching code (SPEC §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{what}")]
pub struct Violation {
    /// Close code sent to the peer.
    pub code: u64,
    /// What it did.
    pub what: &'static str,
}

impl Violation {
    /// A frame that does not parse, or is not allowed here (code 1).
    pub const fn protocol(what: &'static str) -> Self {
        Self { code: code::PROTOCOL_VIOLATION, what }
    }
    /// More bytes than were allowed (code 2).
    pub const fn flow_control(what: &'static str) -> Self {
        Self { code: code::FLOW_CONTROL, what }
    }
    /// More streams than were allowed (code 3).
    pub const fn stream_limit(what: &'static str) -> Self {
        Self { code: code::STREAM_LIMIT, what }
    }
    /// Bytes beyond, or a change of, a stream's end (code 4).
    pub const fn final_size(what: &'static str) -> Self {
        Self { code: code::FINAL_SIZE, what }
    }
}

/// Close codes of SPEC §5. From 0x100 they belong to the application.
pub mod code {
    /// Nothing is wrong.
    pub const NO_ERROR: u64 = 0;
    /// A malformed or forbidden frame.
    pub const PROTOCOL_VIOLATION: u64 = 1;
    /// Flow control exceeded.
    pub const FLOW_CONTROL: u64 = 2;
    /// Too many streams.
    pub const STREAM_LIMIT: u64 = 3;
    /// A stream's final size changed or was passed.
    pub const FINAL_SIZE: u64 = 4;
    /// A key reached its limit and could not be replaced.
    pub const KEY_LIMIT: u64 = 6;
}

/// Misuse of, or a terminal state of, one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum StreamError {
    /// No such stream, or it is closed for this direction.
    #[error("the stream is closed")]
    Closed,
    /// The peer reset its sending side.
    #[error("the peer reset the stream (code {0})")]
    Reset(u64),
    /// The peer asked us to stop sending.
    #[error("the peer stopped the stream (code {0})")]
    Stopped(u64),
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CloseReason {
    /// We closed it.
    #[error("closed by this side")]
    Local,
    /// The peer closed it.
    #[error("closed by the peer (code {code}): {reason}")]
    Peer {
        /// Close code.
        code: u64,
        /// The peer's words; untrusted.
        reason: String,
    },
    /// Nothing was heard for the idle timeout.
    #[error("nothing was heard from the peer for too long")]
    IdleTimeout,
    /// The handshake did not complete in time.
    #[error("the peer did not answer")]
    HandshakeTimeout,
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Violation(Violation),
    /// A key reached its limit before the peer let us replace it.
    #[error("a key reached its limit")]
    KeyLimit,
}
