//! Why the connection of a transfer was lost.

use thiserror::Error;
use wraith_core::CloseReason;

use crate::role::Role;

/// Why the connection of a transfer was lost. Neither user nor program ended it, so it may be
/// restored. Later versions add reasons.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LostReason {
    /// No packet arrived from the peer within the idle timeout.
    #[error("{}", CloseReason::IdleTimeout)]
    IdleTimeout,
    /// The peer did not answer the handshake.
    #[error("{}", CloseReason::HandshakeTimeout)]
    NoAnswer,
    /// Packets arrived, but no data.
    #[error("no data moved for {seconds} s (detected by the {detected_by})")]
    Stalled {
        /// Duration in seconds.
        seconds: u64,
        /// The side that ended the connection.
        detected_by: Role,
    },
    /// The peer did not send a message of the transfer protocol in time.
    #[error("the {peer} sent no message for {seconds} s")]
    NoMessage {
        /// The side of the peer.
        peer: Role,
        /// The time limit in seconds.
        seconds: u64,
    },
    /// The path carries only packets that are too small.
    #[error("{}", CloseReason::PathMtu)]
    PathMtu,
    /// A packet key reached its limit before the peer allowed a key update.
    #[error("{}", CloseReason::KeyLimit)]
    KeyLimit,
    /// This side closed the connection.
    #[error("{}", CloseReason::Local)]
    ClosedLocally,
    /// The peer closed the connection without a reason of the transfer protocol.
    #[error("the peer closed it (code {code})")]
    ClosedByPeer {
        /// Close code of the connection.
        code: u64,
    },
    /// The peer ended the connection and sent this reason.
    #[error("{0}")]
    ReportedByPeer(String),
}

impl LostReason {
    /// Returns the reason for a connection that was closed without a close code of the transfer
    /// protocol. A violation is no loss, and is handled before.
    pub(crate) fn of(reason: &CloseReason) -> Self {
        match reason {
            CloseReason::IdleTimeout => Self::IdleTimeout,
            CloseReason::HandshakeTimeout => Self::NoAnswer,
            CloseReason::PathMtu => Self::PathMtu,
            CloseReason::KeyLimit => Self::KeyLimit,
            CloseReason::Peer { code, .. } => Self::ClosedByPeer { code: *code },
            CloseReason::Local | CloseReason::Violation(_) => Self::ClosedLocally,
        }
    }
}
