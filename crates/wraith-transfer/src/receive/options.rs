//! Options and report of a receiver.

use std::path::PathBuf;
use std::sync::Arc;

use wraith_crypto::{NodeId, SecretIdentity};
use wraith_files::OnConflict;

use super::preview::{Conflicts, Proposal};
use super::shown::Shown;
use super::stream_target::StreamTarget;
use crate::cancel::Cancel;
use crate::error::TransferError;
use crate::events::Events;
use crate::message::Offer;
use crate::parallel::ParallelConnections;
use crate::progress::Progress;
use crate::receipt::Receipt;
use crate::role::Role;

/// The decision about an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Fetch it.
    Accept,
    /// Fetch it, with this conflict policy instead of [`ReceiveOptions::on_conflict`].
    AcceptWith(Conflicts),
    /// Like `AcceptWith`, but limited to the entries that were shown.
    AcceptShown(Conflicts, Shown),
    /// Decline it; the reason goes to the sender (may be empty).
    Refuse(String),
    /// Not now: this was only a preview. The sender keeps waiting.
    Postpone,
}

impl Decision {
    /// Returns true if the offer is accepted.
    pub fn is_yes(&self) -> bool {
        matches!(self, Self::Accept | Self::AcceptWith(_) | Self::AcceptShown(..))
    }
}

/// Decision callback. Called once, with the offer, before anything is fetched; may take as long as
/// a person needs.
pub type Decide<'a> = dyn FnMut(&Proposal<'_>) -> Decision + Send + 'a;

/// Options of [`super::receive`].
pub struct ReceiveOptions<'a> {
    /// Target directory; created, with its parents, when the offer is accepted.
    pub target: PathBuf,
    /// Capability secret of the ticket.
    pub secret: [u8; 16],
    /// Identifier of one run of the program, the same on all of its connections.
    pub instance: Option<u64>,
    /// Signs the receipt; must be the identity of the connection.
    pub identity: SecretIdentity,
    /// Policy for names that another file has already.
    pub on_conflict: OnConflict,
    /// Destination of a byte stream.
    pub stream: StreamTarget,
    /// Maximum rate requested from the sender, in bytes per second.
    pub rate: Option<u64>,
    /// Read the names before the decision, so that [`Proposal::preview`] has them.
    pub preview: bool,
    /// Accept a few small files along with the offer, before they are requested, unless an earlier
    /// connection left data. For callers that accept any offer.
    pub push: bool,
    /// Accepts or declines the offer.
    pub decide: Box<Decide<'a>>,
    /// Parallel connections, if the sender supports them too.
    pub parallel: ParallelConnections,
    /// Fetch only the differences of files with an old copy under their name, if the sender
    /// supports that.
    pub delta: bool,
    /// Apply all received permissions, not only those allowed by the umask.
    pub keep_modes: bool,
    /// Flush all data to disk before the receipt is signed, and every content before its name,
    /// unless the sender does not want to wait.
    pub sync: bool,
    /// Live counters.
    pub progress: Arc<Progress>,
    /// Receives events.
    pub events: Arc<dyn Events>,
    /// Cancels the transfer from another thread.
    pub cancel: Cancel,
}

impl<'a> ReceiveOptions<'a> {
    /// Creates options that accept everything, rename on conflict, and report no events.
    pub fn new(target: PathBuf, secret: [u8; 16], identity: SecretIdentity) -> Self {
        Self {
            target,
            secret,
            instance: None,
            identity,
            on_conflict: OnConflict::Rename,
            stream: StreamTarget::folder(),
            rate: None,
            parallel: ParallelConnections::default(),
            preview: false,
            push: false,
            decide: Box::new(|_| Decision::Accept),
            delta: true,
            keep_modes: false,
            sync: true,
            progress: Arc::default(),
            events: Arc::new(()),
            cancel: Cancel::default(),
        }
    }
}

impl std::fmt::Debug for ReceiveOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReceiveOptions").field("target", &self.target).finish_non_exhaustive()
    }
}

/// Result of a transfer at the receiver: every file not counted as failed is present, verified,
/// under its name.
#[derive(Clone, Debug)]
pub struct ReceiveReport {
    /// The offer.
    pub offer: Offer,
    /// The signed receipt.
    pub receipt: Receipt,
    /// Identity of the sender.
    pub sender: NodeId,
    /// Number of files transferred, whole or in part.
    pub files: u64,
    /// Bytes of file content received over the connection.
    pub bytes_moved: u64,
    /// Bytes of all datagrams, in both directions.
    pub wire_bytes: u64,
    /// Number of connections that carried data.
    pub connections: u64,
    /// Number of files that were already present.
    pub already_here: u64,
    /// Number of files skipped because another one has their name ([`OnConflict::Skip`]).
    pub skipped: u64,
    /// Number of files that did not arrive.
    pub failed: u64,
    /// Number of files, folders and links that the sender could not send, as it reports.
    pub left_out: u64,
    /// False if the sender disappeared before it confirmed the receipt.
    pub confirmed: bool,
}

impl ReceiveReport {
    /// Returns [`TransferError::Partial`] if anything is missing.
    pub fn outcome(&self) -> Result<(), TransferError> {
        TransferError::partial(Role::Receiver, self.failed, self.offer.files, self.left_out)
    }
}
