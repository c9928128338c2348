//! Receiving: the offer, its answer, and the transfer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use wraith::FetchBuilder;

use crate::accept::AcceptOptions;
use crate::content::{MemoryContent, locked};
use crate::error::WraithError;
use crate::event::{Event, EventReader};
use crate::offer::is_cancelled_by;
use crate::progress::{Progress, SharedProgressReader};
use crate::runtime::{self, in_runtime};

/// Options of a fetch.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct FetchOptions {
    /// Time limit for finding the sender. Default: 10 s, or 30 s with the DHT.
    #[uniffi(default = None)]
    pub timeout: Option<Duration>,
    /// Time limit for finding the sender again after a lost connection. Default: 10 min.
    #[uniffi(default = None)]
    pub reconnect: Option<Duration>,
    /// Maximum rate, in bytes per second.
    #[uniffi(default = None)]
    pub bytes_per_second: Option<u64>,
    /// Skips the preview: no names are requested before the offer is answered.
    #[uniffi(default = false)]
    pub no_preview: bool,
}

impl FetchOptions {
    pub(crate) fn apply(self, fetch: FetchBuilder) -> FetchBuilder {
        fetch
            .timeout(self.timeout)
            .reconnect(self.reconnect)
            .rate(self.bytes_per_second)
            .preview(!self.no_preview)
    }
}

/// Description of an offer, as the sender claims.
#[derive(Clone, Debug, uniffi::Record)]
pub struct OfferInfo {
    /// Name of the first entry, escaped for a terminal; for display only.
    pub name: String,
    /// Number of regular files.
    pub files: u64,
    /// Number of folders.
    pub folders: u64,
    /// Number of symbolic links.
    pub links: u64,
    /// Total size of the files, in bytes.
    pub bytes: u64,
    /// Number of entries that cannot be sent. The other counts do not include them.
    pub left_out: u64,
    /// Whether the offer is a single byte stream. Its size is 0 if unknown.
    pub is_stream: bool,
}

impl From<wraith::OfferInfo> for OfferInfo {
    fn from(offer: wraith::OfferInfo) -> Self {
        Self {
            name: offer.name,
            files: offer.files,
            folders: offer.folders,
            links: offer.links,
            bytes: offer.bytes,
            left_out: offer.left_out,
            is_stream: offer.is_stream,
        }
    }
}

/// An entry of an offer, and whether its path is already taken in the target folder.
#[derive(Clone, Debug, uniffi::Record)]
pub struct PreviewEntry {
    /// Path as raw bytes, for [`crate::ConflictRule::path`].
    pub path: Vec<u8>,
    /// The path for display, escaped for a terminal.
    pub shown: String,
    /// Whether the path is free.
    pub is_new: bool,
    /// Whether a different entry has this path. [`AcceptOptions::on_conflict`] decides what to do.
    pub has_conflict: bool,
}

impl From<&wraith::Previewed> for PreviewEntry {
    fn from(previewed: &wraith::Previewed) -> Self {
        use wraith::PreviewOutcome as Outcome;
        let path = &previewed.entry.path;
        Self {
            path: path.as_bytes().to_vec(),
            shown: path.display().to_string(),
            is_new: previewed.outcome == Outcome::New,
            has_conflict: matches!(
                previewed.outcome,
                Outcome::SameSize | Outcome::Differs | Outcome::Irreplaceable
            ),
        }
    }
}

/// An offer that waits for an answer. It can be answered once. If the object is freed without an
/// answer, the answer is postponed: the sender keeps waiting, and the same code or ticket works
/// again.
#[derive(Debug, uniffi::Object)]
pub struct Incoming {
    /// `None` once it is answered.
    incoming: Mutex<Option<wraith::Incoming>>,
    memory: Option<MemoryContent>,
    sender: String,
    offer: OfferInfo,
    preview: Option<Vec<PreviewEntry>>,
}

impl Incoming {
    pub(crate) fn new(incoming: wraith::Incoming, memory: Option<MemoryContent>) -> Arc<Self> {
        let preview = incoming.preview();
        Arc::new(Self {
            sender: incoming.sender().to_string(),
            offer: incoming.offer().into(),
            preview: preview.map(|preview| preview.entries.iter().map(Into::into).collect()),
            incoming: Mutex::new(Some(incoming)),
            memory,
        })
    }

    /// Takes the offer for its answer. Other languages keep their handle after that.
    fn take(&self) -> Result<wraith::Incoming, WraithError> {
        let used_up = || WraithError::used_up("this offer was answered");
        locked(&self.incoming).take().ok_or_else(used_up)
    }
}

#[uniffi::export]
impl Incoming {
    /// Returns the sender's NodeId, authenticated by the handshake.
    pub fn sender(&self) -> String {
        self.sender.clone()
    }

    /// Returns the description of the offer.
    pub fn offer(&self) -> OfferInfo {
        self.offer.clone()
    }

    /// Returns the entries, compared with the target folder, or null without a preview. A preview
    /// may list only some entries.
    pub fn preview(&self) -> Option<Vec<PreviewEntry>> {
        self.preview.clone()
    }

    /// Accepts the offer and starts the transfer.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the offer is already answered. [`WraithError::InvalidInput`]
    /// if a rule has an invalid path; the offer can then still be answered.
    pub fn accept(&self, options: AcceptOptions) -> Result<Arc<Transfer>, WraithError> {
        let options = wraith::AcceptOptions::try_from(options)?;
        let incoming = self.take()?;
        let _inside = runtime::enter();
        let transfer = incoming.accept(options);
        Ok(Transfer::new(transfer, self.memory.clone()))
    }

    /// Declines the offer with a reason, which may be empty. Returns once the sender was notified.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the offer is already answered.
    pub async fn refuse(&self, why: String) -> Result<(), WraithError> {
        let incoming = self.take()?;
        in_runtime(incoming.refuse(&why)).await;
        Ok(())
    }

    /// Postpones the answer. Returns once the sender was notified.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if the offer is already answered.
    pub async fn postpone(&self) -> Result<(), WraithError> {
        let incoming = self.take()?;
        in_runtime(incoming.postpone()).await;
        Ok(())
    }
}

/// Result of a completed fetch.
#[derive(Clone, Debug, uniffi::Record)]
pub struct FetchSummary {
    /// NodeId of the sender.
    pub sender: String,
    /// Number of files that were transferred, in whole or in part.
    pub files: u64,
    /// Bytes of file content received over the connection.
    pub bytes_moved: u64,
    /// Number of files that were already present.
    pub already_here: u64,
    /// Number of files skipped because a different file has their path.
    pub skipped: u64,
    /// False if the sender disappeared before it confirmed the receipt.
    pub confirmed: bool,
}

impl From<&wraith::FetchSummary> for FetchSummary {
    fn from(received: &wraith::FetchSummary) -> Self {
        let report = &received.report;
        Self {
            sender: received.sender.to_string(),
            files: report.files,
            bytes_moved: report.bytes_moved,
            already_here: report.already_here,
            skipped: report.skipped,
            confirmed: report.confirmed,
        }
    }
}

/// A running fetch. Freeing it stops the transfer. Received data is kept, and repeating the fetch
/// resumes it.
#[derive(Debug, uniffi::Object)]
pub struct Transfer {
    transfer: wraith::Transfer,
    memory: Option<MemoryContent>,
    events: EventReader,
    progress: SharedProgressReader,
}

impl Transfer {
    fn new(transfer: wraith::Transfer, memory: Option<MemoryContent>) -> Arc<Self> {
        let (events, progress) =
            (EventReader::new(transfer.events()), SharedProgressReader::new(transfer.progress()));
        Arc::new(Self { transfer, memory, events, progress })
    }
}

#[uniffi::export]
impl Transfer {
    /// Returns the next event, or null after [`Event::Done`] or [`Event::Failed`]. Reading starts
    /// with the first event. A slow reader gets [`Event::Lagged`] with the number of dropped
    /// events, and always gets the last event. Concurrent readers share the events.
    pub async fn next_event(&self) -> Option<Event> {
        in_runtime(self.events.next()).await
    }

    /// Returns the current progress, or null before an offer has arrived.
    pub fn progress(&self) -> Option<Progress> {
        self.progress.read()
    }

    /// Waits for the end of the transfer.
    ///
    /// # Errors
    /// The error that ended it; [`WraithError::Partial`] if some files did not arrive or could not
    /// be sent.
    pub async fn finished(&self) -> Result<FetchSummary, WraithError> {
        in_runtime(async {
            let received = self.transfer.finished().await?;
            received.complete()?;
            Ok(FetchSummary::from(&*received))
        })
        .await
    }

    /// Waits for the end of a fetch into memory and returns the content. A second call returns no
    /// bytes.
    ///
    /// # Errors
    /// As [`Transfer::finished`]; [`WraithError::InvalidInput`] if the fetch has a folder as its
    /// target.
    pub async fn bytes(&self) -> Result<Vec<u8>, WraithError> {
        let Some(memory) = &self.memory else {
            return Err(WraithError::invalid("this was fetched into a folder, not into memory"));
        };
        self.finished().await?;
        Ok(memory.take())
    }

    /// Cancels the transfer. Returns once the sender was notified and the received data is saved.
    /// The result is true if this call ended the transfer, and false if it had already ended.
    pub async fn cancel(&self) -> bool {
        self.transfer.stop();
        in_runtime(self.transfer.finished())
            .await
            .is_err_and(|error| is_cancelled_by(wraith::Role::Receiver, &error))
    }
}
