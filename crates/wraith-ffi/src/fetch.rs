//! Receiving: the question, the answer, and the transfer that follows it.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::accept::AcceptOptions;
use crate::content::Memory;
use crate::error::WraithError;
use crate::event::{Event, Pull};
use crate::offer::is_cancelled;
use crate::progress::{Progress, Reader};
use crate::runtime::entered;
use crate::used_once::UsedOnce;

/// How something is fetched.
#[derive(Clone, Debug, Default, uniffi::Record)]
pub struct FetchOptions {
    /// How long the sender is looked for at first: 10 s, or 30 s where the DHT is asked, unless this says something else.
    #[uniffi(default = None)]
    pub timeout: Option<Duration>,
    /// How long a sender that was lost is looked for: 10 min, unless this says something else.
    #[uniffi(default = None)]
    pub reconnect: Option<Duration>,
    /// No more than this many bytes a second.
    #[uniffi(default = None)]
    pub bytes_per_second: Option<u64>,
    /// Looks at no names before the offer is decided.
    #[uniffi(default = false)]
    pub no_preview: bool,
}

impl FetchOptions {
    pub(crate) fn apply(self, mut fetch: wraith::FetchBuilder) -> wraith::FetchBuilder {
        if let Some(timeout) = self.timeout {
            fetch = fetch.timeout(timeout);
        }
        if let Some(reconnect) = self.reconnect {
            fetch = fetch.reconnect(reconnect);
        }
        if let Some(rate) = self.bytes_per_second {
            fetch = fetch.rate(rate);
        }
        fetch.preview(!self.no_preview)
    }
}

/// What is offered, as the sender says.
#[derive(Clone, Debug, uniffi::Record)]
pub struct OfferInfo {
    /// The first name, escaped for a terminal; for show only.
    pub name: String,
    /// Regular files.
    pub files: u64,
    /// Folders.
    pub folders: u64,
    /// Symbolic links.
    pub links: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Entries that cannot be sent and are in none of these counts.
    pub left_out: u64,
    /// It is one stream of bytes, whose size is 0 where it is not known.
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

/// One entry of an offer, and what stands in its place.
#[derive(Clone, Debug, uniffi::Record)]
pub struct PreviewEntry {
    /// Its path, for [`crate::ConflictRule::path`]: bytes, as file systems have them.
    pub path: Vec<u8>,
    /// The same for people, escaped for a terminal.
    pub shown: String,
    /// Nothing is in its place.
    pub is_new: bool,
    /// Something else is in its place, which [`AcceptOptions::on_conflict`] decides about.
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

/// An offer that waits for an answer. It is answered once; freed without an answer it is put off: the sender goes on waiting, and
/// the same code or ticket fetches another time.
#[derive(Debug, uniffi::Object)]
pub struct Incoming {
    incoming: UsedOnce<wraith::Incoming>,
    memory: Option<Memory>,
    sender: String,
    offer: OfferInfo,
    preview: Option<Vec<PreviewEntry>>,
    runtime: Handle,
}

impl Incoming {
    pub(crate) fn new(
        incoming: wraith::Incoming,
        memory: Option<Memory>,
        runtime: Handle,
    ) -> Arc<Self> {
        let preview = incoming.preview();
        Arc::new(Self {
            sender: incoming.sender().to_string(),
            offer: incoming.offer().into(),
            preview: preview.map(|preview| preview.entries.iter().map(Into::into).collect()),
            incoming: UsedOnce::new(incoming, "this offer was answered"),
            memory,
            runtime,
        })
    }
}

#[uniffi::export]
impl Incoming {
    /// The NodeId of who offers it, proven by the handshake.
    pub fn sender(&self) -> String {
        self.sender.clone()
    }

    /// What is offered.
    pub fn offer(&self) -> OfferInfo {
        self.offer.clone()
    }

    /// The names and what each meets in the target folder, as far as they were looked at.
    pub fn preview(&self) -> Option<Vec<PreviewEntry>> {
        self.preview.clone()
    }

    /// Fetches it.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if it was answered; [`WraithError::InvalidInput`] if a rule names no path, and then it still can be.
    pub fn accept(&self, options: AcceptOptions) -> Result<Arc<Transfer>, WraithError> {
        let options = wraith::AcceptOptions::try_from(options)?;
        let incoming = self.incoming.take()?;
        let _inside = self.runtime.enter();
        let transfer = incoming.accept(options);
        Ok(Transfer::new(transfer, self.memory.clone(), self.runtime.clone()))
    }

    /// Says no, and why (may be empty), and waits until the sender was told.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if it was answered.
    pub async fn refuse(&self, why: String) -> Result<(), WraithError> {
        let incoming = self.incoming.take()?;
        entered(self.runtime.clone(), incoming.refuse(&why)).await;
        Ok(())
    }

    /// Says "not now", and waits until the sender was told.
    ///
    /// # Errors
    /// [`WraithError::WrongState`] if it was answered.
    pub async fn later(&self) -> Result<(), WraithError> {
        let incoming = self.incoming.take()?;
        entered(self.runtime.clone(), incoming.later()).await;
        Ok(())
    }
}

/// What was received.
#[derive(Clone, Debug, uniffi::Record)]
pub struct Received {
    /// The NodeId of who sent it.
    pub sender: String,
    /// Files that were moved, whole or in part.
    pub files: u64,
    /// Bytes of file content that came over the connection.
    pub bytes_moved: u64,
    /// Files that were here already.
    pub already_here: u64,
    /// Files left alone because a different one is in the way.
    pub skipped: u64,
    /// False if the sender vanished before it could confirm that it has the receipt.
    pub confirmed: bool,
}

impl From<&wraith::Received> for Received {
    fn from(received: &wraith::Received) -> Self {
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

/// A fetch under way. Freeing it stops the transfer; what has arrived stays, and the same fetch another time continues.
#[derive(Debug, uniffi::Object)]
pub struct Transfer {
    transfer: wraith::Transfer,
    memory: Option<Memory>,
    events: Pull,
    progress: Reader,
    runtime: Handle,
}

impl Transfer {
    fn new(transfer: wraith::Transfer, memory: Option<Memory>, runtime: Handle) -> Arc<Self> {
        let (events, progress) = (Pull::new(transfer.events()), Reader::new(transfer.progress()));
        Arc::new(Self { transfer, memory, events, progress, runtime })
    }
}

#[uniffi::export]
impl Transfer {
    /// The next thing that happens, from the beginning; none after [`Event::Done`] or [`Event::Failed`]. Who reads too slowly is told how
    /// much was missed, and always hears the end. Readers that wait at the same time share the events.
    pub async fn next_event(&self) -> Option<Event> {
        entered(self.runtime.clone(), self.events.next()).await
    }

    /// How far it is; none before anything was offered.
    pub fn progress(&self) -> Option<Progress> {
        self.progress.read()
    }

    /// Waits for the end.
    ///
    /// # Errors
    /// Why it failed; [`WraithError::Partial`] if some files did not arrive or could not be sent.
    pub async fn finished(&self) -> Result<Received, WraithError> {
        entered(self.runtime.clone(), async {
            let received = self.transfer.finished().await?;
            received.complete()?;
            Ok(Received::from(&*received))
        })
        .await
    }

    /// Waits for the end of what was fetched into memory, and takes it: the second call finds nothing.
    ///
    /// # Errors
    /// Those of [`Transfer::finished`]; [`WraithError::InvalidInput`] if it was fetched into a folder.
    pub async fn bytes(&self) -> Result<Vec<u8>, WraithError> {
        let Some(memory) = &self.memory else {
            return Err(WraithError::invalid("this was fetched into a folder, not into memory"));
        };
        self.finished().await?;
        Ok(memory.take())
    }

    /// Stops it, and waits until the sender was told and what has arrived is put away.
    /// True if this ended it; false if it had come to its end before.
    pub async fn cancel(&self) -> bool {
        self.transfer.stop();
        entered(self.runtime.clone(), self.transfer.finished()).await.is_err_and(is_cancelled)
    }
}
