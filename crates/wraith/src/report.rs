//! What became of an offer or a fetch.

use std::sync::Arc;

use wraith_crypto::NodeId;
use wraith_transfer::{ReceiveReport, SendReport};
use wraith_transport::Addr;

use crate::error::{Cause, Error, ErrorKind};

/// What became of an offer.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Sent {
    /// Receivers that have confirmed everything they could be sent.
    pub receivers: u32,
    /// Those of them that lack files that could not be sent.
    pub lacking: u32,
    /// The last of them, and where it was.
    pub last: Option<(NodeId, Addr)>,
    /// The last one's report.
    pub report: Option<Arc<SendReport>>,
}

impl Sent {
    /// # Errors
    /// [`ErrorKind::Partial`] if a receiver lacks files that could not be sent.
    pub fn complete(&self) -> Result<(), Error> {
        match (&self.report, self.lacking) {
            (_, 0) => Ok(()),
            (Some(report), 1) if self.receivers == 1 => report.outcome().map_err(Error::from),
            (_, lacking) => {
                let served = self.receivers;
                let message =
                    format!("{lacking} of {served} receivers lack files that could not be sent");
                let cause = Cause::SomeLackFiles { lacking, served };
                Err(Error::because(ErrorKind::Partial, message, cause))
            }
        }
    }
}

/// What was received.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct Received {
    /// The transfer's own report: counts, bytes and the signed receipt.
    pub report: ReceiveReport,
    /// Bytes settled on the last connection.
    pub bytes: u64,
    /// Who sent it.
    pub sender: NodeId,
    /// Where from.
    pub remote: Addr,
}

impl Received {
    /// # Errors
    /// [`ErrorKind::Partial`] if some files did not arrive or could not be sent.
    pub fn complete(&self) -> Result<(), Error> {
        self.report.outcome().map_err(Error::from)
    }
}
