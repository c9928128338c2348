//! Options and report of a sender.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use wraith_crypto::NodeId;
use wraith_files::WalkSummary;

use super::sent_roots::SentRoots;
use super::source::StreamSource;
use super::survey::{summary_of, survey};
use crate::cancel::Cancel;
use crate::error::TransferError;
use crate::events::Events;
use crate::message::Offer;
use crate::parallel::ParallelConnections;
use crate::progress::Progress;
use crate::rate::Rate;
use crate::receipt::Receipt;
use crate::role::Role;

/// Returns true if an identity, proved by the handshake, may use the capability.
pub type Admits = Arc<dyn Fn(NodeId) -> bool + Send + Sync>;

/// Options of [`super::serve`].
pub struct SendOptions {
    /// Files and directories; each keeps its own last name.
    pub paths: Vec<PathBuf>,
    /// Byte stream to send instead of the paths.
    pub stream: Option<StreamSource>,
    /// Capability secret of the ticket: only a receiver that presents it is served.
    pub secret: [u8; 16],
    /// Additional check of a receiver with the secret; `None` admits every such receiver.
    pub admits: Option<Admits>,
    /// Send only the differences of files of which the receiver has an old copy, if the receiver
    /// supports that.
    pub delta: bool,
    /// Wait until all data is on the receiver's stable storage.
    pub sync: bool,
    /// Sender's identity required in the receipt; not checked if `None`.
    pub node_id: Option<NodeId>,
    /// Roots of files read for earlier connections; shared by all connections of an offer.
    pub sent_roots: SentRoots,
    /// Rate limit.
    pub rate: Arc<Rate>,
    /// Parallel connections for the chunks of large files.
    pub parallel: ParallelConnections,
    /// Live counters.
    pub progress: Arc<Progress>,
    /// Receives events.
    pub events: Arc<dyn Events>,
    /// Cancels the transfer from another thread.
    pub cancel: Cancel,
    /// Counts and sizes for the offer, once known.
    survey: OnceLock<WalkSummary>,
}

impl SendOptions {
    /// Creates options that report no events.
    pub fn new(paths: Vec<PathBuf>, secret: [u8; 16]) -> Self {
        Self {
            paths,
            stream: None,
            secret,
            admits: None,
            delta: true,
            sync: true,
            node_id: None,
            sent_roots: SentRoots::in_memory(&wraith_crypto::kdf::derive(
                "wraith/1 sent marks of a process",
                &secret,
            )),
            rate: Arc::default(),
            parallel: ParallelConnections::default(),
            progress: Arc::default(),
            events: Arc::new(()),
            cancel: Cancel::default(),
            survey: OnceLock::new(),
        }
    }

    /// Walks the tree without reading files, and keeps its counts for the offer of every
    /// [`super::serve`].
    /// Call it before a receiver connects, so that the receiver need not wait. Fails if one of the
    /// paths cannot be read.
    pub fn survey(&self) -> Result<&WalkSummary, TransferError> {
        if let Some(source) = &self.stream {
            return Ok(self.survey.get_or_init(|| summary_of(source)));
        }
        if let Some(summary) = self.survey.get() {
            return Ok(summary);
        }
        let summary = survey(&self.paths, &self.cancel)?;
        Ok(self.survey.get_or_init(|| summary))
    }
}

impl std::fmt::Debug for SendOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendOptions").field("paths", &self.paths).finish_non_exhaustive()
    }
}

/// Result of a transfer at the sender: everything the receiver wanted has arrived on its disk and
/// is verified.
#[derive(Clone, Debug)]
pub struct SendReport {
    /// The offer.
    pub offer: Offer,
    /// The receiver's signed receipt.
    pub receipt: Receipt,
    /// Identity of the receiver.
    pub receiver: NodeId,
    /// Number of files that were sent or found identical.
    pub files: u64,
    /// Their total bytes.
    pub bytes: u64,
    /// Bytes of file content sent over the connection.
    pub bytes_moved: u64,
    /// Bytes of all datagrams, in both directions.
    pub wire_bytes: u64,
    /// Number of connections that carried data.
    pub connections: u64,
    /// Number of files that could not be read, changed during reading, or that the receiver could
    /// not keep.
    pub failed: u64,
    /// Number of files, folders and links missing from the offer. These are names that no receiver
    /// would accept, folders that cannot be listed, and entries that appeared too late.
    pub left_out: u64,
    /// Number of sockets, pipes and devices, which have no content to send.
    pub special: u64,
}

impl SendReport {
    /// Returns [`TransferError::Partial`] if anything is missing.
    pub fn outcome(&self) -> Result<(), TransferError> {
        TransferError::partial(Role::Sender, self.failed, self.offer.files, self.left_out)
    }
}
