//! What can go wrong, for whoever runs a relay and whoever uses one.

use std::io;
use std::path::PathBuf;

use data_encoding::HEXLOWER;
use thiserror::Error;

use crate::frame::Refusal;
use crate::tls::Pin;

/// The relay has another key than the pinned one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "the relay shows another key than expected ({} instead of {}): it was set up anew, or somebody stands between",
    HEXLOWER.encode(&.found[..8]),
    HEXLOWER.encode(&.expected[..8])
)]
pub struct PinMismatch {
    /// What was expected.
    pub expected: Pin,
    /// What it shows.
    pub found: Pin,
}

/// Why a relay cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RelayError {
    /// No connection to it.
    #[error("the relay cannot be reached: {0}")]
    Unreachable(#[source] io::Error),
    /// No answer in time.
    #[error("the relay does not answer")]
    Timeout,
    /// It has another key.
    #[error(transparent)]
    Pin(#[from] PinMismatch),
    /// It does not want to.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// What answers there is no relay.
    #[error("what answers there is no relay of this kind")]
    Protocol,
    /// The connection to it is lost, and being made again.
    #[error("the connection to the relay is lost")]
    Down,
}

/// Why a relay does not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// Address or port cannot be had.
    #[error("cannot listen there: {0}")]
    Listen(#[source] io::Error),
    /// The second UDP port cannot be had.
    #[error("cannot have the other UDP port: {0}")]
    OtherPort(#[source] io::Error),
    /// The address for figures cannot be had.
    #[error("cannot listen for metrics there: {0}")]
    Metrics(#[source] io::Error),
    /// A file of the certificate.
    #[error("{}: {why}", path.display())]
    Certificate {
        /// Which.
        path: PathBuf,
        /// What is the matter with it.
        why: String,
    },
    /// The system gives no threads, files or randomness.
    #[error("the system does not allow it: {0}")]
    System(#[from] io::Error),
}
