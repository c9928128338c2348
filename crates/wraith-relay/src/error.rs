//! Errors that a relay reports to its operator, and errors of relay clients.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::frame::Refusal;
use crate::tls::PinMismatch;

/// Reason why a relay cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RelayError {
    /// The connection failed.
    #[error("the relay cannot be reached: {0}")]
    Unreachable(#[source] io::Error),
    /// No response arrived in time.
    #[error("the relay does not answer")]
    Timeout,
    /// The relay has another key.
    #[error(transparent)]
    Pin(#[from] PinMismatch),
    /// The relay refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The server does not use the relay protocol.
    #[error("the server is not a wraith relay")]
    Protocol,
    /// The connection is lost and is being re-established.
    #[error("the connection to the relay is lost")]
    Down,
}

/// Reason why a relay does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address or port is not available.
    #[error("cannot listen there: {0}")]
    Listen(#[source] io::Error),
    /// The second UDP port is not available.
    #[error("cannot bind the second UDP port: {0}")]
    OtherPort(#[source] io::Error),
    /// The address for metrics is not available.
    #[error("cannot listen for metrics there: {0}")]
    Metrics(#[source] io::Error),
    /// A certificate or key file is unusable.
    #[error("{}: {why}", path.display())]
    Certificate {
        /// Path of the file.
        path: PathBuf,
        /// Description of the problem.
        why: String,
    },
    /// The system provides no threads, files or randomness.
    #[error("the system does not allow it: {0}")]
    System(#[from] io::Error),
}
