//! Results of an offer and of a fetch.

use std::sync::Arc;

use wraith_crypto::NodeId;
use wraith_transfer::{ReceiveReport, SendReport};
use wraith_transport::Addr;

use crate::error::{Cause, Error, ErrorKind};

/// Result of an offer.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct OfferSummary {
    /// Number of receivers that confirmed everything that could be sent to them.
    pub receivers: u32,
    /// Number of those receivers that lack files that could not be sent.
    pub lacking: u32,
    /// The last of these receivers, and its address.
    pub last: Option<(NodeId, Addr)>,
    /// The report of the last receiver.
    pub report: Option<Arc<SendReport>>,
}

impl OfferSummary {
    /// Checks that no receiver lacks a file.
    ///
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

/// Result of a fetch.
#[non_exhaustive]
#[derive(Clone, Debug)]
pub struct FetchSummary {
    /// The report of the transfer: counts, bytes and the signed receipt.
    pub report: ReceiveReport,
    /// The NodeId of the sender.
    pub sender: NodeId,
    /// The address of the sender.
    pub remote: Addr,
}

impl FetchSummary {
    /// Checks that no file is missing.
    ///
    /// # Errors
    /// [`ErrorKind::Partial`] if some files did not arrive or could not be sent.
    pub fn complete(&self) -> Result<(), Error> {
        self.report.outcome().map_err(Error::from)
    }
}
