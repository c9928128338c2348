//! A running offer.

use std::sync::Arc;
use std::time::Duration;

use wraith::OfferBuilder;

use crate::content::{address, set};
use crate::error::WraithError;
use crate::event::{Event, EventReader};
use crate::progress::{Progress, SharedProgressReader};
use crate::runtime::in_runtime;

/// Options of an offer.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct OfferOptions {
    /// Number of receivers; 0 counts as 1.
    #[uniffi(default = 1)]
    pub receivers: u32,
    /// Serves any number of receivers until the offer is stopped; overrides `receivers`. The
    /// largest value of `receivers` has the same effect, as in C.
    #[uniffi(default = false)]
    pub any_number: bool,
    /// Lifetime of a code. Default: an hour, or a day for any number of receivers.
    #[uniffi(default = None)]
    pub expires: Option<Duration>,
    /// Time limit for a receiver to connect, or for finding a contact.
    #[uniffi(default = None)]
    pub timeout: Option<Duration>,
    /// Time limit for a lost receiver to reconnect. Default: 10 min.
    #[uniffi(default = None)]
    pub reconnect: Option<Duration>,
    /// Maximum total rate for all receivers, in bytes per second.
    #[uniffi(default = None)]
    pub bytes_per_second: Option<u64>,
    /// Local address and port of this offer, instead of the node's.
    #[uniffi(default = None)]
    pub listen: Option<String>,
    /// Does not resume an earlier offer.
    #[uniffi(default = false)]
    pub anew: bool,
}

impl OfferOptions {
    /// Applies these options to `offer`; `listen` is the address of the node.
    pub(crate) fn apply(
        self,
        mut offer: OfferBuilder,
        listen: Option<&str>,
    ) -> Result<OfferBuilder, WraithError> {
        offer = match self.receivers {
            _ if self.any_number => offer.any_number(),
            u32::MAX => offer.any_number(),
            receivers => offer.receivers(receivers.max(1)),
        };
        let listen = self.listen.as_deref().or(listen).map(address).transpose()?;
        offer = set(offer, self.expires, OfferBuilder::expires);
        offer = set(offer, listen, OfferBuilder::bind_to);
        offer = offer.timeout(self.timeout).reconnect(self.reconnect).rate(self.bytes_per_second);
        Ok(if self.anew { offer.anew() } else { offer })
    }
}

/// Result of a completed offer. Every receiver has every file: if one lacks files,
/// [`Offer::finished`] throws [`WraithError::Partial`].
#[derive(Clone, Debug, uniffi::Record)]
pub struct OfferSummary {
    /// Number of receivers that have confirmed all files.
    pub receivers: u32,
    /// NodeId of the last of them.
    pub receiver: Option<String>,
    /// Number of files that the last one received or already had.
    pub files: u64,
    /// Size of those files, in bytes.
    pub bytes: u64,
    /// Bytes of file content sent to it over the connection.
    pub bytes_moved: u64,
}

impl From<&wraith::OfferSummary> for OfferSummary {
    fn from(sent: &wraith::OfferSummary) -> Self {
        let report = sent.report.as_deref();
        Self {
            receivers: sent.receivers,
            receiver: sent.last.as_ref().map(|(receiver, _)| receiver.to_string()),
            files: report.map_or(0, |report| report.files),
            bytes: report.map_or(0, |report| report.bytes),
            bytes_moved: report.map_or(0, |report| report.bytes_moved),
        }
    }
}

/// A running offer. Freeing it withdraws the code and stops the transfers.
#[derive(Debug, uniffi::Object)]
pub struct Offer {
    offer: wraith::Offer,
    events: EventReader,
    progress: SharedProgressReader,
}

impl Offer {
    pub(crate) fn new(offer: wraith::Offer) -> Arc<Self> {
        let (events, progress) =
            (EventReader::new(offer.events()), SharedProgressReader::new(offer.progress()));
        Arc::new(Self { offer, events, progress })
    }
}

#[uniffi::export]
impl Offer {
    /// Returns the code for the receiver to enter. Returns null if the offer has a ticket or a
    /// contact as its recipient, or if there is no meeting place; in the last case use the ticket.
    pub fn code(&self) -> Option<String> {
        self.offer.code().map(ToString::to_string)
    }

    /// Returns the ticket, or null if there is none. It holds everything that a receiver needs, and
    /// is valid for any holder: keep it secret.
    pub fn ticket(&self) -> Option<String> {
        self.offer.ticket().map(ToString::to_string)
    }

    /// Returns the NodeIds of receivers that had the code of an unfinished earlier run of this
    /// offer. They can resume without a new code; [`OfferOptions::anew`] revokes that.
    pub fn continues_for(&self) -> Vec<String> {
        self.offer.continues_for().iter().map(ToString::to_string).collect()
    }

    /// Returns the addresses at which receivers can connect, the most useful one first.
    pub fn addresses(&self) -> Vec<String> {
        self.offer.addresses().iter().map(ToString::to_string).collect()
    }

    /// Returns the next event, or null after [`Event::Done`] or [`Event::Failed`]. Reading starts
    /// with the first event. A slow reader gets [`Event::Lagged`] with the number of dropped
    /// events, and always gets the last event. Concurrent readers share the events.
    pub async fn next_event(&self) -> Option<Event> {
        in_runtime(self.events.next()).await
    }

    /// Returns the progress of all transfers together, or null before the first receiver has
    /// connected.
    pub fn progress(&self) -> Option<Progress> {
        self.progress.read()
    }

    /// Waits until the wanted number of receivers have confirmed all files.
    ///
    /// # Errors
    /// The error that ended the offer; [`WraithError::Partial`] if a receiver lacks files that
    /// could not be sent.
    pub async fn finished(&self) -> Result<OfferSummary, WraithError> {
        in_runtime(async {
            let sent = self.offer.finished().await?;
            sent.complete()?;
            Ok(OfferSummary::from(&*sent))
        })
        .await
    }

    /// Cancels the offer. Returns once the receivers were notified. If the node has a state folder,
    /// repeating the offer resumes it. The result is true if this call ended the offer, and false
    /// if it had already ended.
    pub async fn cancel(&self) -> bool {
        self.offer.stop();
        in_runtime(self.offer.finished())
            .await
            .is_err_and(|error| is_cancelled_by(wraith::Role::Sender, &error))
    }
}

/// Returns whether the error means that the side `own` cancelled.
pub(crate) fn is_cancelled_by(own: wraith::Role, error: &wraith::Error) -> bool {
    match error.transfer() {
        Some(wraith::TransferError::Cancelled { role }) => *role == own,
        // Its end was not waited for.
        _ => error.kind() == wraith::ErrorKind::Cancelled,
    }
}
